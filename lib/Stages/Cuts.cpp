//===- Cuts.cpp ---------------------------------------------------------------------------------===//

#include "lib/Stages/Cuts.h"
#include "dialects/Train/Train.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>
#include <tuple>

using namespace mlir;
using namespace partita;
using train::LayerAttr;

int64_t Cuts::positionOf(int64_t place) const {
  if (place == LayerAttr::kAfter)
    return positions() - 1;
  int64_t position = 0;
  while (position + 1 < positions() && place >= firsts[position + 1])
    ++position;
  return position;
}

/// What a layer costs, by the measure that `assign` names. Places other than layers count with the layer beside them.
static SmallVector<double> costsOf(ArrayRef<LayerWork> work, int64_t layers, bool byParameters) {
  SmallVector<double> costs(layers, 0);
  for (const LayerWork &each : work) {
    if (each.place < 0 && each.place != LayerAttr::kBefore && each.place != LayerAttr::kAfter)
      continue; // once per step, on whichever stage
    int64_t layer = each.place == LayerAttr::kAfter ? layers - 1 : std::max<int64_t>(each.place, 0);
    costs[layer] += byParameters ? static_cast<double>(each.parameters)
                                 : each.forward.products + each.forward.elementwise + each.backward;
  }
  return costs;
}

namespace {
/// How good a way of cutting is: the largest range decides, then how equal they are.
struct Quality {
  double largest = std::numeric_limits<double>::infinity(), squares = largest;
  bool operator<(const Quality &other) const {
    return std::tie(largest, squares) < std::tie(other.largest, other.squares);
  }
};
} // namespace

/// The first layer of each range so that the most expensive range costs as little as it can: exact, by dynamic
/// programming over how many layers the first ranges have, O(ranges x layers^2).
static SmallVector<int64_t> balance(ArrayRef<double> costs, int64_t ranges) {
  auto layers = static_cast<int64_t>(costs.size());
  SmallVector<double> before(layers + 1, 0); // costs of the first layers
  for (auto [i, cost] : llvm::enumerate(costs))
    before[i + 1] = before[i] + cost;
  using Row = SmallVector<Quality>;
  SmallVector<Row> best(ranges + 1, Row(layers + 1)); // of so many ranges, for so many layers
  SmallVector<SmallVector<int64_t>> first(ranges + 1, SmallVector<int64_t>(layers + 1, 0));
  best[0][0] = {0, 0};
  for (int64_t range = 1; range <= ranges; ++range)
    for (int64_t end = range; end <= layers; ++end)
      for (int64_t begin = range - 1; begin < end; ++begin) {
        double own = before[end] - before[begin];
        const Quality &rest = best[range - 1][begin];
        Quality all{std::max(rest.largest, own), rest.squares + own * own};
        if (all < best[range][end]) {
          best[range][end] = all;
          first[range][end] = begin;
        }
      }
  SmallVector<int64_t> firsts(ranges);
  for (int64_t range = ranges, end = layers; range > 0; --range)
    end = firsts[range - 1] = first[range][end];
  return firsts;
}

/// "2 stages of 2 chunks", "3 stages".
static std::string text(const pipe::Positions &positions) {
  return std::to_string(positions.stages) + " stages" +
         (positions.chunks > 1 ? " of " + std::to_string(positions.chunks) + " chunks" : "");
}

/// "cuts:4,8": each position's first layer, but for the first one's.
static FailureOr<SmallVector<int64_t>> read(StringRef text, const pipe::Positions &positions,
                                            int64_t layers, std::string &problem) {
  StringRef what = positions.chunks > 1 ? "chunk" : "stage";
  SmallVector<StringRef> items;
  text.split(items, ',');
  SmallVector<int64_t> firsts{0};
  for (StringRef item : items) {
    int64_t layer = 0;
    if (item.getAsInteger(10, layer) || layer <= firsts.back() || layer >= layers) {
      problem = "cuts: '" + item.str() + "' is not the number of a layer behind " +
                std::to_string(firsts.back()) + " and before " + std::to_string(layers) +
                "; a cut is the first layer of its " + what.str();
      return failure();
    }
    firsts.push_back(layer);
  }
  if (static_cast<int64_t>(firsts.size()) == positions.count())
    return firsts;
  problem = "cuts: " + std::to_string(items.size()) + " cuts make " +
            std::to_string(firsts.size()) + " " + what.str() + "s, not " +
            std::to_string(positions.count());
  return failure();
}

FailureOr<Cuts> Cuts::choose(StringRef assign, const pipe::Positions &positions,
                             ArrayRef<LayerWork> work, std::string &problem) {
  int64_t layers = 0, count = positions.count();
  for (const LayerWork &each : work)
    layers = std::max(layers, each.place + 1);
  if (layers < count) {
    problem = text(positions) + " need " +
              (positions.chunks > 1 ? std::to_string(count) : std::string("as many")) +
              " layers, and the model has " + std::to_string(layers) +
              ": parts of it that repeat (partita explain --flops lists them)";
    return failure();
  }
  if (assign.consume_front("cuts:")) {
    FailureOr<SmallVector<int64_t>> firsts = read(assign, positions, layers, problem);
    if (failed(firsts))
      return failure();
    return Cuts(std::move(*firsts));
  }
  if (assign == "uniform")
    return Cuts(llvm::to_vector(llvm::map_range(
        llvm::seq<int64_t>(0, count), [&](int64_t position) { return position * layers / count; })));
  if (assign == "auto" || assign == "parameters")
    return Cuts(balance(costsOf(work, layers, assign == "parameters"), count));
  problem = "assign: '" + assign.str() + "' is none of auto, uniform, parameters, cuts:LAYER,...";
  return failure();
}
