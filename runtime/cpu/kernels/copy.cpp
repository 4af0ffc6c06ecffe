// Copies between layouts.

#include "partita_rt/kernels.h"

#include "cpu/kernels/storage.h"

#include <algorithm>
#include <cstring>

namespace partita_rt {

namespace {

/// One loop of the copy.
struct Loop {
  int64_t size, dst, src;
};

/// Drops loops of one iteration and joins neighbours that are contiguous in both tensors.
int collapse(Loop *loops, const Shape &dstStrides, const Shape &srcStrides, const Shape &shape) {
  int count = 0;
  for (int i = 0; i < shape.rank; ++i) {
    Loop loop{shape[i], dstStrides[i], srcStrides[i]};
    if (loop.size == 1)
      continue;
    if (count > 0 && loops[count - 1].dst == loop.size * loop.dst &&
        loops[count - 1].src == loop.size * loop.src)
      loops[count - 1] = {loops[count - 1].size * loop.size, loop.dst, loop.src};
    else
      loops[count++] = loop;
  }
  if (count == 0)
    loops[count++] = {1, 1, 1};
  return count;
}

/// Copies two loops in square blocks, so that a transpose walks both tensors by full cache lines.
template <typename T> void copyPlane(T *dst, const T *src, const Loop &outer, const Loop &inner) {
  if (inner.dst == 1 && inner.src == 1) {
    for (int64_t i = 0; i < outer.size; ++i)
      std::memcpy(dst + i * outer.dst, src + i * outer.src, size_t(inner.size) * sizeof(T));
    return;
  }
  constexpr int64_t kBlock = 16;
  for (int64_t i0 = 0; i0 < outer.size; i0 += kBlock)
    for (int64_t j0 = 0; j0 < inner.size; j0 += kBlock) {
      int64_t i1 = std::min(outer.size, i0 + kBlock), j1 = std::min(inner.size, j0 + kBlock);
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j)
          dst[i * outer.dst + j * inner.dst] = src[i * outer.src + j * inner.src];
    }
}

template <typename T> void copyLoops(T *dst, const T *src, const Loop *loops, int count) {
  if (count == 1)
    return copyPlane(dst, src, Loop{1, 0, 0}, loops[0]);
  if (count == 2)
    return copyPlane(dst, src, loops[0], loops[1]);
  for (int64_t i = 0; i < loops[0].size; ++i)
    copyLoops(dst + i * loops[0].dst, src + i * loops[0].src, loops + 1, count - 1);
}

/// Moves the source's fastest loop next to the destination's, where blocking can see both.
void orderLoops(Loop *loops, int count) {
  if (count < 3 || loops[count - 1].src == 1)
    return;
  for (int i = 0; i < count - 2; ++i)
    if (loops[i].src == 1) {
      std::swap(loops[i], loops[count - 2]);
      return;
    }
}

} // namespace

void stridedCopy(void *dst, const Shape &dstStrides, const void *src, const Shape &srcStrides,
                 const Shape &shape, int64_t elementBytes) {
  if (shape.elements() == 0)
    return;
  Loop loops[kMaxDims];
  int count = collapse(loops, dstStrides, srcStrides, shape);
  orderLoops(loops, count);
  switch (elementBytes) {
  case 1:
    return copyLoops(static_cast<uint8_t *>(dst), static_cast<const uint8_t *>(src), loops, count);
  case 2:
    return copyLoops(static_cast<uint16_t *>(dst), static_cast<const uint16_t *>(src), loops,
                     count);
  case 4:
    return copyLoops(static_cast<uint32_t *>(dst), static_cast<const uint32_t *>(src), loops,
                     count);
  case 8:
    return copyLoops(static_cast<uint64_t *>(dst), static_cast<const uint64_t *>(src), loops,
                     count);
  default:
    fail("stridedCopy: elements of %lld bytes", (long long)elementBytes);
  }
}

template <typename T>
void copyRows(T *dst, int64_t dstStride, const T *src, int64_t srcStride, int64_t rows,
              int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(dst + i * dstStride, src + i * srcStride, size_t(width) * sizeof(T));
}

template <typename T>
void repeat(T *y, const T *x, int64_t outer, int64_t indices, int64_t times, Indices shard,
            int64_t inner) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < shard.count; ++i)
      std::memcpy(y + (o * shard.count + i) * inner,
                  x + (o * indices + (shard.first + i) / times) * inner, size_t(inner) * sizeof(T));
}

template <typename T>
void repeatSum(T *dx, const T *dy, int64_t outer, int64_t indices, int64_t times, Indices shard,
               int64_t inner) {
  fill(dx, 0.0f, outer * indices * inner);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0, next; i < shard.count; i = next) { // one source index per step
      int64_t index = (shard.first + i) / times;
      next = std::min(shard.count, (index + 1) * times - shard.first);
      throughFloat(dx + (o * indices + index) * inner, inner, true,
                   [&](float *sums, int64_t first, int64_t n) {
                     for (int64_t j = i; j < next; ++j)
                       accumulate(sums, dy + (o * shard.count + j) * inner + first, n);
                   });
    }
}

#define COPIES(T)                                                                                  \
  template void copyRows(T *, int64_t, const T *, int64_t, int64_t, int64_t);                      \
  template void repeat(T *, const T *, int64_t, int64_t, int64_t, Indices, int64_t);               \
  template void repeatSum(T *, const T *, int64_t, int64_t, int64_t, Indices, int64_t);
FOR_STORAGE(COPIES)
#undef COPIES

void fill(float *dst, float value, int64_t n) { std::fill(dst, dst + n, value); }

template <typename G, typename T> void accumulate(G *sum, const T *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    sum[i] = sum[i] + x[i];
}

#define ACCUMULATE(G, T) template void accumulate(G *, const T *, int64_t);
FOR_RESULTS(ACCUMULATE)
#undef ACCUMULATE

} // namespace partita_rt
