//===- RunningSums.h - running sums and last values of train.accumulate -------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H
#define PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H

#include "dialects/Train/Train.h"

namespace partita::train {

/// The numbers of the sums that a region makes itself, in the order of its arguments.
llvm::SmallVector<int64_t> grownIn(AccumulateOp op, mlir::Region &region);

/// Are the loop's last values those that its regions yield, and does what runs in last slots alone keep to itself?
mlir::LogicalResult verifyLast(AccumulateOp op);
/// Of the attribute `train.last`.
mlir::LogicalResult verifyLastAttribute(mlir::Operation *op, mlir::Attribute value);

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H
