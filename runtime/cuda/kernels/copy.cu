// Copies between layouts: rows of other strides, repeated rows and their sums, and any permutation
// of up to eight dimensions. Elements keep their bits. Moves each element once in and once out.
//
// A strided copy is first simplified: dimensions of one element are dropped, neighbours that are
// contiguous in both tensors joined, the destination's fastest dimension put last. Then threads
// follow the destination. If the source's fastest dimension is a different one (a transpose),
// blocks of 32 x 32 elements go through shared memory, so that both sides are accessed along their
// rows.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/row_copy.cuh"
#include "partita_rt/cuda/divisor.cuh"
#include "partita_rt/cuda/elementwise.cuh"

namespace partita_rt::cuda {

namespace {

/// One loop of a copy; strides in elements.
struct Loop {
  Divisor size;
  int64_t dst, src;
};
struct Loops {
  Loop loops[kMaxDims];
  int count = 0;

  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < count; ++i)
      n *= loops[i].size;
    return n;
  }
  void moveBehind(int i) {
    Loop loop = loops[i];
    for (; i + 1 < count; ++i)
      loops[i] = loops[i + 1];
    loops[count - 1] = loop;
  }
  /// Finds the offsets of element number `index` of these loops.
  __device__ void find(int64_t index, int64_t &dst, int64_t &src) const {
    for (int i = count - 1; i >= 0; --i) {
      int64_t outer = loops[i].size.quotient(index), at = index - outer * loops[i].size;
      dst += at * loops[i].dst;
      src += at * loops[i].src;
      index = outer;
    }
  }
};

Loops loopsOf(const Shape &dstStrides, const Shape &srcStrides, const Shape &shape) {
  Loops l;
  for (int i = 0; i < shape.rank; ++i) {
    Loop loop{shape[i], dstStrides[i], srcStrides[i]};
    Loop *last = l.count > 0 ? &l.loops[l.count - 1] : nullptr;
    if (loop.size == 1)
      continue;
    if (last && last->dst == loop.size * loop.dst && last->src == loop.size * loop.src)
      *last = {last->size * loop.size, loop.dst, loop.src};
    else
      l.loops[l.count++] = loop;
  }
  for (int i = 0; i < l.count; ++i)
    if (l.loops[i].dst == 1) {
      l.moveBehind(i);
      break;
    }
  return l;
}

/// Copies one element per thread, in the destination's order.
template <typename E> __global__ void copyElements(E *dst, const E *src, Loops loops, int64_t n) {
  int64_t index = globalThread(), to = 0, from = 0;
  if (index >= n)
    return;
  loops.find(index, to, from);
  dst[to] = src[from];
}

/// Copies rows of `width` contiguous elements.
template <typename E>
__global__ void copyStridedRows(E *dst, const E *src, Loops outer, int64_t rows, int64_t width) {
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y, to = 0, from = 0;
  if (row >= rows)
    return;
  outer.find(row, to, from);
  copyRow(dst + to, src + from, width);
}

constexpr int kTile = 32, kTileRows = 8;

/// Copies planes of a [a, b] -> [b, a] transpose: `along` is the destination's fastest loop,
/// `across` the source's. Blocks x and y are tiles, z the outer loops.
template <typename E>
__global__ void transposeTiles(E *dst, const E *src, Loops outer, Loop across, Loop along,
                               int64_t firstOuter) {
  __shared__ E tile[kTile][kTile + 1];
  int64_t to = 0, from = 0;
  outer.find(firstOuter + blockIdx.z, to, from);
  int64_t along0 = int64_t(blockIdx.x) * kTile, across0 = int64_t(blockIdx.y) * kTile;
  for (int i = int(threadIdx.y); i < kTile; i += kTileRows) {
    int64_t a = along0 + i, b = across0 + threadIdx.x;
    if (a < along.size && b < across.size)
      tile[i][threadIdx.x] = src[from + a * along.src + b];
  }
  __syncthreads();
  for (int i = int(threadIdx.y); i < kTile; i += kTileRows) {
    int64_t a = along0 + threadIdx.x, b = across0 + i;
    if (a < along.size && b < across.size)
      dst[to + b * across.dst + a] = tile[threadIdx.x][i];
  }
}

constexpr int64_t kMostYZ = 65535; // of a grid's y and z dimensions

template <typename E> void copyLoops(const Stream &stream, E *dst, const E *src, Loops loops) {
  int64_t n = loops.elements();
  if (loops.count == 0) { // one element
    PARTITA_RT_LAUNCH(copyElements<E>, 1, 1, 0, stream, dst, src, loops, n);
    return;
  }
  Loop last = loops.loops[loops.count - 1];
  if (last.dst == 1 && last.src == 1 && last.size >= kWarp) {
    --loops.count;
    dim3 block = rowCopyBlock<E>(last.size);
    PARTITA_RT_LAUNCH(copyStridedRows<E>, gridOf(ceilDiv(n / last.size, block.y)), block, 0, stream,
                      dst, src, loops, n / last.size, last.size);
    return;
  }
  int across = -1;
  for (int i = 0; i + 1 < loops.count; ++i)
    if (loops.loops[i].src == 1)
      across = i;
  bool tiles = across >= 0 && last.dst == 1 && last.size >= kTile / 2 &&
               loops.loops[across].size >= kTile / 2 &&
               ceilDiv(loops.loops[across].size, kTile) <= kMostYZ;
  if (!tiles) {
    PARTITA_RT_LAUNCH(copyElements<E>, gridOf(ceilDiv(n, kElementwiseThreads)), kElementwiseThreads,
                      0, stream, dst, src, loops, n);
    return;
  }
  --loops.count; // `last`
  Loop plane = loops.loops[across];
  loops.moveBehind(across);
  --loops.count;
  int64_t outer = loops.elements();
  for (int64_t first = 0; first < outer; first += kMostYZ)
    PARTITA_RT_LAUNCH(transposeTiles<E>,
                      dim3(gridOf(ceilDiv(last.size, kTile)).x,
                           unsigned(ceilDiv(plane.size, kTile)),
                           unsigned(least(outer - first, kMostYZ))),
                      dim3(kTile, kTileRows), 0, stream, dst, src, loops, plane, last, first);
}

template <typename T> struct RowsAt {
  const T *src;
  int64_t stride;
  __device__ const T *operator()(int64_t row) const { return src + row * stride; }
};

/// Row (o, i) of a shard is row (o, (first + i) / times) of x.
template <typename T> struct Repeated {
  const T *x;
  int64_t indices;
  Divisor times, count;
  IndicesAt shard;
  int64_t inner;
  __device__ const T *operator()(int64_t row) const {
    int64_t o = count.quotient(row), i = row - o * count;
    return x + (o * indices + times.quotient(shard.first.read() + i)) * inner;
  }
};

/// Sums into one pack of a row (o, index) of dx per thread.
template <typename T>
__global__ void sumRepeated(T *dx, const T *dy, int64_t rows, Divisor indices, int64_t times,
                            IndicesAt shard, int64_t inner, Divisor packs) {
  int64_t number = globalThread(), row = packs.quotient(number);
  int64_t column = (number - row * packs) * kPack;
  int64_t o = indices.quotient(row), index = row - o * indices;
  if (row >= rows)
    return;
  int64_t count = shard.count, begin = index * times - shard.first.read();
  int64_t end = least(begin + times, count);
  float sums[kPack] = {};
  for (int64_t i = begin > 0 ? begin : 0; i < end; ++i) {
    float v[kPack];
    load(v, dy + (o * count + i) * inner + column, inner - column);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      sums[j] += v[j];
  }
  store(dx + row * inner + column, sums, inner - column);
}

} // namespace

void stridedCopy(const Stream &stream, void *dst, const Shape &dstStrides, const void *src,
                 const Shape &srcStrides, const Shape &shape, int64_t elementBytes) {
  if (shape.elements() == 0)
    return;
  Loops loops = loopsOf(dstStrides, srcStrides, shape);
  switch (elementBytes) {
  case 1:
    return copyLoops(stream, static_cast<uint8_t *>(dst), static_cast<const uint8_t *>(src), loops);
  case 2:
    return copyLoops(stream, static_cast<uint16_t *>(dst), static_cast<const uint16_t *>(src),
                     loops);
  case 4:
    return copyLoops(stream, static_cast<uint32_t *>(dst), static_cast<const uint32_t *>(src),
                     loops);
  case 8:
    return copyLoops(stream, static_cast<uint64_t *>(dst), static_cast<const uint64_t *>(src),
                     loops);
  default:
    fail("stridedCopy: elements of %lld bytes", (long long)elementBytes);
  }
}

template <typename T>
void copyRows(const Stream &stream, T *dst, int64_t dstStride, const T *src, int64_t srcStride,
              int64_t rows, int64_t width) {
  launchCopyRows(stream, dst, dstStride, rows, width, RowsAt<T>{src, srcStride});
}

template <typename T>
void repeat(const Stream &stream, T *y, const T *x, int64_t outer, int64_t indices, int64_t times,
            IndicesAt shard, int64_t inner) {
  launchCopyRows(stream, y, inner, outer * shard.count, inner,
                 Repeated<T>{x, indices, times, shard.count, shard, inner});
}

template <typename T>
void repeatSum(const Stream &stream, T *dx, const T *dy, int64_t outer, int64_t indices,
               int64_t times, IndicesAt shard, int64_t inner) {
  int64_t packs = ceilDiv(inner, kPack), threads = outer * indices * packs;
  if (threads > 0)
    PARTITA_RT_LAUNCH(sumRepeated<T>, gridOf(ceilDiv(threads, 128)), 128, 0, stream, dx, dy,
                      outer * indices, indices, times, shard, inner, packs);
}

#define COPIES(T)                                                                                  \
  template void copyRows(const Stream &, T *, int64_t, const T *, int64_t, int64_t, int64_t);      \
  template void repeat(const Stream &, T *, const T *, int64_t, int64_t, int64_t, IndicesAt,       \
                       int64_t);                                                                   \
  template void repeatSum(const Stream &, T *, const T *, int64_t, int64_t, int64_t, IndicesAt,    \
                          int64_t);
FOR_STORAGE(COPIES)
#undef COPIES

} // namespace partita_rt::cuda
