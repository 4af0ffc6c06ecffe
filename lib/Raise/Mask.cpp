//===- Mask.cpp - see Mask.h ------------------------------------------------------------------===//

#include "lib/Raise/Mask.h"
#include "lib/Raise/NumericCheck.h"
#include "partita/Raise/IndexEvaluator.h"
#include "partita/Support/HiddenScores.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Two scores at which the masked score is evaluated; a line is known by two points.
constexpr double lowScore = -2, highScore = 3;
/// Leading indices (batch, head) over which a mask that differs between them is compared.
constexpr int64_t mostElements = int64_t(1) << 28;

/// Reads one matrix of queries x keys, in row-major order of its leading indices.
class MaskReader {
public:
  MaskReader(Value masked, Value scores) : masked(masked) {
    low.assume(scores, lowScore);
    high.assume(scores, highScore);
  }
  /// Reads the matrix at these leading indices into `mask`; false when there is a problem.
  bool read(SmallVector<int64_t> leading, Mask &mask);
  bool varies(int64_t dim) { return low.variesAlong(masked, dim); }

private:
  /// A query, and which keys [visibleFrom, visibleTo) it sees if it is causal.
  struct Query {
    int64_t index, visibleFrom, visibleTo;
  };
  bool readRow(int64_t query, const Row &atLow, const Row &atHigh, Mask &mask);
  bool readStretch(const Query &query, const Row::Run &atLow, const Row::Run &atHigh, Mask &mask);
  bool readScale(const Query &query, const Row::Run &atLow, const Row::Run &atHigh, Mask &mask);
  void readWindow(int64_t firstVisible, int64_t visibleTo, Mask &mask);
  bool isHidden(const Row::Run &atLow, const Row::Run &atHigh) {
    return atLow.first < kHiddenBelow && atHigh.first < kHiddenBelow;
  }
  std::string at(const Query &query, int64_t key) {
    return llvm::formatv("({0}, {1})", query.index, key).str();
  }

  Value masked;
  IndexEvaluator low, high;
  bool haveScale = false, haveKind = false;
  int64_t widest = 0; // keys that a query sees whose first visible key is the first
};

/// A window shows in the first query whose first keys are hidden; before, all rows are shorter.
void MaskReader::readWindow(int64_t firstVisible, int64_t visibleTo, Mask &mask) {
  int64_t count = visibleTo - firstVisible;
  if (firstVisible > 0 && count > 0 && !mask.window && count >= widest)
    mask.window = count;
  if (firstVisible == 0)
    widest = std::max(widest, count);
}

bool MaskReader::readScale(const Query &query, const Row::Run &atLow, const Row::Run &atHigh,
                           Mask &mask) {
  double slope = (atHigh.first - atLow.first) / (highScore - lowScore),
         offset = atLow.first - slope * lowScore;
  if (!haveScale) {
    mask.scale = slope;
    haveScale = true;
  }
  if (std::abs(slope - mask.scale) <= 1e-6 * std::abs(mask.scale) &&
      std::abs(offset) <= 1e-6 * std::abs(mask.scale))
    return true;
  mask.problem = "at " + at(query, atLow.begin) + " the score is scaled by " + numberText(slope) +
                 " and " + numberText(offset) + " is added; elsewhere the scale is " +
                 numberText(mask.scale);
  return false;
}

/// Keys whose scores are all the same.
bool MaskReader::readStretch(const Query &query, const Row::Run &atLow, const Row::Run &atHigh,
                             Mask &mask) {
  if (std::isnan(atLow.first) || std::isnan(atHigh.first)) {
    mask.problem = "the masked score is NaN at " + at(query, atLow.begin);
    return false;
  }
  bool hidden = isHidden(atLow, atHigh);
  // The first key after the diagonal tells which of the two kinds it is.
  int64_t begin = atLow.begin, end = atLow.end;
  if (!haveKind && begin <= query.visibleTo && query.visibleTo < end) {
    mask.causal = hidden;
    haveKind = true;
  }
  int64_t visibleTo = mask.causal ? query.visibleTo : std::numeric_limits<int64_t>::max();
  int64_t wrong = end; // the first key that should be otherwise
  if (hidden && begin < visibleTo && end > query.visibleFrom)
    wrong = std::max(begin, query.visibleFrom);
  else if (!hidden && begin < query.visibleFrom)
    wrong = begin;
  else if (!hidden && end > visibleTo)
    wrong = std::max(begin, visibleTo);
  if (wrong < end) {
    mask.problem = "its mask is not lower triangular at " + at(query, wrong) +
                   ", where the key is " + (hidden ? "hidden" : "visible");
    return false;
  }
  return hidden || readScale(query, atLow, atHigh, mask);
}

bool MaskReader::readRow(int64_t query, const Row &atLow, const Row &atHigh, Mask &mask) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(masked.getType()).getShape();
  int64_t keys = shape.back(), queries = shape[shape.size() - 2],
          visibleTo = query + keys - queries + 1, firstVisible = keys;
  forEachStretch({&atLow, &atHigh}, [&](ArrayRef<Row::Run> runs) {
    if (isHidden(runs[0], runs[1]))
      return true;
    firstVisible = runs[0].begin;
    return false;
  });
  readWindow(std::min(firstVisible, visibleTo), visibleTo, mask);
  Query expected{query, mask.window ? std::max<int64_t>(0, visibleTo - mask.window) : 0, visibleTo};
  bool isRead = true;
  forEachStretch({&atLow, &atHigh}, [&](ArrayRef<Row::Run> runs) {
    bool isConstant = runs[0].step == 0 && runs[1].step == 0;
    for (int64_t j = runs[0].begin; isRead && j < runs[0].end; ++j) {
      int64_t end = isConstant ? runs[0].end : j + 1;
      isRead = readStretch(expected, {j, end, runs[0].at(j), 0}, {j, end, runs[1].at(j), 0}, mask);
      j = end - 1;
    }
    return isRead;
  });
  return isRead;
}

bool MaskReader::read(SmallVector<int64_t> leading, Mask &mask) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(masked.getType()).getShape();
  leading.push_back(0);
  for (int64_t query = 0; query < shape[shape.size() - 2]; ++query) {
    leading.back() = query;
    auto atLow = low.row(masked, leading), atHigh = high.row(masked, leading);
    if (!atLow || !atHigh) {
      mask.problem = low.obstacle
                         ? ("its mask is computed by " + low.obstacle->getName().getStringRef() +
                            ", which is not understood there")
                               .str()
                         : std::string("its mask depends on an input");
      return false;
    }
    if (!readRow(query, *atLow, *atHigh, mask))
      return false;
  }
  return true;
}

} // namespace

Mask raise::readMask(Value masked, Value scores) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(masked.getType()).getShape();
  MaskReader reader(masked, scores);
  Mask mask;
  // Only the leading dimensions along which anything differs need be looked at.
  SmallVector<int64_t> extents;
  int64_t count = 1;
  for (int64_t dim = 0; dim + 2 < static_cast<int64_t>(shape.size()); ++dim) {
    extents.push_back(reader.varies(dim) ? shape[dim] : 1);
    count *= extents.back();
  }
  if (count > 1 && count > mostElements / (shape.back() * shape[shape.size() - 2])) {
    mask.problem = "its mask differs between batch elements or heads and is too large to compare";
    return mask;
  }
  for (int64_t linear = 0; linear < count; ++linear) {
    SmallVector<int64_t> leading(extents.size());
    int64_t rest = linear;
    for (int64_t d = extents.size() - 1; d >= 0; --d) {
      leading[d] = rest % extents[d];
      rest /= extents[d];
    }
    if (!reader.read(leading, mask))
      return mask;
  }
  if (mask.window && !mask.causal)
    mask.problem = "its mask hides the first keys but not those after the query";
  return mask;
}
