//===- Balance.h - cuts layers into contiguous ranges ----------------------------------*- C++ -*-===//
//
// Compares all cuts by dynamic programming over the number of layers in the first ranges:
// O(ranges x layers^2).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_BALANCE_H
#define PARTITA_STAGES_BALANCE_H

#include "partita/Analysis/Flops.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::stages {

/// A range that is too much: no chosen range may contain all layers in [begin, end).
struct TooMuch {
  int64_t range, begin, end;
};

/// What ranges of layers cost.
struct LayerCosts {
  llvm::SmallVector<double> own; ///< of each layer
  struct Shared {
    int64_t first, last; ///< every range with any of these layers has the cost, once
    double cost;
  };
  llvm::SmallVector<Shared> shared;
};

/// Returns the cost of each layer's passes. Ops before the first layer or after the last one count
/// with that layer.
LayerCosts costsOf(llvm::ArrayRef<LayerWork> work, llvm::ArrayRef<SharedWork> shared);
/// The same for the elements of parameters.
LayerCosts parametersOf(llvm::ArrayRef<LayerWork> work);

/// Returns the first layer of each range. Minimizes the cost of the most expensive range and, among
/// equals, the sum of squared costs. Empty if every cut has a range that is too much.
llvm::SmallVector<int64_t> balance(const LayerCosts &costs, int64_t ranges,
                                   llvm::ArrayRef<TooMuch> tooMuch = {});

/// Returns the cuts nearest to the given ones, in layers moved.
llvm::SmallVector<int64_t> nearest(llvm::ArrayRef<int64_t> firsts, int64_t layers,
                                   llvm::ArrayRef<TooMuch> tooMuch);

} // namespace partita::stages

#endif // PARTITA_STAGES_BALANCE_H
