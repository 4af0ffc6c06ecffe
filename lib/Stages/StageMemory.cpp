//===- StageMemory.cpp --------------------------------------------------------------------------===//

#include "partita/Stages/StageMemory.h"
#include "partita/Stages/Balance.h"
#include "partita/Stages/ParseCuts.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::stages;

/// Max number of cuts to try; each is a compilation.
static constexpr int kMostTries = 40;

/// Adds the stages that need too much memory. Returns false if there are none.
static bool addTooMuch(const StageMemory &memory, uint64_t limit, int64_t layers,
                       SmallVectorImpl<TooMuch> &tooMuch) {
  size_t before = tooMuch.size();
  for (auto [stage, bytes] : llvm::enumerate(memory.bytes))
    if (bytes > limit && stage < memory.cuts.size())
      tooMuch.push_back({static_cast<int64_t>(stage), memory.cuts[stage],
                         stage + 1 < memory.cuts.size() ? memory.cuts[stage + 1] : layers});
  return tooMuch.size() > before;
}

static CutSearch search(const StageMemory &needed, uint64_t limit, int64_t layers,
                        CutPlanner planner,
                        llvm::function_ref<SmallVector<int64_t>(ArrayRef<TooMuch>)> next) {
  CutSearch result;
  SmallVector<TooMuch> tooMuch;
  StageMemory last = needed;
  while (result.tried < kMostTries && addTooMuch(last, limit, layers, tooMuch)) {
    SmallVector<int64_t> cuts = next(tooMuch);
    if (cuts.empty())
      return result;
    std::optional<StageMemory> memory = planner(cutsText(cuts));
    if (!memory || memory->bytes.empty())
      break;
    ++result.tried;
    last = *memory;
    if (uint64_t fullest = *llvm::max_element(last.bytes); fullest <= limit) {
      result.assign = cutsText(cuts);
      result.bytes = fullest;
      return result;
    }
  }
  result.isSettled = false;
  return result;
}

CutSearch stages::findBalancedCuts(const StageMemory &needed, uint64_t limit, int64_t layers,
                                   const RangeCosts &costs, CutPlanner planner) {
  auto ranges = static_cast<int64_t>(needed.cuts.size());
  auto cost = [&](int64_t range, int64_t begin, int64_t end) {
    return costs.sumOf(range, begin, end);
  };
  return search(needed, limit, layers, planner,
                [&](ArrayRef<TooMuch> tooMuch) { return balance(layers, ranges, cost, tooMuch); });
}

CutSearch stages::findNearestCuts(const StageMemory &needed, uint64_t limit, int64_t layers,
                                  CutPlanner planner) {
  return search(needed, limit, layers, planner,
                [&](ArrayRef<TooMuch> tooMuch) { return nearest(needed.cuts, layers, tooMuch); });
}
