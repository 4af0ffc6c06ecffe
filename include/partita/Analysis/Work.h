//===- Work.h - how much an op has to do --------------------------------------------*- C++ -*-===//
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
  /// Machine balance of CPUs (about 50 GFLOP/s and 5 GB/s per core), within a factor of two of that of
  /// GPUs in float32.
  static constexpr int64_t kFlopsPerByte = 10;
};

/// Does the op cost nothing, because its one result is a view of its one operand?
bool isView(mlir::Operation *op);

/// Zero for an op without operands and for a collective.
Work workOf(mlir::Operation *op);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_WORK_H
