//===- Flops.h - how much a program computes ----------------------------------------*- C++ -*-===//
//
// For a report, of a program as imported: every op is a primitive, of which the rule alone says all,
// and the sum is exact. Work.h is for schedules: an estimate of one op of any phase, attention and
// other composites too, whose rules do not say how many products they make, and of its memory.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_FLOPS_H
#define PARTITA_ANALYSIS_FLOPS_H

#include "mlir/IR/Operation.h"

namespace partita {

/// Floating-point operations of a program on whole tensors, from the ops' rules.
struct Flops {
  double products = 0;    ///< of contractions: a multiplication and an addition per point
  double elementwise = 0; ///< one per element of what elementwise ops and reductions read
};

/// Of all ops within `root`, as often as they stand there.
Flops countFlops(mlir::Operation *root);

} // namespace partita

#endif // PARTITA_ANALYSIS_FLOPS_H
