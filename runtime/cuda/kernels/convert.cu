// Casts, exact or rounding once, to nearest or stochastically; fill; accumulation of gradients.
// Arrays of n elements. Moves sizeof(S) + sizeof(D) bytes per element (fill: sizeof(D)). Stochastic
// rounding draws from the counter-based generator of the CPU's kernel: the same bits.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/elementwise.cuh"
#include "partita_rt/random.h"

namespace partita_rt::cuda {

namespace {

template <typename D, typename S> struct Convert {
  D *dst;
  const S *src;
  __device__ void operator()(int64_t first, int count) const {
    float x[kPack];
    load(x, src + first, count);
    store(dst + first, x, count);
  }
};

struct ConvertStochastically {
  BFloat16 *dst;
  const float *src;
  uint64_t key; ///< plus the first element's number
  __device__ void operator()(int64_t first, int count) const {
    float x[kPack];
    load(x, src + first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      x[i] = roundStochastically(x[i], uint16_t(mix64(key + uint64_t(first + i)) >> 48));
    store(dst + first, x, count);
  }
};

template <typename T> struct Fill {
  T *dst;
  float value;
  __device__ void operator()(int64_t first, int count) const {
    float x[kPack];
#pragma unroll
    for (float &each : x)
      each = value;
    store(dst + first, x, count);
  }
};

template <typename T> struct FillTyped {
  T *dst, value;
  __device__ void operator()(int64_t first, int) const { dst[first] = value; }
};

template <typename T> struct Iota {
  T *dst;
  double start, step;
  __device__ void operator()(int64_t first, int) const {
    dst[first] = T(start + step * double(first));
  }
};

template <typename G, typename T> struct Accumulate {
  G *sum;
  const T *x;
  __device__ void operator()(int64_t first, int count) const {
    Pack<G, kPack> before;
    Pack<T, kPack> more;
    loadBits(before, sum + first, count);
    loadBits(more, x + first, count);
    float a[kPack], b[kPack];
    widen(a, before);
    widen(b, more);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      a[i] += b[i];
    store(sum + first, a, count);
  }
};

} // namespace

template <typename D, typename S>
void convert(const Stream &stream, D *dst, const S *src, int64_t n) {
  launchElementwise<kPack>(stream, n, Convert<D, S>{dst, src});
}

void convertStochastically(const Stream &stream, BFloat16 *dst, const float *src, int64_t n,
                           uint64_t key, int64_t first) {
  launchElementwise<kPack>(stream, n, ConvertStochastically{dst, src, key + uint64_t(first)});
}

template <typename T> void fill(const Stream &stream, T *dst, FillValue<T> value, int64_t n) {
  if constexpr (std::is_same_v<FillValue<T>, T> && !std::is_same_v<T, float>)
    launchElementwise<1>(stream, n, FillTyped<T>{dst, value});
  else
    launchElementwise<kPack>(stream, n, Fill<T>{dst, value});
}

template <typename T>
void iota(const Stream &stream, T *dst, double start, double step, int64_t n) {
  launchElementwise<1>(stream, n, Iota<T>{dst, start, step});
}

template <typename G, typename T>
void accumulate(const Stream &stream, G *sum, const T *x, int64_t n) {
  launchElementwise<kPack>(stream, n, Accumulate<G, T>{sum, x});
}

#define CONVERT(S)                                                                                 \
  template void convert(const Stream &, float *, const S *, int64_t);                              \
  template void convert(const Stream &, Half *, const S *, int64_t);                               \
  template void convert(const Stream &, BFloat16 *, const S *, int64_t);                           \
  template void fill(const Stream &, S *, float, int64_t);
FOR_STORAGE(CONVERT)
#undef CONVERT
#define TYPED(T)                                                                                   \
  template void fill(const Stream &, T *, T, int64_t);                                             \
  template void iota(const Stream &, T *, double, double, int64_t);
TYPED(int64_t)
TYPED(int32_t)
template void fill(const Stream &, bool *, bool, int64_t);
template void fill(const Stream &, double *, double, int64_t);
#define IOTA(T) template void iota(const Stream &, T *, double, double, int64_t);
FOR_STORAGE(IOTA)
#undef IOTA
#undef TYPED
#define ACCUMULATE(G, T) template void accumulate(const Stream &, G *, const T *, int64_t);
FOR_RESULTS(ACCUMULATE)
#undef ACCUMULATE

} // namespace partita_rt::cuda
