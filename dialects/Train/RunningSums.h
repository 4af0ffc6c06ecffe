//===- RunningSums.h - the sums that a region of train.accumulate makes itself ------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H
#define PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H

#include "dialects/Train/Train.h"

namespace partita::train {

/// The numbers of the sums that a region makes itself, in the order of its arguments.
llvm::SmallVector<int64_t> grownIn(AccumulateOp op, mlir::Region &region);

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_RUNNINGSUMS_H
