// Numbers in 4 bits and a scale per block of consecutive ones, in chunks: what a rank sends of a gradient to the rank that sums
// it (ZeRO++'s qgZ, Wang et al., arXiv 2306.10209).
//
// scale = max |x| / 7, stored = x * (7 / max |x|) rounded to nearest even, x' = stored * scale, in float32.
//
// A chunk of n elements has ceil(n / block) blocks, of which the last one may be shorter. Its bytes are a float32 scale per
// block, then words of 32 bits of eight numbers each, the first one lowest, in two's complement. What is behind the last number is zero.

#ifndef PARTITA_RT_INT4_CHUNKS_H
#define PARTITA_RT_INT4_CHUNKS_H

#include "host_device.h"

#include <cstdint>

namespace partita_rt::int4_chunks {

/// The largest stored number. -8 is not used: x and -x have the same magnitude.
constexpr int kMost = 7;
/// A block whose max is below this is zero: its scale would not be a normal float.
constexpr float kLeast = 7 * 1.17549435e-38f;
/// Numbers of a word. A block has a multiple of them.
constexpr int64_t kWord = 8;

constexpr int64_t scaleBytes(int64_t n, int64_t block) { return 4 * ((n + block - 1) / block); }
constexpr int64_t chunkBytes(int64_t n, int64_t block) {
  return scaleBytes(n, block) + 4 * ((n + kWord - 1) / kWord);
}

/// The scale of a block with this max of |x|, which is finite.
template <typename T> PARTITA_RT_HOST_DEVICE constexpr T scaleOf(T max) {
  return max < T(kLeast) ? T(0) : max / T(kMost);
}
/// What numbers are multiplied by before they are rounded.
template <typename T> PARTITA_RT_HOST_DEVICE constexpr T inverseOf(T max) {
  return max < T(kLeast) ? T(0) : T(kMost) / max;
}

/// The scale of a block whose max is not finite: the same bits on every target.
PARTITA_RT_HOST_DEVICE constexpr float nan() { return __builtin_nanf(""); }

} // namespace partita_rt::int4_chunks

#endif // PARTITA_RT_INT4_CHUNKS_H
