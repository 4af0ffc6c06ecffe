//===- Work.h - how much an op has to do --------------------------------------------*- C++ -*-===//
//
// For schedules, which compare ops of any phase: an estimate of one op. What a program computes in
// all, exactly, is Flops.h's.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_WORK_H
#define PARTITA_ANALYSIS_WORK_H

#include "mlir/IR/Operation.h"

namespace partita::analysis {

/// One rank's work on an op, from its shard rule and its types.
struct Work {
  /// Twice the points that two of its tensors span together: m * k * n of a matmul, queries * keys
  /// * head size of an attention. Right for matmuls; what an op does besides is a small factor.
  int64_t flops = 0;
  /// Of its operands and results, each once; 0 for a view, which costs nothing.
  int64_t bytes = 0;

  /// One number to compare ops by: FLOPs, or the FLOPs that fit into the time its memory takes.
  int64_t cost() const { return std::max(flops, kFlopsPerByte * bytes); }
  /// Machine balance: of CPUs (a core does about 50 GFLOP/s and has 5 GB/s), within a factor of
  /// two of GPUs' float32.
  static constexpr int64_t kFlopsPerByte = 10;
};

/// Does the op cost nothing, its one result being its one operand seen in another way?
bool isView(mlir::Operation *op);

/// Of an op without operands, or of a collective, nothing.
Work workOf(mlir::Operation *op);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_WORK_H
