//===- LayerFunction.h - steps of several layers as one function --------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OUTLINE_LAYERFUNCTION_H
#define PARTITA_LIB_OUTLINE_LAYERFUNCTION_H

#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "lib/Outline/LayerNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::rt {

/// An op that does something: all but pointers and comments.
struct Step {
  mlir::Operation *op = nullptr; ///< null: the end of a block
  mlir::func::FuncOp function;
  std::optional<train::EntryPoint> entry; ///< that the function is, or is a pass of
  std::string comment;                    ///< that stands in front of it; "" if none does
  std::string path;                       ///< the last comment's, which it belongs to
  Work part = Work::Forward;              ///< of a training step
  int64_t layer = -1;                     ///< its number; below 0: none
  LayerLabel label;                       ///< what names call the layer
  mlir::Attribute key; ///< equal for steps that differ in data alone; null: never equal
};

/// Can a pointer be made anew anywhere from numbers alone? Others are handed over.
bool isPlace(mlir::Value pointer);

/// What two steps must have in common to be the same but for data; null if the op has to stay where
/// it is.
mlir::Attribute keyOf(mlir::Operation *op);

/// One function for occurrences of the same steps, and what its calls hand over.
struct LayerFunction {
  LayerOp op;
  /// Per occurrence: pointers that are no places; variables of collectives and of copies.
  std::vector<llvm::SmallVector<mlir::Value>> buffers;
  std::vector<llvm::SmallVector<mlir::Attribute>> pendings, copies;
};

/// How often a variable is named in its function: by starts, waits and calls, and by the function's caller.
using PendingUses = llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, unsigned>;

/// Makes it in front of the function that the first occurrence is in; `symbols` gives it a name.
LayerFunction makeLayerFunction(llvm::ArrayRef<llvm::ArrayRef<Step>> occurrences,
                                const PendingUses &uses, mlir::SymbolTable &symbols);

} // namespace partita::rt

#endif // PARTITA_LIB_OUTLINE_LAYERFUNCTION_H
