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

int64_t Cuts::stageOf(int64_t place) const {
  if (place == LayerAttr::kAfter)
    return stages() - 1;
  int64_t stage = 0;
  while (stage + 1 < stages() && place >= firsts[stage + 1])
    ++stage;
  return stage;
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
/// How good a way of cutting is: the largest stage decides, then how equal they are.
struct Quality {
  double largest = std::numeric_limits<double>::infinity(), squares = largest;
  bool operator<(const Quality &other) const {
    return std::tie(largest, squares) < std::tie(other.largest, other.squares);
  }
};
} // namespace

/// The first layer of each stage so that the most expensive stage costs as little as it can: exact, by dynamic
/// programming over how many layers the first stages have, O(stages x layers^2).
static SmallVector<int64_t> balance(ArrayRef<double> costs, int64_t stages) {
  auto layers = static_cast<int64_t>(costs.size());
  SmallVector<double> before(layers + 1, 0); // costs of the first layers
  for (auto [i, cost] : llvm::enumerate(costs))
    before[i + 1] = before[i] + cost;
  using Row = SmallVector<Quality>;
  SmallVector<Row> best(stages + 1, Row(layers + 1)); // of so many stages, for so many layers
  SmallVector<SmallVector<int64_t>> first(stages + 1, SmallVector<int64_t>(layers + 1, 0));
  best[0][0] = {0, 0};
  for (int64_t stage = 1; stage <= stages; ++stage)
    for (int64_t end = stage; end <= layers; ++end)
      for (int64_t begin = stage - 1; begin < end; ++begin) {
        double own = before[end] - before[begin];
        const Quality &rest = best[stage - 1][begin];
        Quality all{std::max(rest.largest, own), rest.squares + own * own};
        if (all < best[stage][end]) {
          best[stage][end] = all;
          first[stage][end] = begin;
        }
      }
  SmallVector<int64_t> firsts(stages);
  for (int64_t stage = stages, end = layers; stage > 0; --stage)
    end = firsts[stage - 1] = first[stage][end];
  return firsts;
}

/// "cuts:4,8": each stage's first layer, but for the first stage's.
static FailureOr<SmallVector<int64_t>> read(StringRef text, int64_t stages, int64_t layers,
                                            std::string &problem) {
  SmallVector<StringRef> items;
  text.split(items, ',');
  SmallVector<int64_t> firsts{0};
  for (StringRef item : items) {
    int64_t layer = 0;
    if (item.getAsInteger(10, layer) || layer <= firsts.back() || layer >= layers) {
      problem = "cuts: '" + item.str() + "' is not the number of a layer behind " +
                std::to_string(firsts.back()) + " and before " + std::to_string(layers) +
                "; a cut is the first layer of its stage";
      return failure();
    }
    firsts.push_back(layer);
  }
  if (static_cast<int64_t>(firsts.size()) == stages)
    return firsts;
  problem = "cuts: " + std::to_string(items.size()) + " cuts make " +
            std::to_string(firsts.size()) + " stages, not " + std::to_string(stages);
  return failure();
}

FailureOr<Cuts> Cuts::choose(StringRef assign, int64_t stages, ArrayRef<LayerWork> work,
                             std::string &problem) {
  int64_t layers = 0;
  for (const LayerWork &each : work)
    layers = std::max(layers, each.place + 1);
  if (layers < stages) {
    problem = std::to_string(stages) + " stages need as many layers, and the model has " +
              std::to_string(layers) +
              ": parts of it that repeat (partita explain --flops lists them)";
    return failure();
  }
  if (assign.consume_front("cuts:")) {
    FailureOr<SmallVector<int64_t>> firsts = read(assign, stages, layers, problem);
    if (failed(firsts))
      return failure();
    return Cuts(std::move(*firsts));
  }
  if (assign == "uniform")
    return Cuts(llvm::to_vector(llvm::map_range(
        llvm::seq<int64_t>(0, stages), [&](int64_t stage) { return stage * layers / stages; })));
  if (assign == "auto" || assign == "parameters")
    return Cuts(balance(costsOf(work, layers, assign == "parameters"), stages));
  problem = "assign: '" + assign.str() + "' is none of auto, uniform, parameters, cuts:LAYER,...";
  return failure();
}
