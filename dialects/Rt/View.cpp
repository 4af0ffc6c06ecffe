//===- View.cpp - the layout of a tensor in memory --------------------------------------------===//

#include "dialects/Rt/View.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace partita::rt;

View View::dense(ArrayRef<int64_t> shape, int64_t offset) {
  View view;
  view.shape.assign(shape.begin(), shape.end());
  view.strides.resize(shape.size());
  view.offset = offset;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    view.strides[i] = stride;
  return view;
}

bool View::isDense() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0; expected *= shape[i])
    if (shape[i] != 1 && strides[i] != expected)
      return false;
  return true;
}

bool View::operator==(const View &other) const {
  if (shape != other.shape || offset != other.offset)
    return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && strides[i] != other.strides[i])
      return false;
  return true;
}

int64_t View::elements() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

/// Walks both shapes from the left in groups of equal products. Within a group of old dimensions
/// (ignoring those of size one) each stride must be the next one's times its size; the group's
/// innermost stride then determines the new ones.
std::optional<View> View::reshape(ArrayRef<int64_t> to) const {
  if (elements() == 0)
    return View::dense(to, offset);
  SmallVector<int64_t> sizes, steps;
  for (auto [size, stride] : zip(shape, strides))
    if (size != 1) {
      sizes.push_back(size);
      steps.push_back(stride);
    }
  View result = View::dense(to, offset);
  size_t from = 0, into = 0;
  while (from < sizes.size()) {
    size_t fromEnd = from + 1, intoEnd = into;
    int64_t have = sizes[from], want = 1;
    while (have != want) {
      if (want < have) {
        if (intoEnd == to.size())
          return std::nullopt;
        want *= to[intoEnd++];
      } else {
        if (fromEnd == sizes.size())
          return std::nullopt;
        have *= sizes[fromEnd++];
      }
    }
    for (size_t i = from; i + 1 < fromEnd; ++i)
      if (steps[i] != steps[i + 1] * sizes[i + 1])
        return std::nullopt;
    int64_t stride = steps[fromEnd - 1];
    for (size_t i = intoEnd; i-- > into; stride *= to[i])
      result.strides[i] = stride;
    from = fromEnd;
    into = intoEnd;
  }
  return result;
}

View View::transpose(ArrayRef<int64_t> permutation) const {
  View result = *this;
  for (auto [i, p] : enumerate(permutation)) {
    result.shape[i] = shape[p];
    result.strides[i] = strides[p];
  }
  return result;
}

View View::broadcast(ArrayRef<int64_t> to) const {
  View result;
  result.shape.assign(to.begin(), to.end());
  result.strides.assign(to.size(), 0);
  result.offset = offset;
  size_t added = to.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    result.strides[i + added] = shape[i] == to[i + added] ? strides[i] : 0;
  return result;
}

View View::slice(ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps,
                 ArrayRef<int64_t> sizes) const {
  View result = *this;
  result.shape.assign(sizes.begin(), sizes.end());
  for (size_t i = 0; i < shape.size(); ++i) {
    result.offset += offsets[i] * strides[i];
    result.strides[i] = strides[i] * steps[i];
  }
  return result;
}

std::optional<int64_t> View::rowStride() const {
  if (shape.empty() || (shape.back() != 1 && strides.back() != 1))
    return std::nullopt;
  SmallVector<int64_t> leading(shape.begin(), shape.end() - 1);
  int64_t rows = 1;
  for (int64_t size : leading)
    rows *= size;
  if (rows == 1)
    return shape.back();
  std::optional<View> matrix = reshape({rows, shape.back()});
  if (!matrix || matrix->strides[0] < shape.back())
    return std::nullopt;
  return matrix->strides[0];
}

bool View::isScalar() const {
  return all_of(zip(shape, strides),
                [](auto pair) { return std::get<0>(pair) == 1 || std::get<1>(pair) == 0; });
}
