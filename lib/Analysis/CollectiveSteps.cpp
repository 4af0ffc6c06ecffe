//===- CollectiveSteps.cpp - parts of training that communicate alike ------------------------===//

#include "partita/Analysis/Collectives.h"
#include <set>

using namespace partita::analysis;

std::string Steps::text() const {
  if (isAll())
    return "";
  std::string first = std::to_string(after + 1);
  return until == 0           ? " from step " + first + " on"
         : until == after + 1 ? " in step " + first
                              : " in steps " + first + " to " + std::to_string(until);
}

std::vector<Steps> partita::analysis::phasesOf(llvm::ArrayRef<Collective> collectives) {
  std::set<int64_t> bounds;
  for (const Collective &c : collectives)
    bounds.insert({c.steps.after, c.steps.until});
  bounds.erase(0);
  std::vector<Steps> phases(1);
  for (int64_t bound : bounds) {
    phases.back().until = bound;
    phases.push_back({bound, 0});
  }
  return phases;
}
