//===- Where.h - at which positions a program of all stages has its values ----------*- C++ -*-===//
//
// Follows from the operands alone, so that no pass has to carry it: a parameter is where `pipe.on`
// says, a moved value where it was moved to, a pinned one where it was pinned; what is computed of
// them is where all operands are; what depends on none of them is everywhere.
//
// A sum of values of different positions is partial: each of its positions has a part, until `pipe.sum`
// completes it. So is what an op makes of one partial operand if it is linear in that: by its rule, or
// as a vector-Jacobian product, which is linear in the cotangent.
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

/// Some positions (dialects/Pipe/Positions.h); does each have the full value or part of a sum?
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
  /// The stages of the positions, partial if several have a part; what is everywhere is so.
  Where stages(const pipe::Positions &layout) const;
};

class StageMap {
public:
  /// Fails after an error at an op that reads what is not where it is needed.
  static mlir::FailureOr<StageMap> of(mlir::func::FuncOp function);

  Where of(mlir::Value value) const { return values.lookup(value); }
  Where of(mlir::Operation *op) const { return ops.lookup(op); }
  const pipe::Positions &layout() const { return positions; }
  /// Where a symbol's memory is: a parameter's positions, its states', else everywhere.
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
