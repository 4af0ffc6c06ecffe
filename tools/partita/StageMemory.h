//===- StageMemory.h - finds cuts into pipeline stages that all fit -----------------*- C++ -*-===//
//
// A stage's memory is not estimated: cuts are compiled. If a stage needs too much, later cuts must
// not give it all of these layers again, and the best of the remaining cuts are compiled next. So
// the first cuts that fit are the best that do, provided that a stage with more layers needs no
// less memory. Each stage has one chunk.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_STAGEMEMORY_H
#define PARTITA_TOOLS_STAGEMEMORY_H

#include "partita/Stages/Spans.h"
#include "tools/partita/MemoryLimit.h"

namespace partita::tool {

/// The outcome of a search for cuts.
struct CutSearch {
  std::string assign; ///< the cuts that fit, "cuts:4,8"; empty if none were found
  Footprint footprint;
  int tried = 0;         ///< cuts that were compiled
  bool isSettled = true; ///< if none were found: none exist (or else too many were tried)
};

/// Finds the cuts that fit and balance the work best. `needed`: the footprint with the cuts that
/// balance it without a limit.
CutSearch findBalancedCuts(const Request &request, const Footprint &needed, uint64_t limit,
                           int64_t layers, const stages::RangeCosts &costs, const Planner &planner);

/// Finds the cuts that fit and are nearest to those of `needed`, in layers moved.
CutSearch findNearestCuts(const Request &request, const Footprint &needed, uint64_t limit,
                          int64_t layers, const Planner &planner);

} // namespace partita::tool

#endif // PARTITA_TOOLS_STAGEMEMORY_H
