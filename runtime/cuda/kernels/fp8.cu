// Quantization for matmuls in 8 bits (kernels.h). Matrix instructions read both operands along k, so
// one kernel stores a matrix, its transpose or both. Tiles of 128 rows and 64 columns: a thread has
// four rows of a pack of columns, whose bytes it transposes in registers into a word per column, and
// through shared memory the words of 16 rows become one store.
//
// The max by one atomic operation per block, and none if it is reached already. A max does not
// depend on the order of its operands, so the bits are the same in every run.
//
// Sums of columns: a tile's partial sums go to scratch memory and are added by a second launch, as
// those of columnSum.
//
// Moves sizeof(X) + 1 bytes per element, or 1 more for both; sums, 8 bytes per tile's column.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/elementwise.cuh"

#if !defined(__CUDACC__)
#include <without_nvcc/convert.h>
#endif

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = kElementwiseThreads;
constexpr int kTileRows = kQuantizeTileRows, kTileColumns = 64;
constexpr int kRowsPerThread = 4; ///< as many as bytes in a word
constexpr int kTilePacks = kTileColumns / kPack, kTileWords = kTileRows / kRowsPerThread;
static_assert(kTilePacks * kTileWords == kThreads, "a thread has four rows of a pack");
/// Words between columns in shared memory: the threads of a warp that write, and those of a quarter
/// that read four words each, then use different banks.
constexpr int kWordStride = kTileWords + 4;
constexpr int kWordsPerStore = 4;

//===-- Conversion --------------------------------------------------------------------------===//

#if defined(__CUDACC__)
/// Two numbers in F: on GPUs that have it in one instruction, as fp8::round but for the sign of NaN,
/// which it drops.
template <typename F> __device__ inline unsigned convertPair(float upper, float lower) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  if constexpr (std::is_same_v<F, Float8E4M3>)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(upper), "f"(lower));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(upper), "f"(lower));
  return pair;
#else
  return unsigned(F(upper).bits) << 8 | F(lower).bits;
#endif
}
#else
using without_nvcc::convertPair;
#endif

/// Two numbers in F, the first one in the lower byte.
template <typename F> __device__ inline unsigned pairOf(float first, float second) {
  return convertPair<F>(second, first);
}

/// A pack in F, four numbers per word.
struct Quantized {
  unsigned words[kPack / 4];
};
static_assert(kPack == 8, "two words");

template <typename F>
__device__ inline Quantized quantized(const float (&x)[kPack], float inverse) {
  Quantized q;
#pragma unroll
  for (int i = 0; i < kPack / 4; ++i) {
    const float *each = x + 4 * i;
    q.words[i] = pairOf<F>(each[0] * inverse, each[1] * inverse) |
                 pairOf<F>(each[2] * inverse, each[3] * inverse) << 16;
  }
  return q;
}

template <typename F>
__device__ inline void storeQuantized(F *y, const Quantized &q, int64_t count) {
  if (count >= kPack && isAligned<kPack>(y)) {
    *reinterpret_cast<uint2 *>(y) = uint2{q.words[0], q.words[1]};
    return;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    if (i < count)
      y[i].bits = uint8_t(q.words[i / 4] >> (i % 4 * 8));
}

//===-- Max ---------------------------------------------------------------------------------===//

/// Raises `most` to the bits of the finite |x|: those of positive floats are in their order.
__device__ inline void raise(unsigned &most, const float (&x)[kPack]) {
#pragma unroll
  for (float each : x) {
    unsigned bits = half::bitsOf(each) & 0x7fffffffu;
    most = bits < 0x7f800000u && bits > most ? bits : most;
  }
}

/// Raises *max to the max of the block's `most`. All threads call it.
__device__ inline void raise(float *max, unsigned most) {
  __shared__ unsigned ofWarps[kThreads / kWarp];
  for (int with = kWarp / 2; with > 0; with /= 2) {
    unsigned other = __shfl_xor_sync(kAllLanes, most, with);
    most = other > most ? other : most;
  }
  if (threadIdx.x % kWarp == 0)
    ofWarps[threadIdx.x / kWarp] = most;
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  for (unsigned each : ofWarps)
    most = each > most ? each : most;
  auto *at = reinterpret_cast<unsigned *>(max);
  if (most > *static_cast<volatile unsigned *>(at))
    atomicMax(at, most);
}

//===-- Kernels -----------------------------------------------------------------------------===//

/// Stores F(x / *scale), or that times *scale in x's type.
template <typename F, typename Y, typename X>
__global__ void __launch_bounds__(kThreads)
    quantizePacks(Y *y, const X *x, const float *scale, float *max, int64_t n) {
  int64_t first = globalThread() * kPack, count = least(n - first, kPack);
  unsigned most = 0;
  if (count > 0) {
    float values[kPack];
    load(values, x + first, count);
    float factor = *scale;
    raise(most, values);
    Quantized q = quantized<F>(values, 1.0f / factor); // exact: a power of two
    if constexpr (std::is_same_v<Y, F>) {
      storeQuantized(y + first, q, count);
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        F number;
        number.bits = uint8_t(q.words[i / 4] >> (i % 4 * 8));
        values[i] = float(number) * factor;
      }
      store(y + first, values, count);
    }
  }
  if (max) // the same for all threads
    raise(max, most);
}

/// Transposes a matrix of 4 x 4 bytes: rows, from the lowest byte on, become columns.
__device__ inline void transposeBytes(unsigned (&words)[4]) {
  // Columns 0 and 1, then 2 and 3, of two rows each.
  unsigned first = __byte_perm(words[0], words[1], 0x5140),
           firstBelow = __byte_perm(words[2], words[3], 0x5140),
           second = __byte_perm(words[0], words[1], 0x7362),
           secondBelow = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(first, firstBelow, 0x5410);
  words[1] = __byte_perm(first, firstBelow, 0x7632);
  words[2] = __byte_perm(second, secondBelow, 0x5410);
  words[3] = __byte_perm(second, secondBelow, 0x7632);
}

/// Stores `words`, 16 rows of a column, of which `count` exist.
template <typename F> __device__ inline void storeColumn(F *to, const uint4 &words, int64_t count) {
  if (count >= 16 && isAligned<16>(to)) {
    *reinterpret_cast<uint4 *>(to) = words;
    return;
  }
  const unsigned each[] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (i < count)
      to[i].bits = uint8_t(each[i / 4] >> (i % 4 * 8));
}

/// Stores the sums of the tile's columns, of which a thread has those of a pack in its rows: over a
/// warp's threads in a butterfly, then over the warps in order. All threads call it.
__device__ inline void storeTileSums(float *partials, float (&sums)[kPack], int64_t firstColumn,
                                     int64_t width) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ float ofWarps[kWarps][kTileColumns];
  overWarp<Sum, kTilePacks>(sums);
  int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
  if (lane < kTilePacks)
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      ofWarps[warp][lane * kPack + i] = sums[i];
  __syncthreads();
  int column = int(threadIdx.x);
  if (column >= kTileColumns || firstColumn + column >= width)
    return;
  float sum = ofWarps[0][column];
#pragma unroll
  for (int i = 1; i < kWarps; ++i)
    sum += ofWarps[i][column];
  partials[firstColumn + column] = sum;
}

/// partials[tiles of rows, width]: sums of x's columns, if kSums.
template <bool kSums, typename F, typename X>
__global__ void __launch_bounds__(kThreads)
    quantizeTiles(F *y, F *columns, const X *x, const float *scale, float *max, float *partials,
                  int64_t rows, int64_t width, int64_t tilesPerRow) {
  // Column j of pack p is number j * kTilePacks + p.
  alignas(16) __shared__ unsigned tile[kTileColumns * kWordStride];
  int64_t firstRow = blockIdx.x / tilesPerRow * kTileRows,
          firstColumn = blockIdx.x % tilesPerRow * kTileColumns;
  int pack = int(threadIdx.x) % kTilePacks, word = int(threadIdx.x) / kTilePacks;
  int64_t row = firstRow + word * kRowsPerThread, column = firstColumn + pack * kPack;
  int64_t count = least(width - column, kPack);
  Pack<X, kPack> packs[kRowsPerThread];
#pragma unroll
  for (int i = 0; i < kRowsPerThread; ++i)
    loadBits(packs[i], x + (row + i) * width + column, row + i < rows ? count : 0);
  float inverse = 1.0f / *scale; // exact: a power of two
  unsigned most = 0, words[kPack / 4][kRowsPerThread];
  [[maybe_unused]] float sums[kPack] = {};
#pragma unroll
  for (int i = 0; i < kRowsPerThread; ++i) {
    float values[kPack];
    widen(values, packs[i]);
    raise(most, values);
    if constexpr (kSums)
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        sums[j] += values[j];
    Quantized q = quantized<F>(values, inverse);
    if (y && row + i < rows)
      storeQuantized(y + (row + i) * width + column, q, count);
    words[0][i] = q.words[0];
    words[1][i] = q.words[1];
  }
#pragma unroll
  for (int half = 0; half < kPack / 4; ++half) {
    transposeBytes(words[half]);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      tile[((half * 4 + j) * kTilePacks + pack) * kWordStride + word] = words[half][j];
  }
  __syncthreads();
  constexpr int kStores = kTileWords / kWordsPerStore;
#pragma unroll
  for (int i = int(threadIdx.x); i < kTileColumns * kStores; i += kThreads) {
    int number = i / kStores, part = i % kStores;
    int64_t to = firstColumn + number % kTilePacks * kPack + number / kTilePacks,
            from = firstRow + part * 16;
    if (to < width && from < rows)
      storeColumn(
          columns + to * rows + from,
          *reinterpret_cast<const uint4 *>(tile + number * kWordStride + part * kWordsPerStore),
          rows - from);
  }
  if constexpr (kSums)
    storeTileSums(partials + firstRow / kTileRows * width, sums, firstColumn, width);
  if (max) // the same for all threads
    raise(max, most);
}

template <typename F, typename Y, typename X>
void launchQuantize(const Stream &stream, Y *y, const X *x, const float *scale, float *max,
                    int64_t n) {
  if (n > 0)
    PARTITA_RT_LAUNCH((quantizePacks<F, Y, X>), gridOf(ceilDiv(n, int64_t(kPack) * kThreads)),
                      kThreads, 0, stream, y, x, scale, max, n);
}

} // namespace

template <typename F, typename X>
void quantize(const Stream &stream, F *y, const X *x, const float *scale, float *max, int64_t n) {
  launchQuantize<F>(stream, y, x, scale, max, n);
}

template <typename F, typename X>
void quantizeTransposed(const Stream &stream, OrNull<F *> y, F *columns, const X *x,
                        const float *scale, float *max, OrNull<X *> sums, int64_t rows,
                        int64_t width) {
  if (width == 0)
    return;
  float *partials = nullptr;
  if (sums)
    partials = scratchOf<float>(stream, quantizeSumsScratch(rows, width), "quantizeTransposed");
  int64_t across = ceilDiv(width, kTileColumns), down = ceilDiv(rows, kTileRows);
  auto launch = [&](auto withSums) {
    PARTITA_RT_LAUNCH((quantizeTiles<withSums(), F, X>), gridOf(down * across), kThreads, 0, stream,
                      y, columns, x, scale, max, partials, rows, width, across);
  };
  if (rows > 0 && sums)
    launch(std::true_type());
  else if (rows > 0)
    launch(std::false_type());
  if (sums)
    launchAddPartials<X, 1>(stream, {{FloatOr<X>(sums)}}, partials, down, width, Write::Set);
}

template <typename X>
void throughFp8(const Stream &stream, Fp8 format, X *y, const X *x, const float *scale, float *max,
                int64_t n) {
  if (format == Fp8::E4M3)
    launchQuantize<Float8E4M3>(stream, y, x, scale, max, n);
  else
    launchQuantize<Float8E5M2>(stream, y, x, scale, max, n);
}

#define FORMAT(F, X)                                                                               \
  template void quantize(const Stream &, F *, const X *, const float *, float *, int64_t);         \
  template void quantizeTransposed(const Stream &, OrNull<F *>, F *, const X *, const float *,     \
                                   float *, OrNull<X *>, int64_t, int64_t);
#define QUANTIZE(X)                                                                                \
  FORMAT(Float8E4M3, X)                                                                            \
  FORMAT(Float8E5M2, X)                                                                            \
  template void throughFp8(const Stream &, Fp8, X *, const X *, const float *, float *, int64_t);
QUANTIZE(float)
QUANTIZE(BFloat16)

} // namespace partita_rt::cuda
