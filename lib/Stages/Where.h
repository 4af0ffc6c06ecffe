//===- Where.h - on which stages a program of all stages has its values -------------*- C++ -*-===//
//
// Follows from the operands alone, so that no pass has to carry it: a parameter is where `pipe.on`
// says, a moved value where it was moved to, a pinned one where it was pinned; what is computed of
// them is where all operands are; what depends on none of them is everywhere.
//
// A sum of values of different stages is partial: each of its stages has a part, until `pipe.sum`
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
#include "llvm/ADT/bit.h"

namespace partita {

/// Some stages, at most 64, and whether each has the whole value or a part of a sum.
struct Where {
  uint64_t stages = ~uint64_t(0);
  bool partial = false;

  static Where only(int64_t stage) { return {uint64_t(1) << stage, false}; }
  static Where on(llvm::ArrayRef<int64_t> stages, bool partial = false);
  bool has(int64_t stage) const { return stages >> stage & 1; }
  bool isOne() const { return stages && !(stages & (stages - 1)); }
  int64_t first() const { return llvm::countr_zero(stages); }
  bool isEverywhere() const { return !partial && stages == ~uint64_t(0); }
};

class StageMap {
public:
  /// Fails after an error at an op that reads what is not where it is needed.
  static mlir::FailureOr<StageMap> of(mlir::func::FuncOp function);

  Where of(mlir::Value value) const { return values.lookup(value); }
  bool isOn(mlir::Operation *op, int64_t stage) const { return ops.lookup(op).has(stage); }
  /// Where a symbol's memory is: a parameter's stages, its states', else everywhere.
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

  llvm::DenseMap<mlir::Value, Where> values;
  llvm::DenseMap<mlir::Operation *, Where> ops;
};

} // namespace partita

#endif // PARTITA_LIB_STAGES_WHERE_H
