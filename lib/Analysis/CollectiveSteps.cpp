//===- CollectiveSteps.cpp - parts of training that communicate alike ------------------------===//

#include "partita/Analysis/Collectives.h"
#include "runtime/include/partita_rt/one_bit_shapes.h"
#include <set>

using namespace partita::analysis;

std::string Steps::text() const {
  if (isAll())
    return "";
  if (doubling != 0 && until != 0)
    return " in " + std::to_string(partita_rt::exactSteps(until, doubling)) + " of steps 1 to " +
           std::to_string(until);
  if (doubling != 0)
    return " in all other steps";
  std::string first = std::to_string(after + 1);
  return until == 0           ? " from step " + first + " on"
         : until == after + 1 ? " in step " + first
                              : " in steps " + first + " to " + std::to_string(until);
}

void Steps::addTo(llvm::json::Object &object) const {
  if (isAll())
    return;
  object["after"] = after, object["until"] = until;
  if (doubling != 0)
    object["doubling"] = doubling;
}

std::vector<Steps> partita::analysis::phasesOf(llvm::ArrayRef<Collective> collectives) {
  std::set<int64_t> bounds;
  int64_t doubling = 0; // one program has one optimizer
  for (const Collective &c : collectives) {
    bounds.insert({c.steps.after, c.steps.until});
    doubling = std::max(doubling, c.steps.doubling);
  }
  bounds.erase(0);
  std::vector<Steps> phases(1);
  for (int64_t bound : bounds) {
    phases.back().until = bound;
    phases.back().doubling = doubling;
    phases.push_back({bound, 0, doubling});
  }
  return phases;
}
