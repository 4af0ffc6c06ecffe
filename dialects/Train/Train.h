//===- Train.h - parameters, states, accumulation, updates --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_TRAIN_H
#define PARTITA_DIALECTS_TRAIN_TRAIN_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

namespace partita::train {
/// A number that shapes an optimizer's updates, and its usual value.
struct Hyperparameter {
  llvm::StringRef name;
  double usual;
};
/// C++ over scalars: `target = expression`.
struct Assignment {
  llvm::StringRef target, expression;
};
/// Returns the sharding rule of an optimizer with these numbers of states, operands and results:
/// elementwise.
std::string optimizerRule(size_t states, unsigned operands, unsigned results);
/// Checks the numbers of operands and results, and that hyperparameters are finite.
llvm::LogicalResult verifyOptimizer(mlir::Operation *op);
/// See Norms.td.
template <typename Op> class OfFullTensors : public mlir::OpTrait::TraitBase<Op, OfFullTensors> {};
/// The place of a name in a list that has it.
inline size_t placeOf(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names) {
  return llvm::find(names, name) - names.begin();
}
} // namespace partita::train

#include "dialects/Train/TrainDialect.h.inc"
#include "dialects/Train/TrainEnums.h.inc"
#include "dialects/Train/TrainInterfaces.h.inc"
namespace partita::train {
/// Identifies a pass of a micro-batch: what it computes, and for which of the stage's chunks of
/// layers.
struct PassName {
  PassKind kind = PassKind::Forward;
  int64_t chunk = 0;
  bool operator==(const PassName &other) const {
    return kind == other.kind && chunk == other.chunk;
  }
  bool operator!=(const PassName &other) const { return !(*this == other); }
  /// Returns "backward" or, for a chunk other than 0, "backward" + `separator` + "1".
  std::string text(llvm::StringRef separator = " ") const {
    return stringifyPassKind(kind).str() + (chunk ? (separator + llvm::Twine(chunk)).str() : "");
  }
};
/// A pass of one micro-batch, an entry of a schedule.
struct Slot : PassName {
  int64_t microBatch = 0;
  const PassName &pass() const { return *this; }
  bool operator==(const Slot &other) const {
    return pass() == other.pass() && microBatch == other.microBatch;
  }
  bool operator!=(const Slot &other) const { return !(*this == other); }
};
/// Returns true if the slots are those of one chunk and each micro-batch's backward pass runs directly
/// after its forward pass, as on the last stage of 1F1B.
bool alternate(llvm::ArrayRef<Slot> slots);
} // namespace partita::train
#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.h.inc"
#define GET_OP_CLASSES
#include "dialects/Train/Optimizers.h.inc"

namespace partita::train {
/// Returns the entry point that a function is, by its attribute alone; none for all others, whatever
/// their names.
std::optional<EntryPoint> entryPointOf(mlir::Operation *function);
inline bool is(mlir::Operation *function, EntryPoint what) {
  return entryPointOf(function) == what;
}
/// Returns the module's function for this entry point, or null.
mlir::Operation *lookup(mlir::ModuleOp module, EntryPoint what);
template <typename FunctionOp> FunctionOp lookup(mlir::ModuleOp module, EntryPoint what) {
  return llvm::dyn_cast_or_null<FunctionOp>(lookup(module, what));
}
/// Returns the name of a function that is created as this entry point: "train_step".
inline llvm::StringRef nameOf(EntryPoint what) { return stringifyEntryPoint(what); }
void set(mlir::Operation *function, EntryPoint what);
/// Returns what to add to the message that a module lacks an entry point: that a function has its
/// name and no attribute, or "".
std::string hintFor(mlir::ModuleOp module, EntryPoint missing);
/// Reports a symbol that has the name of an entry point about to be created.
llvm::LogicalResult expectFreeName(mlir::ModuleOp module, EntryPoint made);

/// Returns, for an argument of a later pass of an `accumulate`, the value in the pass that made it;
/// any other value itself.
mlir::Value forwardOf(mlir::Value value);

/// Returns the parameter that a value is read from: itself, its shard, a copy, or gathered; null
/// for other values.
mlir::FlatSymbolRefAttr parameterReadBy(mlir::Value value);
/// Returns the parameter that an optimizer op updates.
mlir::FlatSymbolRefAttr updatedParameter(mlir::Operation *update);
/// Returns the states that an optimizer op changes, including the value if it is a master; only
/// those that are read directly.
llvm::SmallVector<StateOp> stateSymbols(OptimizerInterface update);
/// Returns the state that a value is read from, or null.
StateOp stateReadBy(mlir::Value value);
/// Computes train.clip (runtime: clipScale).
inline double clipScale(double norm, double maxNorm) {
  if (!(norm < INFINITY))
    return NAN;
  return maxNorm > 0 ? 1 / std::max(1.0, (norm + 1e-6) / maxNorm) : 1;
}
/// Computes train.ratio (runtime: trustRatio).
inline double trustRatio(double valueSquares, double directionSquares, double least, double most) {
  double ratio = std::sqrt(valueSquares) / std::sqrt(directionSquares);
  return valueSquares > 0 && directionSquares > 0 ? std::min(std::max(ratio, least), most) : 1;
}
/// The contents of an optimizer's definition (Optimizers.td), for code without a context.
struct OptimizerRow {
  llvm::StringRef name;
  llvm::SmallVector<Hyperparameter> hyperparameters;
  llvm::SmallVector<llvm::StringRef> scalars; ///< "ratio": LAMB's
  llvm::StringRef withMomentum;               ///< what it becomes with a momentum; "": itself
  llvm::StringRef summed;                     ///< the state that ranks may average; "": none
  bool freezesRatio = false; ///< after the exact steps, but for a factor: 1-bit LAMB
};
/// Returns all optimizers, by name.
llvm::ArrayRef<OptimizerRow> optimizers();
/// Returns the optimizer called `kind`: its op's name in a context, for an OperationState and for
/// its interface; none if it is unknown.
std::optional<mlir::RegisteredOperationName> findOptimizer(mlir::MLIRContext *context,
                                                           llvm::StringRef kind);
} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_TRAIN_H
