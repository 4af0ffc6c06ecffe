//===- Warmup.h - warns of statistics that are frozen too early ---------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OPTIMIZER_WARMUP_H
#define PARTITA_LIB_OPTIMIZER_WARMUP_H

#include "mlir/IR/Operation.h"

namespace partita::optimizer {

/// Warns if a variance that stays after `steps` steps makes later ones too long. It begins with 0 and keeps `kept` of itself in a step; `corrects`: its
/// bias is corrected.
void warnOfVariance(mlir::Operation *at, double steps, double kept, bool corrects);

/// Warns if the running mean of 1-bit LAMB's ratios, which begins with 0 and keeps `kept` of itself in a step, is far from their mean.
void warnOfRatios(mlir::Operation *at, double steps, double kept);

} // namespace partita::optimizer

#endif // PARTITA_LIB_OPTIMIZER_WARMUP_H
