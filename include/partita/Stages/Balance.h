//===- Balance.h - layers cut into contiguous ranges -----------------------------------*- C++ -*-===//
//
// All ways of cutting are compared, by dynamic programming over how many layers the first ranges
// have: O(ranges x layers^2).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_BALANCE_H
#define PARTITA_STAGES_BALANCE_H

#include "partita/Analysis/Flops.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::stages {

/// Layers that a range must not have all of: [begin, end) is too much for it.
struct TooMuch {
  int64_t range, begin, end;
};

/// What each layer costs, in FLOPs of both passes or in elements of parameters. What stands in front of the first layer
/// and behind the last one counts with that layer.
llvm::SmallVector<double> costsOfLayers(llvm::ArrayRef<LayerWork> work, bool byParameters = false);

/// The first layer of each range, so that the most expensive range costs as little as it can, and among those ways that
/// the squares of the costs do. Empty where every way has too much in some range.
llvm::SmallVector<int64_t> balance(llvm::ArrayRef<double> costs, int64_t ranges,
                                   llvm::ArrayRef<TooMuch> tooMuch = {});

/// The cuts that are nearest to the given ones, in layers moved.
llvm::SmallVector<int64_t> nearest(llvm::ArrayRef<int64_t> firsts, int64_t layers,
                                   llvm::ArrayRef<TooMuch> tooMuch);

} // namespace partita::stages

#endif // PARTITA_STAGES_BALANCE_H
