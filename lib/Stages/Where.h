//===- Where.h - the positions that have each value of a program of all stages ------*- C++ -*-===//
//
// Computed from the operands alone, so that no pass has to carry it: a parameter is where `pipe.on`
// says, a moved value where it was moved to, a pinned one where it was pinned. The result of an op
// is where all of its operands are. A value that depends on none of these is everywhere.
//
// A sum of values at different positions is partial: each of its positions has a part, until
// `pipe.sum` completes it. The result of an op with one partial operand is partial too if the op is
// linear in that operand: by its rule, or as a vector-Jacobian product, which is linear in the
// cotangent.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_STAGES_WHERE_H
#define PARTITA_LIB_STAGES_WHERE_H

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include <bitset>

namespace partita {

/// A set of positions (dialects/Pipe/Positions.h), each with the full value or each with part of a
/// sum.
struct Where {
  using Set = std::bitset<pipe::PipeDialect::kMaxPositions>;
  Set positions = Set().set();
  bool partial = false;

  static Where only(int64_t position) { return {Set().set(position), false}; }
  static Where on(llvm::ArrayRef<int64_t> positions, bool partial = false);
  bool has(int64_t position) const { return positions.test(position); }
  bool isOne() const { return positions.count() == 1; }
  int64_t first() const;
  bool isEverywhere() const { return !partial && positions.all(); }
  bool isWithin(const Where &other) const { return (positions & ~other.positions).none(); }
  /// Returns the stages of the positions; partial if several have a part. Everywhere stays
  /// everywhere.
  Where stages(const pipe::Positions &layout) const;
};

class StageMap {
public:
  /// Reports an error and fails at an op that reads a value that is not where it is needed.
  static mlir::FailureOr<StageMap> of(mlir::func::FuncOp function);

  Where of(mlir::Value value) const { return values.lookup(value); }
  Where of(mlir::Operation *op) const { return ops.lookup(op); }
  const pipe::Positions &layout() const { return positions; }
  /// Returns where a symbol's memory is: at a parameter's positions, for a state at its
  /// parameter's, else everywhere.
  static Where ofSymbol(mlir::Operation *symbol);

private:
  mlir::LogicalResult visit(mlir::Block &block);
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult loop(train::AccumulateOp loop);
  mlir::FailureOr<Where> pipeOp(mlir::Operation *op);
  mlir::FailureOr<Where> sumOfStages(mlir::Operation *op);
  mlir::FailureOr<Where> squaresOf(mlir::Operation *op);
  mlir::FailureOr<Where> anyOp(mlir::Operation *op);
  mlir::LogicalResult misplaced(mlir::Operation *op) const;
  std::string text(Where where) const;

  pipe::Positions positions;
  llvm::DenseMap<mlir::Value, Where> values;
  llvm::DenseMap<mlir::Operation *, Where> ops;
};

} // namespace partita

#endif // PARTITA_LIB_STAGES_WHERE_H
