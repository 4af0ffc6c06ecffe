//===- Bytes.cpp - see Bytes.h ------------------------------------------------------------------===//

#include "partita/Analysis/Bytes.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

Bytes Bytes::run(rt::Space space, int64_t begin, int64_t count) {
  return {space, begin, begin + count, rt::View::dense({count}), 1};
}

std::optional<Bytes> Bytes::at(rt::AtAttr place, RankedTensorType type) {
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return std::nullopt;
  Bytes bytes;
  bytes.space = place.getSpace();
  bytes.width = rt::elementBytes(type.getElementType());
  bytes.view = rt::View::dense(type.getShape());
  if (ArrayRef<int64_t> strides = place.getStrides(); !strides.empty()) {
    if (strides.size() != bytes.view.strides.size())
      return std::nullopt;
    bytes.view.strides.assign(strides.begin(), strides.end());
  }
  bytes.begin = bytes.end = place.getOffset();
  if (bytes.begin < 0 || llvm::is_contained(type.getShape(), 0))
    return bytes.begin < 0 ? std::nullopt : std::optional(bytes);
  int64_t last = 0, step = 0;
  for (auto [size, stride] : llvm::zip_equal(bytes.view.shape, bytes.view.strides))
    if (stride < 0 || llvm::MulOverflow(size - 1, stride, step) ||
        llvm::AddOverflow(last, step, last))
      return std::nullopt;
  if (llvm::MulOverflow(last + 1, bytes.width, step) ||
      llvm::AddOverflow(bytes.begin, step, bytes.end))
    return std::nullopt;
  return bytes;
}

namespace {

/// Consecutive elements joined: runs of `length` bytes, repeated by the other dimensions.
struct Runs {
  int64_t length;
  SmallVector<std::pair<int64_t, int64_t>> repeats; ///< count and step in bytes, innermost first

  explicit Runs(const Bytes &bytes) : length(bytes.width) {
    for (auto [size, stride] :
         llvm::reverse(llvm::zip_equal(bytes.view.shape, bytes.view.strides))) {
      int64_t step = stride * bytes.width;
      if (size == 1 || step == 0)
        continue;
      if (repeats.empty() && length == step)
        length = size * step;
      else
        repeats.push_back({size, step});
    }
  }

  int64_t count() const {
    int64_t runs = 1;
    for (auto [count, step] : repeats)
      runs *= count;
    return runs;
  }

  /// [begin, end) of each, ascending.
  std::vector<std::pair<int64_t, int64_t>> listFrom(int64_t begin) const {
    std::vector<std::pair<int64_t, int64_t>> runs = {{begin, begin + length}}, all;
    for (auto [count, step] : repeats) {
      all.clear();
      for (int64_t i = 0; i < count; ++i)
        for (auto [from, to] : runs)
          all.push_back({from + i * step, to + i * step});
      std::swap(runs, all);
    }
    llvm::sort(runs);
    return runs;
  }
};

} // namespace

/// Do all runs of one fall between those of the other, because all steps are multiples of one number? So lie the columns of
/// a matrix beside each other, however many rows it has.
static bool areInterleaved(const Bytes &a, const Runs &ofA, const Bytes &b, const Runs &ofB) {
  int64_t row = 0;
  for (auto [count, step] :
       llvm::concat<const std::pair<int64_t, int64_t>>(ofA.repeats, ofB.repeats))
    row = std::gcd(row, step);
  if (row == 0)
    return false;
  int64_t shift = ((b.begin - a.begin) % row + row) % row;
  return ofA.length <= shift && shift + ofB.length <= row;
}

std::optional<int64_t> analysis::commonByte(const Bytes &a, const Bytes &b) {
  if (!a.meets(b))
    return std::nullopt;
  constexpr int64_t kMostRuns = 1 << 22; // of more, what is around them is compared
  Runs ofA(a), ofB(b);
  if (areInterleaved(a, ofA, b, ofB))
    return std::nullopt;
  if (std::max(ofA.count(), ofB.count()) > kMostRuns)
    return std::max(a.begin, b.begin);
  auto left = ofA.listFrom(a.begin), right = ofB.listFrom(b.begin);
  for (auto i = left.begin(), j = right.begin(); i != left.end() && j != right.end();) {
    if (i->second <= j->first)
      ++i;
    else if (j->second <= i->first)
      ++j;
    else
      return std::max(i->first, j->first);
  }
  return std::nullopt;
}
