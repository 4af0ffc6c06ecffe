//===- FunctionCheck.h - does every op find what it reads? --------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_MEMORY_CHECK_FUNCTIONCHECK_H
#define PARTITA_LIB_MEMORY_CHECK_FUNCTIONCHECK_H

#include "lib/Memory/Check/Spots.h"

namespace partita::memory::check {

/// The memory accesses of a pass of a loop with an order, whichever micro-batch the pass runs for.
struct PassTrace {
  std::vector<Bytes> writes, lastWrites; ///< lastWrites: in the last slot only
  struct Read {
    int content;
    Bytes bytes;
    mlir::Operation *user;
  };
  std::vector<Read> reads;      ///< of values that earlier passes saved
  llvm::SmallVector<int> saves; ///< contents
};

/// Runs a function's ops in program order, without values, and tracks which content is where. It knows no lifetimes: an
/// operand has to be where it was put, whatever was written in between. A loop runs twice, so that one micro-batch
/// finds memory as the previous one left it.
class FunctionCheck {
public:
  FunctionCheck(mlir::func::FuncOp function, const SymbolSpots &symbols, const Sizes &limits)
      : function(function), symbols(symbols), spots(function, symbols, limits) {}

  mlir::LogicalResult run();
  const Sizes &used() const { return spots.used; }

private:
  mlir::LogicalResult check(mlir::Block &block);
  mlir::LogicalResult check(mlir::Operation *op);
  mlir::LogicalResult checkKernel(rt::KernelInterface kernel);
  mlir::LogicalResult checkResult(rt::KernelInterface kernel, mlir::OpResult result);
  mlir::LogicalResult checkWorkedIn(mlir::Operation *op);
  mlir::LogicalResult checkWait(AsyncWaitInterface wait);
  mlir::LogicalResult checkWrite(train::WriteOp write);
  mlir::LogicalResult checkReturn(mlir::func::ReturnOp end);
  mlir::LogicalResult checkSymbols();

  mlir::LogicalResult checkLoop(train::AccumulateOp loop);
  mlir::LogicalResult checkOrder(train::AccumulateOp loop);
  mlir::LogicalResult checkPass(train::AccumulateOp loop, mlir::Region &region, bool isLastSlot);
  mlir::LogicalResult checkYield(train::YieldOp yield, bool isLastSlot);
  /// Puts the values that earlier passes saved where the pass expects them.
  void putSaved(train::AccumulateOp loop, mlir::Region &region, PassTrace &trace);
  mlir::LogicalResult checkSlots(train::AccumulateOp loop);

  mlir::LogicalResult read(mlir::Value value, mlir::Operation *user);
  mlir::LogicalResult read(int content, const Bytes &bytes, mlir::Operation *user);
  /// Puts a content in its place.
  mlir::LogicalResult write(int content, mlir::Operation *by);
  mlir::LogicalResult noteWrite(const Bytes &bytes, mlir::Operation *by);

  mlir::func::FuncOp function;
  const SymbolSpots &symbols;
  Spots spots;
  std::vector<PassTrace> traces;  ///< of the loop with an order that the walk is in
  PassTrace *trace = nullptr;     ///< of the pass, while it is recorded
  llvm::SmallVector<Bytes> rings; ///< of that loop, all blocks
  bool isInLastSlot = false;      ///< of the op
};

} // namespace partita::memory::check

#endif // PARTITA_LIB_MEMORY_CHECK_FUNCTIONCHECK_H
