//===- Balance.h - cuts layers into contiguous ranges ----------------------------------*- C++ -*-===//
//
// `balance` and `nearest` compare all cuts by dynamic programming over the number of layers in the first ranges:
// O(ranges x layers^2).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_BALANCE_H
#define PARTITA_STAGES_BALANCE_H

#include "partita/Analysis/Flops.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::stages {

/// A range that is too much: no chosen range may contain all layers in [begin, end).
struct TooMuch {
  int64_t range, begin, end;
};

/// The cost of the layers [begin, end) as the `range`-th range.
using RangeCost = llvm::function_ref<double(int64_t range, int64_t begin, int64_t end)>;

/// Returns the first layer of each range. Minimizes the cost of the most expensive range and, among
/// equals, the sum of squared costs. Empty if every cut has a range that is too much.
llvm::SmallVector<int64_t> balance(int64_t layers, int64_t ranges, RangeCost cost,
                                   llvm::ArrayRef<TooMuch> tooMuch = {});

class RangeCosts;
struct Schedule;
/// Returns the first layer of each position of a schedule whose stages have several chunks. Chunks of
/// different stages wait for each other, so neither the slowest chunk nor the slowest stage decides:
/// minimizes the simulated time of a step. All cuts are compared if few enough; otherwise the cuts with
/// the fastest slowest chunk, and equal numbers of layers, are improved by moving cuts, one or several
/// neighbors by one layer, until that makes no step shorter.
llvm::SmallVector<int64_t> balanceChunks(int64_t layers, const Schedule &schedule,
                                         const RangeCosts &costs);

/// Returns the simulated time of a step with these cuts, which `balanceChunks` minimizes.
double timeOf(int64_t layers, const Schedule &schedule, const RangeCosts &costs,
              llvm::ArrayRef<int64_t> firsts);
/// Returns all cuts that differ by moving one cut, or several neighbors, by one layer.
std::vector<llvm::SmallVector<int64_t>> neighborsOf(llvm::ArrayRef<int64_t> firsts, int64_t layers);

/// Like `balance`, for the elements of parameters. Those before the first layer or after the last one count
/// with that layer.
llvm::SmallVector<int64_t> balanceParameters(llvm::ArrayRef<LayerWork> work, int64_t ranges);

/// Returns the cuts nearest to the given ones, in layers moved.
llvm::SmallVector<int64_t> nearest(llvm::ArrayRef<int64_t> firsts, int64_t layers,
                                   llvm::ArrayRef<TooMuch> tooMuch);

} // namespace partita::stages

#endif // PARTITA_STAGES_BALANCE_H
