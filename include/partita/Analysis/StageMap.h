//===- StageMap.h - the positions that have each value of a program of all stages ---*- C++ -*-===//
//
// Computed from the operands alone, so that no pass has to carry it: a parameter is where `pipe.on`
// says, a moved value where it was moved to, a pinned one where it was pinned. The result of an op
// is where all of its operands are. A value that depends on none of these is everywhere.
//
// A sum of values at different positions is partial: each of its positions has a part, until
// `pipe.sum` completes it. The result of an op with one partial operand is partial too if the op is
// linear in that operand. An op that places its results otherwise says so (PlacedInterface).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_STAGEMAP_H
#define PARTITA_ANALYSIS_STAGEMAP_H

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace partita {

class StageMap {
public:
  /// Reports an error and fails at an op that reads a value that is not where it is needed.
  static mlir::FailureOr<StageMap> of(mlir::func::FuncOp function);

  Holders of(mlir::Value value) const { return values.lookup(value); }
  Holders of(mlir::Operation *op) const { return ops.lookup(op); }
  const pipe::Positions &layout() const { return positions; }
  /// Returns where a symbol's memory is: at a parameter's positions, for a state at its
  /// parameter's, else everywhere.
  static Holders ofSymbol(mlir::Operation *symbol, mlir::SymbolTableCollection &tables);

private:
  mlir::LogicalResult visit(mlir::Block &block);
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult loop(train::AccumulateOp loop);
  mlir::FailureOr<Holders> placedOp(PlacedInterface op);
  mlir::FailureOr<Holders> anyOp(mlir::Operation *op);
  mlir::LogicalResult misplaced(mlir::Operation *op) const;
  llvm::StringRef noun() const { return pipe::positionNoun(positions); }

  pipe::Positions positions;
  llvm::DenseMap<mlir::Value, Holders> values;
  llvm::DenseMap<mlir::Operation *, Holders> ops;
  /// A deep model has thousands of symbols.
  std::shared_ptr<mlir::SymbolTableCollection> tables =
      std::make_shared<mlir::SymbolTableCollection>();
};

} // namespace partita

#endif // PARTITA_ANALYSIS_STAGEMAP_H
