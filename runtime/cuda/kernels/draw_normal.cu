// Initial values of --init seed:N: counter-based normal deviates (random.h). The bits are the
// CPU's, except that a nonzero mean, which no model has, may be rounded differently when it is
// added. Arrays of n elements in T. Moves sizeof(T) bytes per element; three 64-bit integer hashes
// per element.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/elementwise.cuh"
#include "partita_rt/random.h"

namespace partita_rt::cuda {

namespace {

template <typename T> struct DrawNormal {
  T *values;
  uint64_t key, from;
  double mean, std;
  __device__ void operator()(int64_t first, int count) const {
    float x[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      x[i] = float(mean + standardNormal(key, from + uint64_t(first + i)) * std);
    store(values + first, x, count);
  }
};

} // namespace

template <typename T>
void drawNormal(const Stream &stream, T *values, int64_t n, uint64_t key, uint64_t first,
                double mean, double std) {
  launchElementwise<kPack>(stream, n, DrawNormal<T>{values, key, first, mean, std});
}

#define DRAW(T)                                                                                    \
  template void drawNormal(const Stream &, T *, int64_t, uint64_t, uint64_t, double, double);
FOR_STORAGE(DRAW)
#undef DRAW

} // namespace partita_rt::cuda
