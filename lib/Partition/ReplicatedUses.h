//===- ReplicatedUses.h - which operands must be replicated -------------------------*- C++ -*-===//
//
// Sweeps backward over a function and finds the values that must be replicated, per axis: operands
// that lack a split letter of their op (the axis splits the op, but not the operand). If such a
// value depends only on parameters and constants, the values it is computed from must be
// replicated, too, and so on up to the parameters: f is inserted once, at their definition, outside
// of the loop over micro-batches. A value that depends on data gets f where it is, unless
// everything that it depends on, up to values that get f anyway, may be replicated, e.g. key heads
// that all ranks compute from the input of the query heads, which has f.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_REPLICATEDUSES_H
#define PARTITA_LIB_PARTITION_REPLICATEDUSES_H

#include "lib/Partition/Flow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita {

class ReplicatedUses {
public:
  /// Expects a function between propagation and materialization. Finds nothing without cotangents,
  /// since then invariant and replicated values do not differ.
  ReplicatedUses(mlir::func::FuncOp function, par::MeshAttr mesh, bool cotangents);

  bool contains(mlir::OpOperand &use, mlir::StringAttr axis) const {
    return replicatedUses.contains({&use, axis});
  }
  /// Returns the splits that propagation wrote for a value.
  par::Layout wanted(mlir::Value value);
  /// Returns true if the value depends only on parameters and constants.
  bool isIndependent(mlir::Value value) const { return independent(value); }

private:
  /// Returns the letter of an op's rule that `axis` splits, or -1.
  int letterOf(mlir::Operation *op, const ShardRule &rule, mlir::StringAttr axis);
  /// Finds the largest set of ops without a letter split over the axis such that all uses of their
  /// results need them replicated or are in the set, and all operands depend only on parameters,
  /// get f anyway, or come from the set.
  void findClosed(mlir::StringAttr axis);
  /// Returns true if all uses need the value replicated. Layers that are not split, next to layers
  /// that are, may not.
  bool allWant(mlir::Value value, mlir::StringAttr axis);
  void demandOf(par::NarrowOp narrow);
  void demand(mlir::Operation *op);

  mlir::func::FuncOp function;
  par::MeshAttr mesh;
  DataIndependence independent;
  llvm::DenseSet<std::pair<mlir::Value, mlir::StringAttr>> replicated;
  llvm::DenseSet<std::pair<mlir::OpOperand *, mlir::StringAttr>> replicatedUses;
  llvm::DenseSet<std::pair<mlir::Operation *, mlir::StringAttr>> closed;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_REPLICATEDUSES_H
