//===- Balance.cpp ------------------------------------------------------------------------------===//

#include "partita/Stages/Balance.h"
#include "dialects/Train/Train.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace partita;
using namespace partita::stages;
using train::LayerAttr;

namespace {
/// The quality of a cut, or what one range adds to it: the largest range decides, then the sum.
struct Quality {
  double largest = std::numeric_limits<double>::infinity(), sum = largest;
  bool operator<(const Quality &other) const {
    return std::tie(largest, sum) < std::tie(other.largest, other.sum);
  }
  bool isPossible() const { return largest < std::numeric_limits<double>::infinity(); }
};
} // namespace

/// Returns the first layer of each range in the best cut. `price` is the cost of a range, the
/// layers [begin, end), given its number.
static SmallVector<int64_t> best(int64_t layers, int64_t ranges, ArrayRef<TooMuch> tooMuch,
                                 function_ref<Quality(int64_t, int64_t, int64_t)> price) {
  auto isTooMuch = [&](int64_t range, int64_t begin, int64_t end) {
    return llvm::any_of(tooMuch, [&](const TooMuch &each) {
      return each.range == range && begin <= each.begin && each.end <= end;
    });
  };
  using Row = SmallVector<Quality>;
  SmallVector<Row> known(ranges + 1, Row(layers + 1)); // by numbers of ranges and of layers
  SmallVector<SmallVector<int64_t>> first(ranges + 1, SmallVector<int64_t>(layers + 1, 0));
  known[0][0] = {0, 0};
  for (int64_t range = 1; range <= ranges; ++range)
    for (int64_t end = range; end <= layers; ++end)
      for (int64_t begin = range - 1; begin < end; ++begin) {
        const Quality &rest = known[range - 1][begin];
        if (!rest.isPossible() || isTooMuch(range - 1, begin, end))
          continue;
        Quality own = price(range - 1, begin, end);
        Quality all{std::max(rest.largest, own.largest), rest.sum + own.sum};
        if (all < known[range][end]) {
          known[range][end] = all;
          first[range][end] = begin;
        }
      }
  if (!known[ranges][layers].isPossible())
    return {};
  SmallVector<int64_t> firsts(ranges);
  for (int64_t range = ranges, end = layers; range > 0; --range)
    end = firsts[range - 1] = first[range][end];
  return firsts;
}

SmallVector<int64_t> stages::balance(int64_t layers, int64_t ranges, RangeCost cost,
                                     ArrayRef<TooMuch> tooMuch) {
  return best(layers, ranges, tooMuch, [&](int64_t range, int64_t begin, int64_t end) {
    double own = cost(range, begin, end);
    return Quality{own, own * own};
  });
}

SmallVector<int64_t> stages::balanceParameters(ArrayRef<LayerWork> work, int64_t ranges) {
  int64_t layers = countLayers(work);
  SmallVector<int64_t> before(layers + 1, 0); // of all layers before each
  for (const LayerWork &each : work) {
    bool isEnd = each.place == LayerAttr::kBefore || each.place == LayerAttr::kAfter;
    if (layers == 0 || (each.place < 0 && !isEnd))
      continue; // once per step, on whichever stage
    int64_t layer = each.place == LayerAttr::kAfter ? layers - 1 : std::max<int64_t>(each.place, 0);
    before[layer + 1] += each.parameters;
  }
  std::partial_sum(before.begin(), before.end(), before.begin());
  return balance(layers, ranges, [&](int64_t, int64_t begin, int64_t end) {
    return static_cast<double>(before[end] - before[begin]);
  });
}

SmallVector<int64_t> stages::nearest(ArrayRef<int64_t> firsts, int64_t layers,
                                     ArrayRef<TooMuch> tooMuch) {
  return best(layers, static_cast<int64_t>(firsts.size()), tooMuch,
              [&](int64_t range, int64_t begin, int64_t) {
                return Quality{0, std::abs(static_cast<double>(begin - firsts[range]))};
              });
}
