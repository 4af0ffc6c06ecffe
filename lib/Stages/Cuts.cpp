//===- Cuts.cpp ---------------------------------------------------------------------------------===//

#include "lib/Stages/Cuts.h"
#include "dialects/Train/Train.h"
#include "partita/Stages/Balance.h"
#include "partita/Stages/ParseCuts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>

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

/// Describes the positions: "2 stages of 2 chunks", "3 stages".
static std::string text(const pipe::Positions &positions) {
  return std::to_string(positions.stages) + " stages" +
         (positions.chunks > 1 ? " of " + std::to_string(positions.chunks) + " chunks" : "");
}

/// Returns why a text is no number of a layer after `before`, or "".
static std::string problemOf(StringRef item, int64_t before, int64_t &layer) {
  static constexpr double kMostLayers = 1e9; // in a message
  if (!item.getAsInteger(10, layer) && layer >= 0) {
    if (layer > before)
      return "";
    return before == 0
               ? "cuts: layer 0 is on the first stage anyway; the first cut is 1 or later"
               : ("cuts: " + item + " follows " + Twine(before) + "; cuts must ascend").str();
  }
  if (item.empty())
    return "cuts: a layer is missing beside a comma";
  double real = 0;
  if (!item.getAsDouble(real) && real > 0 && real < kMostLayers && real != std::floor(real))
    return ("cuts: " + item + " is inside layer " + Twine(int64_t(real)) +
            "; a cut is the first layer of its stage: " + Twine(int64_t(real) + (real < 1)) +
            " or " + Twine(int64_t(real) + 1 + (real < 1)))
        .str();
  return ("cuts: '" + item + "' is not the number of a layer, such as cuts:4,8").str();
}

std::string stages::cutsText(ArrayRef<int64_t> firsts) {
  return "cuts:" + llvm::join(llvm::map_range(firsts.drop_front(firsts.empty() ? 0 : 1),
                                              [](int64_t first) { return std::to_string(first); }),
                              ",");
}

std::optional<SmallVector<int64_t>> stages::parseCuts(StringRef text, std::string &problem) {
  if (text.empty()) {
    problem = "cuts: expected the first layer of each stage but the first, such as cuts:4,8";
    return std::nullopt;
  }
  SmallVector<StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/true);
  SmallVector<int64_t> cuts;
  for (StringRef item : items) {
    int64_t layer = 0;
    problem = problemOf(item, cuts.empty() ? 0 : cuts.back(), layer);
    if (!problem.empty())
      return std::nullopt;
    cuts.push_back(layer);
  }
  return cuts;
}

/// Returns the first layer of every position for cuts that a user gives.
static FailureOr<SmallVector<int64_t>> read(StringRef text, const pipe::Positions &positions,
                                            int64_t layers, std::string &problem) {
  StringRef what = positions.chunks > 1 ? "chunk" : "stage";
  std::optional<SmallVector<int64_t>> cuts = stages::parseCuts(text, problem);
  if (!cuts)
    return failure();
  SmallVector<int64_t> firsts{0};
  for (int64_t layer : *cuts) {
    if (layer >= layers) {
      problem = "cuts: " + what.str() + " " + std::to_string(firsts.size()) +
                " cannot begin at layer '" + std::to_string(layer) + "': " + what.str() + " " +
                std::to_string(firsts.size() - 1) + " begins at layer " +
                std::to_string(firsts.back()) + ", and the model's last layer is " +
                std::to_string(layers - 1);
      return failure();
    }
    firsts.push_back(layer);
  }
  if (static_cast<int64_t>(firsts.size()) == positions.count())
    return firsts;
  problem = "cuts: " + std::to_string(cuts->size()) +
            (cuts->size() == 1 ? " cut makes " : " cuts make ") + std::to_string(firsts.size()) +
            " " + what.str() + "s, and there are " + std::to_string(positions.count());
  return failure();
}

FailureOr<Cuts> Cuts::choose(StringRef assign, const pipe::Positions &positions,
                             ArrayRef<LayerWork> work, const stages::RangeCosts &costs,
                             const std::optional<stages::Schedule> &schedule,
                             std::string &problem) {
  int64_t layers = countLayers(work), count = positions.count();
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
    return Cuts(
        llvm::to_vector(llvm::map_range(llvm::seq<int64_t>(0, count), [&](int64_t position) {
          return position * layers / count;
        })));
  if (assign == "auto" && costs.isEmpty()) {
    problem = "assign: auto needs the costs of layers; note-costs records them";
    return failure();
  }
  if (assign == "auto" && schedule && positions.chunks > 1)
    return Cuts(stages::balanceChunks(layers, *schedule, costs));
  if (assign == "auto")
    return Cuts(stages::balance(layers, count, [&](int64_t range, int64_t begin, int64_t end) {
      return costs.sumOf(range, begin, end);
    }));
  if (assign == "parameters")
    return Cuts(stages::balanceParameters(work, count));
  problem =
      "assign: '" + assign.str() + "' is not one of auto, uniform, parameters, cuts:LAYER,...";
  return failure();
}
