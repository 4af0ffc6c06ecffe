//===- StageMemory.cpp --------------------------------------------------------------------------===//

#include "partita/Stages/StageMemory.h"
#include "partita/Stages/Balance.h"
#include "partita/Stages/ParseCuts.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace mlir;
using namespace partita;
using namespace partita::stages;

/// Max number of cuts to try; each is a compilation.
static constexpr int kMostTries = 40;

/// Max number of cuts to find the price of, with several chunks per stage.
static constexpr size_t kMostPrices = 1 << 12;

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

/// Returns true if a stage that needs too much with the cuts `full` has all of those layers with
/// `firsts`, too: chunk by chunk, since its chunks keep different numbers of micro-batches.
static bool isTooMuch(ArrayRef<int64_t> firsts, ArrayRef<int64_t> full, int64_t stage,
                      const pipe::Positions &layout, int64_t layers) {
  auto endOf = [&](ArrayRef<int64_t> cuts, size_t position) {
    return position + 1 < cuts.size() ? cuts[position + 1] : layers;
  };
  return llvm::all_of(llvm::seq<int64_t>(0, layout.chunks), [&](int64_t chunk) {
    int64_t position = layout.at(stage, chunk);
    return firsts[position] <= full[position] && endOf(full, position) <= endOf(firsts, position);
  });
}

CutSearch stages::findCheapCuts(const StageMemory &needed, uint64_t limit, int64_t layers,
                                const pipe::Positions &layout, CutPrice price, CutPlanner planner) {
  CutSearch result;
  std::vector<std::pair<int64_t, SmallVector<int64_t>>> tooMuch; // stages, and the cuts
  auto addFull = [&](const StageMemory &memory) {
    for (auto [stage, bytes] : llvm::enumerate(memory.bytes))
      if (bytes > limit)
        tooMuch.push_back({static_cast<int64_t>(stage), memory.cuts});
  };
  using Cuts = std::vector<int64_t>;
  Cuts first(needed.cuts.begin(), needed.cuts.end());
  std::set<Cuts> known{first};
  std::set<std::pair<double, Cuts>> next{{price(first), first}};
  addFull(needed);
  while (!next.empty()) {
    Cuts cuts = next.extract(next.begin()).value().second;
    for (const SmallVector<int64_t> &each : neighborsOf(cuts, layers)) {
      Cuts neighbor(each.begin(), each.end());
      if (known.size() < kMostPrices && known.insert(neighbor).second)
        next.insert({price(neighbor), neighbor});
    }
    if (llvm::any_of(tooMuch, [&](const auto &each) {
          return isTooMuch(cuts, each.second, each.first, layout, layers);
        }))
      continue;
    std::optional<StageMemory> memory =
        result.tried < kMostTries ? planner(cutsText(cuts)) : std::nullopt;
    if (!memory || memory->bytes.empty()) {
      result.isSettled = false;
      return result;
    }
    ++result.tried;
    if (uint64_t fullest = *llvm::max_element(memory->bytes); fullest <= limit) {
      result.assign = cutsText(cuts);
      result.bytes = fullest;
      return result;
    }
    addFull(*memory);
  }
  result.isSettled = known.size() < kMostPrices;
  return result;
}
