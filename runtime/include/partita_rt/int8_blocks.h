// Numbers in 8 bits and a scale per block of consecutive ones: blockwise quantization (Dettmers et al., arXiv
// 2110.02861), as ZeRO++ (Wang et al., arXiv 2306.10209) sends weights.
//
// scale = max |x| / 127, stored = x * (127 / max |x|) rounded to nearest even, x' = stored * scale.

#ifndef PARTITA_RT_INT8_BLOCKS_H
#define PARTITA_RT_INT8_BLOCKS_H

#include "host_device.h"

namespace partita_rt::int8_blocks {

/// The largest stored number. -128 is not used: zero stays zero, and x and -x have the same magnitude.
constexpr int kMost = 127;
/// The elements of a block, at least: with the scale of a smaller one it would have no fewer bytes than in bfloat16.
constexpr int kLeastBlock = 8;
/// A block whose max is below this is zero: neither its scale nor the inverse would be a normal float.
constexpr float kLeast = 127 * 1.17549435e-38f;

/// The max of |x|; NaN if one of both is NaN or infinite.
template <typename T> PARTITA_RT_HOST_DEVICE constexpr T maxWith(T max, T x) {
  T size = x < 0 ? -x : x;
  bool isFinite = size - size == 0 && max - max == 0;
  return !isFinite ? (size - size) + (max - max) : size > max ? size : max;
}
/// The scale of a block with this max: NaN of NaN, so that the whole block becomes NaN.
template <typename T> PARTITA_RT_HOST_DEVICE constexpr T scaleOf(T max) {
  return max < T(kLeast) ? T(0) : max / T(kMost);
}
/// What numbers are multiplied by before they are rounded.
template <typename T> PARTITA_RT_HOST_DEVICE constexpr T inverseOf(T max) {
  return max < T(kLeast) ? T(0) : T(kMost) / max;
}

} // namespace partita_rt::int8_blocks

#endif // PARTITA_RT_INT8_BLOCKS_H
