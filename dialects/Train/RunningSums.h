//===- RunningSums.h - running sums and last values of train.accumulate -------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H
#define PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H

#include "dialects/Train/Train.h"

namespace partita::train {

/// Returns the numbers of the sums to which a region adds itself, in the order of its arguments.
llvm::SmallVector<int64_t> grownIn(AccumulateOp op, mlir::Region &region);

/// Checks that the loop's last values are those that its regions yield, and that ops outside last
/// slots use no results of ops in them.
mlir::LogicalResult verifyLast(AccumulateOp op);
/// Verifies the attribute `train.last`.
mlir::LogicalResult verifyLastAttribute(mlir::Operation *op, mlir::Attribute value);

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H
