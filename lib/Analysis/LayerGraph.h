//===- LayerGraph.h - the graph in which layers are found ---------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_ANALYSIS_LAYERGRAPH_H
#define PARTITA_LIB_ANALYSIS_LAYERGRAPH_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::analysis {

/// A skip connection over layers: op `end` reads what op `from` makes beside what the layers between
/// them make of it. `to` reads it first: `end` itself, or the first op of a chain of ops that only
/// the skip connection has (a norm, a projection).
struct Bridge {
  int from, to, end;
};

/// A block's ops by index, in program order, without conjugates and moves.
class LayerGraph {
public:
  explicit LayerGraph(mlir::Block &block);

  /// Returns the skip connections over two residual sums or more. They start at what is the stream
  /// for a residual sum: a mask or a position bias, which many layers read, is none.
  llvm::SmallVector<Bridge> bridges() const;
  /// Returns the graph without these edges.
  LayerGraph without(llvm::SmallVector<Bridge> bridges) const;

  /// Looks through conjugates and moves.
  static mlir::Value through(mlir::Value value);
  int indexOfDefinition(mlir::Value value) const;
  /// Returns true if the value is computed from a parameter with two or more dimensions, and from
  /// no data.
  bool isOfMatrix(mlir::Value value) const;
  /// Returns true if op `a` feeds op `b`, directly or indirectly.
  bool feeds(int a, int b) const;

  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<llvm::SmallVector<int, 2>> operands, users;
  llvm::SmallVector<bool> dependsOnData; ///< on a block's arguments
  llvm::SmallVector<Bridge> removed;     ///< see without()

private:
  void read(int i);
  void addUser(int operand, int user);

  llvm::DenseMap<mlir::Operation *, int> indexOf;
};

} // namespace partita::analysis

#endif // PARTITA_LIB_ANALYSIS_LAYERGRAPH_H
