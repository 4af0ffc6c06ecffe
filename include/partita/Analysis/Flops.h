//===- Flops.h - how much a program computes ----------------------------------------*- C++ -*-===//

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
