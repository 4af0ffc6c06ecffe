//===- Work.h - estimates the work of an op -----------------------------------------*- C++ -*-===//
//
// An estimate of one rank's work on one op of any phase, for schedules.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_WORK_H
#define PARTITA_ANALYSIS_WORK_H

#include "mlir/IR/Operation.h"

namespace partita::analysis {

/// One rank's work on an op, from its shard rule and its types.
struct Work {
  /// Of matmuls, elementwise ops and reductions (Flops.h).
  int64_t flops = 0;
  /// Bytes of its operands and results, each once; 0 for a view, which costs nothing.
  int64_t bytes = 0;

  /// One number to compare ops by: FLOPs, or the FLOPs that fit into the time its memory takes.
  int64_t cost() const { return std::max(flops, kFlopsPerByte * bytes); }
  /// Machine balance of CPUs (about 50 GFLOP/s and 5 GB/s per core), within a factor of two of that
  /// of GPUs in float32.
  static constexpr int64_t kFlopsPerByte = 10;
};

/// Returns true if the op costs nothing, because its only result is a view of its only operand.
bool isView(mlir::Operation *op);

/// Returns the work of an op; zero for an op without operands and for a collective.
Work workOf(mlir::Operation *op);

/// The cost of an op by pass; one that fuses both passes, as of the loss, has a share in each.
struct PassCosts {
  int64_t forward = 0, backward = 0;
};
PassCosts passCostsOf(mlir::Operation *op);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_WORK_H
