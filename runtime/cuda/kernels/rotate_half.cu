// The quarter turn of rotary position embedding (Su et al., arXiv 2104.09864): every pair (a, b) of
// a row becomes (-b, a). x, y [rows, width] in T. Moves 2 * sizeof(T) bytes per element. The
// products with cosines and sines are elementwise kernels around it.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/elementwise.cuh"

namespace partita_rt::cuda {

namespace {

/// Pairs i and i + half: a thread has a pack of firsts and one of seconds.
template <typename T> __global__ void rotateHalves(T *y, const T *x, int64_t rows, int64_t half) {
  int64_t packs = ceilDiv(half, kPack), number = globalThread();
  int64_t row = number / packs, first = (number - row * packs) * kPack, count = half - first;
  if (row >= rows)
    return;
  x += row * 2 * half + first;
  y += row * 2 * half + first;
  float a[kPack], b[kPack];
  load(a, x, count);
  load(b, x + half, count);
#pragma unroll
  for (float &each : b)
    each = -each;
  store(y, b, count);
  store(y + half, a, count);
}

/// Pairs 2i and 2i + 1, of a whole tensor.
template <typename T> struct RotateInterleaved {
  T *y;
  const T *x;
  __device__ void operator()(int64_t first, int count) const {
    float v[kPack];
    load(v, x + first, count);
#pragma unroll
    for (int i = 0; i < kPack; i += 2) {
      float a = v[i];
      v[i] = -v[i + 1];
      v[i + 1] = a;
    }
    store(y + first, v, count);
  }
};

} // namespace

template <typename T>
void rotateHalf(const Stream &stream, T *y, const T *x, int64_t rows, int64_t width, Pairs pairs) {
  if (width % 2 != 0)
    fail("rotateHalf: rows of %lld elements are no pairs", (long long)width);
  if (pairs == Pairs::Interleaved)
    return launchElementwise<kPack>(stream, rows * width, RotateInterleaved<T>{y, x});
  int64_t threads = rows * ceilDiv(width / 2, kPack);
  if (threads > 0)
    PARTITA_RT_LAUNCH(rotateHalves<T>, gridOf(ceilDiv(threads, kElementwiseThreads)),
                      kElementwiseThreads, 0, stream, y, x, rows, width / 2);
}

#define ROTATE(T) template void rotateHalf(const Stream &, T *, const T *, int64_t, int64_t, Pairs);
FOR_STORAGE(ROTATE)
#undef ROTATE

} // namespace partita_rt::cuda
