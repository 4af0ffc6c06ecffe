// Describes the elements of a tensor that a file of a checkpoint holds, so that a reader needs no
// knowledge of the ranks that wrote it. The compiler reads checkpoints too, so this header includes
// no other header of the runtime. In numpy:
//
//     tensor[np.ix_(*map(indices, dims))].reshape(-1)[first:last]
//
// That is, the indices of every dimension that are in one of its ranges, and a contiguous range of
// the elements that these select, in the tensor's order.

#ifndef PARTITA_RT_SLICES_H
#define PARTITA_RT_SLICES_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace partita_rt {

struct Slices {
  /// The ranges of each dimension, ascending: begin, end, begin, end, ... (end is exclusive).
  std::vector<std::vector<int64_t>> dims;
  int64_t first = 0, last = 0; ///< first ... last - 1 of the elements in all ranges

  int64_t elements() const { return last - first; }
  /// Returns the number of selected indices of dimension `d`.
  int64_t width(size_t d) const {
    int64_t sum = 0;
    for (size_t i = 0; i + 1 < dims[d].size(); i += 2)
      sum += dims[d][i + 1] - dims[d][i];
    return sum;
  }
  /// Returns the number of elements in all ranges.
  int64_t boxElements() const {
    int64_t product = 1;
    for (size_t d = 0; d < dims.size(); ++d)
      product *= width(d);
    return product;
  }
  /// Returns the tensor's shape in its file: that of the ranges, if the file has all their
  /// elements.
  std::vector<int64_t> shapeInFile() const {
    if (elements() != boxElements())
      return {elements()};
    std::vector<int64_t> shape;
    for (size_t d = 0; d < dims.size(); ++d)
      shape.push_back(width(d));
    return shape;
  }
};

/// Calls visit(index, n) for the runs of n elements that are contiguous in the tensor, in its
/// order.
template <typename Visit> class SliceWalk {
public:
  SliceWalk(const std::vector<int64_t> &shape, const Slices &slices, Visit visit)
      : slices(slices), visit(visit), inner(shape.size() + 1, 1), below(shape.size() + 1, 1) {
    for (size_t d = shape.size(); d-- > 0;) {
      inner[d] = inner[d + 1] * shape[d];
      below[d] = below[d + 1] * slices.width(d);
    }
    while (innermost < shape.size() && below[innermost + 1] != inner[innermost + 1])
      ++innermost; // later dimensions are full
    walk(0, 0, 0);
  }

private:
  /// `at` counts the first element among those in all ranges.
  void walk(size_t d, int64_t index, int64_t at) {
    if (d == inner.size() - 1)
      return emit(index, 1, at);
    for (size_t i = 0; i + 1 < slices.dims[d].size(); i += 2) {
      int64_t begin = slices.dims[d][i], end = slices.dims[d][i + 1];
      if (d == innermost) {
        emit(index + begin * inner[d + 1], (end - begin) * inner[d + 1], at);
        at += (end - begin) * inner[d + 1];
        continue;
      }
      for (int64_t k = begin; k < end; ++k, at += below[d + 1])
        if (at < slices.last && at + below[d + 1] > slices.first)
          walk(d + 1, index + k * inner[d + 1], at);
    }
  }
  void emit(int64_t index, int64_t n, int64_t at) {
    int64_t begin = std::max(at, slices.first), end = std::min(at + n, slices.last);
    if (begin < end)
      visit(index + begin - at, end - begin);
  }
  const Slices &slices;
  Visit visit;
  std::vector<int64_t> inner, below; ///< elements per index of a dimension: in all, in ranges
  size_t innermost = 0;
};
template <typename Visit>
void forSlices(const std::vector<int64_t> &shape, const Slices &slices, Visit visit) {
  SliceWalk<Visit>(shape, slices, visit);
}

/// Checks slices of a tensor of this shape; returns the problem, or "".
inline std::string problemOf(const std::vector<int64_t> &shape, const Slices &slices) {
  if (slices.dims.size() != shape.size())
    return "its slices are of " + std::to_string(slices.dims.size()) +
           " dimensions, its shape has " + std::to_string(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::vector<int64_t> &ranges = slices.dims[d];
    bool ascend = !ranges.empty() && ranges.size() % 2 == 0 && ranges[0] >= 0;
    for (size_t i = 1; i < ranges.size(); ++i) // ranges that touch would have been merged
      ascend = ascend && ranges[i - 1] < ranges[i];
    if (!ascend || ranges.back() > shape[d])
      return "its slices of dimension " + std::to_string(d) + " are not ascending ranges within " +
             std::to_string(shape[d]);
  }
  if (slices.first < 0 || slices.first >= slices.last || slices.last > slices.boxElements())
    return "its elements " + std::to_string(slices.first) + " to " + std::to_string(slices.last) +
           " are not within the " + std::to_string(slices.boxElements()) + " of its slices";
  return "";
}

/// Returns true if two lists of ranges share an index.
inline bool meet(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (std::max(a[i], b[j]) < std::min(a[i + 1], b[j + 1]))
      return true;
    (a[i + 1] < b[j + 1] ? i : j) += 2;
  }
  return false;
}

/// Returns why these slices, each valid by itself, do not cover every element exactly once; "" if
/// they do. Those with the same ranges must follow one another; different ranges must not overlap.
inline std::string problemOfAll(const std::vector<int64_t> &shape, std::vector<Slices> shards) {
  int64_t elements = 1, total = 0;
  for (int64_t size : shape)
    elements *= size;
  std::sort(shards.begin(), shards.end(), [](const Slices &a, const Slices &b) {
    return std::tie(a.dims, a.first) < std::tie(b.dims, b.first);
  });
  std::vector<const Slices *> boxes;
  for (size_t i = 0; i < shards.size();) {
    boxes.push_back(&shards[i]);
    int64_t box = shards[i].boxElements(), at = 0;
    for (const auto &dims = boxes.back()->dims; i < shards.size() && shards[i].dims == dims; ++i) {
      if (shards[i].first != at)
        return shards[i].first < at ? "two of its shards hold the same elements"
                                    : "its shards lack some of its elements";
      at = shards[i].last;
    }
    if (at != box || box > elements - total)
      return at != box ? "its shards lack some of its elements"
                       : "two of its shards hold the same elements";
    total += box;
  }
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t j = i + 1; j < boxes.size(); ++j) {
      bool apart = false;
      for (size_t d = 0; d < shape.size() && !apart; ++d)
        apart = !meet(boxes[i]->dims[d], boxes[j]->dims[d]);
      if (!apart)
        return "two of its shards hold the same elements";
    }
  return total == elements ? "" : "its shards lack some of its elements";
}

} // namespace partita_rt

#endif // PARTITA_RT_SLICES_H
