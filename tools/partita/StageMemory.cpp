//===- StageMemory.cpp - finds cuts into pipeline stages that all fit -----------------------------===//

#include "tools/partita/StageMemory.h"
#include "partita/Stages/Balance.h"
#include "tools/partita/Options.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;
using stages::TooMuch;

/// Max number of cuts to try; each is a compilation.
static constexpr int kMostTries = 40;

static std::string assignText(ArrayRef<int64_t> cuts) {
  std::string text;
  for (int64_t first : cuts.drop_front())
    text += (text.empty() ? "cuts:" : ",") + std::to_string(first);
  return text;
}

/// Adds the stages that need too much memory. Returns false if there are none.
static bool addTooMuch(const Footprint &footprint, uint64_t limit, int64_t layers,
                       SmallVectorImpl<TooMuch> &tooMuch) {
  size_t before = tooMuch.size();
  for (auto [stage, bytes] : llvm::enumerate(footprint.ofStages))
    if (bytes > limit && stage < footprint.cuts.size())
      tooMuch.push_back({static_cast<int64_t>(stage), footprint.cuts[stage],
                         stage + 1 < footprint.cuts.size() ? footprint.cuts[stage + 1] : layers});
  return tooMuch.size() > before;
}

static CutSearch search(const Request &request, const Footprint &needed, uint64_t limit,
                        int64_t layers, const Planner &planner,
                        llvm::function_ref<SmallVector<int64_t>(ArrayRef<TooMuch>)> next) {
  CutSearch result;
  SmallVector<TooMuch> tooMuch;
  Footprint last = needed;
  while (result.tried < kMostTries && addTooMuch(last, limit, layers, tooMuch)) {
    SmallVector<int64_t> cuts = next(tooMuch);
    if (cuts.empty())
      return result;
    Request changed = request;
    changed.plan.set("stages", assignText(cuts));
    showProgress("trying --stages " + assignText(cuts));
    std::optional<Footprint> footprint = planner(changed);
    if (!footprint)
      break;
    ++result.tried;
    last = *footprint;
    if (footprint->bytes <= limit) {
      result.assign = assignText(cuts);
      result.footprint = *footprint;
      return result;
    }
  }
  result.isSettled = false;
  return result;
}

CutSearch partita::tool::findBalancedCuts(const Request &request, const Footprint &needed,
                                          uint64_t limit, int64_t layers,
                                          const stages::RangeCosts &costs, const Planner &planner) {
  auto ranges = static_cast<int64_t>(needed.cuts.size());
  auto cost = [&](int64_t range, int64_t begin, int64_t end) {
    return costs.sumOf(range, begin, end);
  };
  return search(request, needed, limit, layers, planner, [&](ArrayRef<TooMuch> tooMuch) {
    return stages::balance(layers, ranges, cost, tooMuch);
  });
}

CutSearch partita::tool::findNearestCuts(const Request &request, const Footprint &needed,
                                         uint64_t limit, int64_t layers, const Planner &planner) {
  return search(request, needed, limit, layers, planner, [&](ArrayRef<TooMuch> tooMuch) {
    return stages::nearest(needed.cuts, layers, tooMuch);
  });
}
