//===- StageMemory.h - finds cuts into pipeline stages that all fit -----------------*- C++ -*-===//
//
// A stage's memory is not estimated: cuts are compiled. If a stage needs too much, later cuts must
// not give it all of these layers again, and the best of the remaining cuts are compiled next. So
// the first cuts that fit are the best that do, provided that a stage with more layers needs no
// less memory. With several chunks per stage, the next cuts are
// the cheapest neighbors of those known.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_STAGES_STAGEMEMORY_H
#define PARTITA_STAGES_STAGEMEMORY_H

#include "partita/Stages/Spans.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace partita::stages {

/// The bytes that each stage's ranks need, and the first layer of each position.
struct StageMemory {
  std::vector<uint64_t> bytes;
  llvm::SmallVector<int64_t> cuts;
};

/// Compiles with these cuts ("cuts:4,8") and returns the result; nothing if that fails.
using CutPlanner = llvm::function_ref<std::optional<StageMemory>(const std::string &assign)>;

/// The outcome of a search for cuts.
struct CutSearch {
  std::string assign;    ///< the cuts that fit, "cuts:4,8"; empty if none were found
  uint64_t bytes = 0;    ///< that the fullest stage needs with them
  int tried = 0;         ///< cuts that were compiled
  bool isSettled = true; ///< if none were found: none exist (or else too many were tried)
};

/// Finds the cuts that fit and balance the work best. `needed` is with the cuts that balance it
/// without a limit.
CutSearch findBalancedCuts(const StageMemory &needed, uint64_t limit, int64_t layers,
                           const RangeCosts &costs, CutPlanner planner);

/// Finds the cuts that fit and are nearest to those of `needed`, in layers moved.
CutSearch findNearestCuts(const StageMemory &needed, uint64_t limit, int64_t layers,
                          CutPlanner planner);

/// What makes some cuts better than others, such as the time of a step; less is better.
using CutPrice = llvm::function_ref<double(llvm::ArrayRef<int64_t> firsts)>;

/// Finds cheap cuts that fit, for stages with several chunks. Begins with the cuts of `needed` and
/// goes on with the cheapest cuts that differ by one move from those it has been at.
CutSearch findCheapCuts(const StageMemory &needed, uint64_t limit, int64_t layers,
                        const pipe::Positions &layout, CutPrice price, CutPlanner planner);

} // namespace partita::stages

#endif // PARTITA_STAGES_STAGEMEMORY_H
