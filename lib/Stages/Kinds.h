//===- Kinds.h - what values depend on ----------------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_STAGES_KINDS_H
#define PARTITA_LIB_STAGES_KINDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace partita {

/// Which values of a forward program are activations, each of one position. All others are computed
/// wherever they are needed: what depends on parameters alone or on inputs alone, and what ops
/// without reductions compute from both of these.
class Kinds {
public:
  /// `block`: the function's body, or that of its loop over micro-batches.
  Kinds(mlir::func::FuncOp function, mlir::Block *block);

  bool isActivation(mlir::Operation *op) const;
  bool isActivation(mlir::Value value) const { return kinds.lookup(value).isActivation(); }
  /// Returns true for a value that depends on parameters and is no activation.
  bool isOfParameters(mlir::Value value) const {
    Kind kind = kinds.lookup(value);
    return kind.parameter && !kind.isActivation();
  }
  /// Makes a new value of the kind of another one.
  void set(mlir::Value value, mlir::Value like) { kinds[value] = kinds.lookup(like); }

private:
  /// Whether a value is computed from a parameter, from an input, and from both by ops that every
  /// position repeats.
  struct Kind {
    bool parameter = false, input = false, repeated = false;
    bool isActivation() const { return parameter && input && !repeated; }
  };

  llvm::DenseMap<mlir::Value, Kind> kinds;
};

/// Returns the block whose ops are a function's forward program: that of its loop over micro-batches,
/// if it has one.
mlir::Block *forwardBlock(mlir::func::FuncOp function);

} // namespace partita

#endif // PARTITA_LIB_STAGES_KINDS_H
