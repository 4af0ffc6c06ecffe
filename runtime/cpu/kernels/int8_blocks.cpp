// Blockwise quantization (kernels.h, int8_blocks.h).

#include "partita_rt/int8_blocks.h"
#include "partita_rt/kernels.h"

#include <algorithm>
#include <cmath>

namespace partita_rt {

namespace {

struct Factors {
  float scale, inverse;
};

/// Those of one block. The bits of positive floats are in the order of their values, infinity and NaN after all
/// others, so that the loop is one of integers.
template <typename X> Factors factorsOf(const X *__restrict x, int64_t block) {
  int32_t most = 0;
  for (int64_t i = 0; i < block; ++i)
    most = std::max(most, int32_t(half::bitsOf(float(x[i])) & 0x7fffffffu));
  float max = half::fromBits(uint32_t(most));
  if (most >= 0x7f800000)
    return {max - max, 0}; // NaN, and stored zeros
  return {int8_blocks::scaleOf(max), int8_blocks::inverseOf(max)};
}

/// Calls put(i, stored number, scale) for each element.
template <typename X, typename Put>
inline void eachStored(const X *__restrict x, float *scales, int64_t block, int64_t n, Put put) {
  for (int64_t first = 0; first < n; first += block) {
    Factors factors = factorsOf(x + first, block);
    if (scales)
      scales[first / block] = factors.scale;
    if (factors.inverse == 0) {
      for (int64_t i = first; i < first + block; ++i)
        put(i, 0.0f, factors.scale);
      continue;
    }
    for (int64_t i = first; i < first + block; ++i)
      put(i, float(int32_t(std::rint(float(x[i]) * factors.inverse))), factors.scale); // no -0
  }
}

} // namespace

template <typename X>
void quantizeBlocks(int8_t *values, float *scales, const X *x, int64_t block, int64_t n) {
  int8_t *__restrict to = values;
  eachStored(x, scales, block, n, [=](int64_t i, float stored, float) { to[i] = int8_t(stored); });
}

template <typename X>
void dequantizeBlocks(X *x, const int8_t *values, const float *scales, int64_t block, int64_t n) {
  X *__restrict to = x;
  for (int64_t first = 0; first < n; first += block) {
    const float scale = scales[first / block];
    for (int64_t i = first; i < first + block; ++i)
      to[i] = float(values[i]) * scale;
  }
}

template <typename X> void roundBlocks(X *y, const X *x, int64_t block, int64_t n) {
  // Not restrict: y may be x.
  for (int64_t first = 0; first < n; first += block)
    eachStored(x + first, nullptr, block, block,
               [=](int64_t i, float stored, float scale) { y[first + i] = stored * scale; });
}

#define BLOCKS(X)                                                                                  \
  template void quantizeBlocks(int8_t *, float *, const X *, int64_t, int64_t);                    \
  template void dequantizeBlocks(X *, const int8_t *, const float *, int64_t, int64_t);            \
  template void roundBlocks(X *, const X *, int64_t, int64_t);
BLOCKS(float)
BLOCKS(Half)
BLOCKS(BFloat16)

} // namespace partita_rt
