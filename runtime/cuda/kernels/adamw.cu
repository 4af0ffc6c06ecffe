// AdamW (Loshchilov and Hutter, arXiv 1711.05101), the arithmetic of the op table:
//
//     m += (1 - b1) (g - m);  v += (1 - b2) (g g - v)
//     p -= rate * ((m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon) + decay p)
//
// of n elements: the master weight p, m and v in float, the gradient g in G, and, if wanted, the
// parameter in 16 bit as it is used, rounded from p to the nearest or by chance (the random numbers
// of convertStochastically: the same bits). One pass: 24 bytes per element for p, m and v read and
// written, sizeof(G) for g, 2 for the 16-bit parameter. Rate, update count, gradient scale and
// whether the update applies are read from device memory, where the step has computed them.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/elementwise.cuh"
#include "partita_rt/random.h"

namespace partita_rt::cuda {

namespace {

/// Elements of a thread: one 16-byte access of float.
constexpr int kUpdatePack = 4;

template <typename P, typename G>
__global__ void __launch_bounds__(kElementwiseThreads)
    adamwUpdate(float *p, float *m, float *v, P *stored, const G *g, int64_t n, AdamW options,
                UpdateControl control, uint64_t key) {
  __shared__ float corrections[2];
  if (control.apply && *control.apply == 0.0f) // the same for all threads
    return;
  if (threadIdx.x == 0) {
    double t = double(*control.t);
    bool corrected = options.biasCorrection;
    corrections[0] = corrected ? float(1.0 / (1.0 - pow(options.beta1, t))) : 1.0f;
    corrections[1] = corrected ? float(1.0 / (1.0 - pow(options.beta2, t))) : 1.0f;
  }
  __syncthreads();
  int64_t first = globalThread() * kUpdatePack;
  if (first >= n)
    return;
  int count = int(least(n - first, kUpdatePack));
  float keep1 = float(1.0 - options.beta1), keep2 = float(1.0 - options.beta2);
  float rate = *control.rate, scale = control.scale ? *control.scale : 1.0f;
  float epsilon = float(options.epsilon), decay = float(options.decay);
  float pOf[kUpdatePack], mOf[kUpdatePack], vOf[kUpdatePack], gOf[kUpdatePack];
  load(pOf, p + first, count);
  load(mOf, m + first, count);
  load(vOf, v + first, count);
  load<Use::Once>(gOf, g + first, count);
#pragma unroll
  for (int i = 0; i < kUpdatePack; ++i) {
    float gradient = scale * gOf[i];
    mOf[i] = mOf[i] + keep1 * (gradient - mOf[i]);
    vOf[i] = vOf[i] + keep2 * (gradient * gradient - vOf[i]);
    float direction = (mOf[i] * corrections[0]) / (sqrtf(vOf[i] * corrections[1]) + epsilon);
    pOf[i] = pOf[i] - rate * (direction + decay * pOf[i]);
  }
  store(p + first, pOf, count);
  store(m + first, mOf, count);
  store(v + first, vOf, count);
  if (!stored)
    return;
  if constexpr (std::is_same_v<P, BFloat16>)
    if (control.stochastic) {
#pragma unroll
      for (int i = 0; i < kUpdatePack; ++i)
        pOf[i] = roundStochastically(pOf[i], uint16_t(mix64(key + uint64_t(first + i)) >> 48));
    }
  store(stored + first, pOf, count);
}

} // namespace

template <typename P, typename G>
void adamw(const Stream &stream, float *p, float *m, float *v, P *stored, const G *g, int64_t n,
           const AdamW &options, const UpdateControl &control) {
  if (n == 0)
    return;
  PARTITA_RT_LAUNCH((adamwUpdate<P, G>), gridOf(ceilDiv(n, kUpdatePack * kElementwiseThreads)),
                    kElementwiseThreads, 0, stream, p, m, v, stored, g, n, options, control,
                    control.key + uint64_t(control.first));
}

#define ADAMW(P, G)                                                                                \
  template void adamw(const Stream &, float *, float *, float *, P *, const G *, int64_t,          \
                      const AdamW &, const UpdateControl &);
ADAMW(BFloat16, float)
ADAMW(BFloat16, BFloat16)
ADAMW(Half, float)
ADAMW(Half, Half)
#undef ADAMW

} // namespace partita_rt::cuda
