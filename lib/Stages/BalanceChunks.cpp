//===- BalanceChunks.cpp ------------------------------------------------------------------------===//

#include "partita/Stages/Balance.h"
#include "partita/Stages/Spans.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace partita;
using namespace partita::stages;

static int64_t endOf(ArrayRef<int64_t> firsts, size_t position, int64_t layers) {
  return position + 1 < firsts.size() ? firsts[position + 1] : layers;
}

std::vector<SmallVector<int64_t>> stages::neighborsOf(ArrayRef<int64_t> firsts, int64_t layers) {
  std::vector<SmallVector<int64_t>> all;
  size_t count = firsts.size();
  for (size_t together = 1; together < count; ++together)
    for (size_t begin = 1; begin + together <= count; ++begin)
      for (int64_t by : {-1, 1}) {
        SmallVector<int64_t> moved(firsts);
        for (size_t cut = begin; cut < begin + together; ++cut)
          moved[cut] += by;
        size_t last = begin + together - 1;
        if (moved[begin] > moved[begin - 1] && moved[last] < endOf(moved, last, layers))
          all.push_back(std::move(moved));
      }
  return all;
}

namespace {

/// Cuts into chunks, and the simulated time of a step with them.
class ChunkSearch {
public:
  ChunkSearch(int64_t layers, const Schedule &schedule, const RangeCosts &costs)
      : layers(layers), schedule(schedule), costs(costs),
        ofStages(schedule.stages, std::vector<SlotCosts>(schedule.chunks)) {}

  double timeOf(ArrayRef<int64_t> firsts) {
    for (int position : llvm::seq(schedule.positions())) {
      auto [stage, chunk] = schedule.placeOf(position);
      ofStages[stage][chunk] =
          costs.of(position, firsts[position], endOf(firsts, position, layers));
    }
    return reportByStage(schedule, ofStages).time;
  }

  /// Moves cuts as long as that makes the step shorter: one at a time, or neighbors together, by one
  /// layer. Returns the time.
  double improve(SmallVector<int64_t> &firsts) {
    double time = timeOf(firsts);
    while (improveOnce(firsts, time)) {
    }
    return time;
  }

private:
  bool improveOnce(SmallVector<int64_t> &firsts, double &time) {
    for (SmallVector<int64_t> &moved : neighborsOf(firsts, layers))
      if (double other = timeOf(moved); other < time) {
        firsts = std::move(moved);
        time = other;
        return true;
      }
    return false;
  }

  int64_t layers;
  const Schedule &schedule;
  const RangeCosts &costs;
  std::vector<std::vector<SlotCosts>> ofStages; ///< of the cuts at hand, by chunk
};

} // namespace

double stages::timeOf(int64_t layers, const Schedule &schedule, const RangeCosts &costs,
                      ArrayRef<int64_t> firsts) {
  return ChunkSearch(layers, schedule, costs).timeOf(firsts);
}

/// Max number of slots to simulate for a comparison of all cuts; takes about a second.
static constexpr double kMostSlots = 1 << 21;

/// Returns the number of ways to cut layers into ranges, as a double since it may be large.
static double countCuts(int64_t layers, int64_t ranges) {
  double count = 1;
  for (int64_t i : llvm::seq<int64_t>(1, ranges))
    count *= static_cast<double>(layers - i) / static_cast<double>(i);
  return count;
}

/// Calls `visit` with all cuts.
static void forAllCuts(int64_t layers, int64_t ranges,
                       llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> firsts = llvm::to_vector(llvm::seq<int64_t>(0, ranges));
  while (true) {
    visit(firsts);
    int64_t last = ranges - 1; // that can move
    while (last > 0 && firsts[last] == layers - ranges + last)
      --last;
    if (last == 0)
      return;
    ++firsts[last];
    for (int64_t next = last + 1; next < ranges; ++next)
      firsts[next] = firsts[next - 1] + 1;
  }
}

SmallVector<int64_t> stages::balanceChunks(int64_t layers, const Schedule &schedule,
                                           const RangeCosts &costs) {
  int64_t count = schedule.positions();
  ChunkSearch search(layers, schedule, costs);
  SmallVector<int64_t> best =
      balance(layers, count, [&](int64_t range, int64_t begin, int64_t end) {
        return costs.sumOf(range, begin, end);
      });
  double slots = 0;
  for (const std::vector<Slot> &each : schedule.slots)
    slots += static_cast<double>(each.size());
  if (slots * countCuts(layers, count) <= kMostSlots) {
    double time = search.timeOf(best);
    forAllCuts(layers, count, [&](ArrayRef<int64_t> firsts) {
      if (double other = search.timeOf(firsts); other < time) {
        best.assign(firsts.begin(), firsts.end());
        time = other;
      }
    });
    return best;
  }
  double time = search.improve(best);
  SmallVector<int64_t> equal; // numbers of layers
  for (int64_t position : llvm::seq(count))
    equal.push_back(position * layers / count);
  return search.improve(equal) < time ? equal : best;
}
