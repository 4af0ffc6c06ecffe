//===- Mask.cpp - see Mask.h ------------------------------------------------------------------===//

#include "lib/Raise/Mask.h"
#include "lib/Raise/NumericCheck.h"
#include "partita/Raise/IndexEvaluator.h"
#include "partita/Support/HiddenScores.h"
#include <cmath>

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
  bool readRow(int64_t query, ArrayRef<double> atLow, ArrayRef<double> atHigh, Mask &mask);
  bool readWindow(int64_t lastVisible, ArrayRef<double> atLow, ArrayRef<double> atHigh, Mask &mask);
  std::string at(int64_t query, int64_t key) {
    return llvm::formatv("({0}, {1})", query, key).str();
  }

  Value masked;
  IndexEvaluator low, high;
  bool haveScale = false, haveKind = false;
  int64_t widest = 0; // keys that a query sees whose first visible key is the first
};

/// A window shows in the first query whose first keys are hidden; before, all rows are shorter.
bool MaskReader::readWindow(int64_t lastVisible, ArrayRef<double> atLow, ArrayRef<double> atHigh,
                            Mask &mask) {
  int64_t first = 0, count = lastVisible + 1;
  while (first < count && atLow[first] < kHiddenBelow && atHigh[first] < kHiddenBelow)
    ++first;
  if (first > 0 && first < count && !mask.window && count - first >= widest)
    mask.window = count - first;
  if (first == 0)
    widest = std::max(widest, count);
  return first == (mask.window ? std::max<int64_t>(0, count - mask.window) : 0);
}

bool MaskReader::readRow(int64_t query, ArrayRef<double> atLow, ArrayRef<double> atHigh,
                         Mask &mask) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(masked.getType()).getShape();
  int64_t keys = shape.back(), queries = shape[shape.size() - 2],
          lastVisible = query + keys - queries;
  bool windowed = readWindow(std::min(lastVisible, keys - 1), atLow, atHigh, mask);
  for (int64_t key = 0; key < keys; ++key) {
    if (std::isnan(atLow[key]) || std::isnan(atHigh[key])) {
      mask.problem = "the masked score is not a number at " + at(query, key);
      return false;
    }
    bool hidden = atLow[key] < kHiddenBelow && atHigh[key] < kHiddenBelow;
    // The first key after the diagonal tells which of the two kinds it is.
    if (key == lastVisible + 1 && !haveKind) {
      mask.causal = hidden;
      haveKind = true;
    }
    bool beforeWindow = windowed && mask.window && key <= lastVisible - mask.window;
    if (hidden != ((mask.causal && key > lastVisible) || beforeWindow)) {
      mask.problem = "its mask is not lower triangular at " + at(query, key) +
                     ", where the key is " + (hidden ? "hidden" : "visible");
      return false;
    }
    if (hidden)
      continue;
    double slope = (atHigh[key] - atLow[key]) / (highScore - lowScore),
           offset = atLow[key] - slope * lowScore;
    if (!haveScale) {
      mask.scale = slope;
      haveScale = true;
    }
    if (std::abs(slope - mask.scale) > 1e-6 * std::abs(mask.scale) ||
        std::abs(offset) > 1e-6 * std::abs(mask.scale)) {
      mask.problem = "at " + at(query, key) + " the score is scaled by " + numberText(slope) +
                     " and " + numberText(offset) + " is added; elsewhere the scale is " +
                     numberText(mask.scale);
      return false;
    }
  }
  return true;
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
