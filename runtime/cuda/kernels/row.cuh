// Rows of a matrix, each with a warp or a block of its own: packs in registers, sums over a row in
// a fixed order.

#ifndef PARTITA_RT_CUDA_KERNELS_ROW_CUH
#define PARTITA_RT_CUDA_KERNELS_ROW_CUH

#include "partita_rt/cuda/pack.cuh"
#include "partita_rt/math.h"

namespace partita_rt::cuda {

/// Calls body(n) with n packs per thread if a row's threads hold it in registers, else 0, as a
/// constant.
template <int kPacks, typename Body> inline void withHeld(bool held, Body body) {
  if (held)
    body(std::integral_constant<int, kPacks>());
  else
    body(std::integral_constant<int, 0>());
}

inline dim3 blockOf(const RowShape &shape) {
  return dim3(unsigned(shape.threads), unsigned(shape.rows));
}

/// Returns the threads of a block that has one row.
inline unsigned rowThreads(int64_t width) { return unsigned(forwardShape(width).threads); }

/// Calls body(k, first, count) for this thread's packs of a row: number k, beginning at element
/// `first`, with `count` elements. The row's threads are the block's x dimension. kHeld: the max
/// number of packs (a constant, for registers), or 0.
template <int kHeld, typename Body> __device__ inline void forPacks(int64_t width, Body body) {
  if constexpr (kHeld > 0) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      int first = int(threadIdx.x + k * blockDim.x) * kPack;
      if (first < width)
        body(k, first, int(least(width - first, kPack)));
    }
  } else {
    for (int64_t first = int64_t(threadIdx.x) * kPack; first < width;
         first += int64_t(blockDim.x) * kPack)
      body(0, first, int(least(width - first, kPack)));
  }
}

/// Loads the thread's packs of a row, with zeros after the row. Checks once whether all are full
/// and aligned, and uses none, so that all loads are in flight before the first arrives. kFullPacks:
/// the caller knows that they are full and aligned.
template <bool kFullPacks, typename T, int kHeld>
__device__ inline void loadRow(Pack<T, kPack> (&packs)[kHeld], const T *data, int64_t width) {
  if (kFullPacks || (width % kPack == 0 && isAligned<kAccess<T, kPack>>(data)))
    forPacks<kHeld>(width, [&](int k, int64_t first, int) { loadAligned(packs[k], data + first); });
  else
    forPacks<kHeld>(width, [&](int k, int64_t first, int count) {
      loadSingly(packs[k], data + first, count, T(0));
    });
}

/// A row's elements as floats: in registers, or read again in every sweep if kHeld is 0. The
/// constructor issues the loads and widen() waits for them, so other rows can be loaded in between.
template <typename T, int kHeld, bool kFullPacks = false> struct Row {
  const T *data;
  int64_t width;
  Pack<T, kPack> bits[kHeld > 0 ? kHeld : 1] = {};
  float held[kHeld > 0 ? kHeld : 1][kPack];

  __device__ Row(const T *data, int64_t width) : data(data), width(width) {
    if constexpr (kHeld > 0)
      loadRow<kFullPacks>(bits, data, width);
  }
  __device__ void widen() {
    if constexpr (kHeld > 0)
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        cuda::widen(held[k], bits[k]);
  }
  /// Returns the pack for k and first of forPacks; elements after the row are 0.
  __device__ float (&pack(int k, int64_t first, int count)) [kPack] {
    if constexpr (kHeld == 0)
      load(held[0], data + first, count);
    return held[k];
  }
};

/// A row kept as its bits in memory, to save registers: every sweep widens them, and hides them
/// from the compiler first, which would otherwise keep the floats of the previous sweep.
template <typename T, int kHeld> struct RowBits {
  const T *data;
  int64_t width;
  Pack<T, kPack> bits[kHeld > 0 ? kHeld : 1] = {};

  __device__ RowBits(const T *data, int64_t width) : data(data), width(width) {
    if constexpr (kHeld > 0)
      loadRow<false>(bits, data, width);
  }
  __device__ void read(float (&x)[kPack], int k, int64_t first, int count) {
    if constexpr (kHeld == 0)
      return load(x, data + first, count);
    hide(bits[k]);
    widen(x, bits[k]);
  }
};

struct Sum {
  __device__ static float of(float a, float b) { return a + b; }
  static constexpr float kNone = 0.0f;
};
struct Largest {
  __device__ static float of(float a, float b) { return maximum(a, b); }
  static constexpr float kNone = -__builtin_inff();
};

/// Reduces each of N numbers over a warp, or over every kApart-th lane of it, in a butterfly: all
/// lanes get the same bits.
template <typename Op, int kApart = 1, int N> __device__ inline void overWarp(float (&x)[N]) {
#pragma unroll
  for (int with = kWarp / 2; with >= kApart; with /= 2)
#pragma unroll
    for (int i = 0; i < N; ++i)
      x[i] = Op::of(x[i], __shfl_xor_sync(kAllLanes, x[i], with));
}

template <typename Op> __device__ inline float overWarp(float x) {
  float one[1] = {x};
  overWarp<Op>(one);
  return one[0];
}

/// Reduces each of N numbers over the threads of a row, a warp or the entire block; all get the
/// same bits. A block uses `space` of N * 32 floats in shared memory, which may be reused
/// afterwards.
template <typename Op, int N> __device__ inline void overRow(float (&x)[N], float *space) {
  overWarp<Op>(x);
  if (blockDim.x == kWarp)
    return;
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  if (lane == 0)
#pragma unroll
    for (int i = 0; i < N; ++i)
      space[i * kWarp + warp] = x[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i)
    x[i] = lane < int(blockDim.x) / kWarp ? space[i * kWarp + lane] : Op::kNone;
  overWarp<Op>(x);
  __syncthreads();
}
template <typename Op> __device__ inline float overRow(float x, float *space) {
  float one[1] = {x};
  overRow<Op>(one, space);
  return one[0];
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_ROW_CUH
