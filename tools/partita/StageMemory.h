//===- StageMemory.h - cuts into pipeline stages that all fit -----------------------*- C++ -*-===//
//
// What a stage needs is not estimated: cuts are compiled. A stage that needs too much must not have all
// of its layers again, and of the cuts that this leaves the best ones are compiled next. So the first
// ones that fit are the best ones that do, if a stage with more layers needs no less. Stages have one chunk each.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_STAGEMEMORY_H
#define PARTITA_TOOLS_STAGEMEMORY_H

#include "partita/Analysis/Flops.h"
#include "tools/partita/MemoryLimit.h"

namespace partita::tool {

/// What became of a search.
struct CutSearch {
  std::string assign; ///< "cuts:4,8", that fit; empty where none were found
  Footprint footprint;
  int tried = 0;         ///< cuts that were compiled
  bool isSettled = true; ///< where none were found: are there none? Or were too many tried?
};

/// The cuts that fit and balance the work best. `needed`: of those that balance it without a limit.
CutSearch findBalancedCuts(const Request &request, const Footprint &needed, uint64_t limit,
                           llvm::ArrayRef<LayerWork> work, const Planner &planner);

/// The cuts that fit and are nearest to those that `needed` is of, in layers moved.
CutSearch findNearestCuts(const Request &request, const Footprint &needed, uint64_t limit,
                          llvm::ArrayRef<LayerWork> work, const Planner &planner);

} // namespace partita::tool

#endif // PARTITA_TOOLS_STAGEMEMORY_H
