//===- LayerFunction.h - one function for the steps of several layers ---------------*- C++ -*-===//

#ifndef PARTITA_LIB_OUTLINE_LAYERFUNCTION_H
#define PARTITA_LIB_OUTLINE_LAYERFUNCTION_H

#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "lib/Outline/LayerNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::rt {

/// An op with an effect: anything but pointers and comments.
struct Step {
  mlir::Operation *op = nullptr; ///< null: the end of a block
  mlir::func::FuncOp function;
  std::optional<train::EntryPoint> entry; ///< that the function is, or is a pass of
  std::string comment;                    ///< the comment directly before the op, or ""
  std::string path;                       ///< the last comment before the op, which describes it
  Work part = Work::Forward;              ///< of a training step
  int64_t layer = -1;                     ///< number of the layer, below 0 for none
  LayerLabel label;                       ///< the layer in its operands' names
  mlir::Attribute key; ///< equal for steps that differ only in data; null: equal to none
};

/// Returns true if the pointer can be rebuilt anywhere from numbers alone. Other pointers are
/// passed as arguments.
bool isPlace(mlir::Value pointer);

/// Returns what two steps must have in common to differ only in data; null if the op must stay
/// where it is.
mlir::Attribute keyOf(mlir::Operation *op);

/// One function for all occurrences of the same steps, and the arguments of its calls.
struct LayerFunction {
  LayerOp op;
  /// Per occurrence: pointers that cannot be rebuilt; variables of collectives and of copies.
  std::vector<llvm::SmallVector<mlir::Value>> buffers;
  std::vector<llvm::SmallVector<mlir::Attribute>> pendings, copies;
};

/// How often a function names a variable: in starts, waits and calls; its caller counts, too.
using PendingUses = llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, unsigned>;

/// Inserts the function before the one with the first occurrence; `symbols` makes its name unique.
LayerFunction makeLayerFunction(llvm::ArrayRef<llvm::ArrayRef<Step>> occurrences,
                                const PendingUses &uses, mlir::SymbolTable &symbols);

} // namespace partita::rt

#endif // PARTITA_LIB_OUTLINE_LAYERFUNCTION_H
