//===- Train.h - parameters, states, accumulation, updates --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_H
#define PARTITA_DIALECTS_TRAIN_H

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
/// The sharding rule of an optimizer with so many states, operands and results: each element for
/// itself.
std::string optimizerRule(size_t states, unsigned operands, unsigned results);
/// Operands and results are as many as the optimizer has, and hyperparameters are finite.
llvm::LogicalResult verifyOptimizer(mlir::Operation *op);
} // namespace partita::train

#include "dialects/Train/TrainDialect.h.inc"
#include "dialects/Train/TrainEnums.h.inc"
#include "dialects/Train/TrainInterfaces.h.inc"
namespace partita::train {
/// Which pass of a micro-batch: what it computes, and of which of the stage's chunks of layers.
struct PassName {
  PassKind kind = PassKind::Forward;
  int64_t chunk = 0;
  bool operator==(const PassName &other) const {
    return kind == other.kind && chunk == other.chunk;
  }
  bool operator!=(const PassName &other) const { return !(*this == other); }
  /// "backward", and of a chunk that is not 0 "backward" + `separator` + "1".
  std::string text(llvm::StringRef separator = " ") const {
    return stringifyPassKind(kind).str() + (chunk ? (separator + llvm::Twine(chunk)).str() : "");
  }
};
} // namespace partita::train
#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.h.inc"
#define GET_OP_CLASSES
#include "dialects/Train/Optimizers.h.inc"

namespace partita::train {
/// What a function is to the program: its attribute says it, and of a function without one, as people
/// write them, its name. None for all other functions.
std::optional<EntryPoint> entryPointOf(mlir::Operation *function);
inline bool is(mlir::Operation *function, EntryPoint what) {
  return entryPointOf(function) == what;
}
/// The module's function that is this; null if there is none.
mlir::Operation *lookup(mlir::ModuleOp module, EntryPoint what);
template <typename FunctionOp> FunctionOp lookup(mlir::ModuleOp module, EntryPoint what) {
  return llvm::dyn_cast_or_null<FunctionOp>(lookup(module, what));
}
/// "train_step": how a function is called that becomes this.
inline llvm::StringRef nameOf(EntryPoint what) { return stringifyEntryPoint(what); }
void set(mlir::Operation *function, EntryPoint what);

/// The value of the pass that made it which an argument of a later pass of an `accumulate` is; any other value
/// itself.
mlir::Value forwardOf(mlir::Value value);

/// The parameter that a value is read from: itself, a piece of it, a copy, what was gathered; null
/// where it is something else.
mlir::FlatSymbolRefAttr parameterReadBy(mlir::Value value);
/// The one that an optimizer op updates.
mlir::FlatSymbolRefAttr updatedParameter(mlir::Operation *update);
/// The symbols of all that an optimizer op reads and changes and that is no parameter: states, and
/// the value where it is a master; of those that are read directly.
llvm::SmallVector<StateOp> stateSymbols(OptimizerInterface update);
/// The state that a value is read from; null where it is none.
StateOp stateReadBy(mlir::Value value);
/// What train.clip computes (runtime: clipScale).
inline double clipScale(double norm, double maxNorm) {
  if (!(norm < INFINITY))
    return NAN;
  return maxNorm > 0 ? 1 / std::max(1.0, (norm + 1e-6) / maxNorm) : 1;
}
/// What train.ratio computes (runtime: trustRatio).
inline double trustRatio(double valueSquares, double directionSquares, double least, double most) {
  double ratio = std::sqrt(valueSquares) / std::sqrt(directionSquares);
  return valueSquares > 0 && directionSquares > 0 ? std::min(std::max(ratio, least), most) : 1;
}
/// The names of all optimizers, in order.
llvm::SmallVector<llvm::StringRef> optimizerNames(mlir::MLIRContext *context);
/// The optimizer called `kind`: its op's name in a context, for an OperationState and for asking
/// its interface; none where there is none.
std::optional<mlir::RegisteredOperationName> findOptimizer(mlir::MLIRContext *context,
                                                           llvm::StringRef kind);
} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_H
