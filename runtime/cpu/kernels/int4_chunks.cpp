// Chunks of numbers in 4 bits, and their sums (kernels.h, int4_chunks.h). A group is sixteen numbers, eight bytes; the last one of a
// block may be half of one, or, at a chunk's end, of elements that are not there.

#include "partita_rt/int4_chunks.h"
#include "cpu/kernels/vector.h"
#include "partita_rt/kernels.h"

#include <algorithm>

namespace partita_rt {

namespace {

using int4_chunks::kWord;
static_assert(kLanes == 2 * kWord, "a group is two words");

typedef uint8_t NibbleBytes __attribute__((vector_size(16)));
typedef uint16_t NibblePairs __attribute__((vector_size(16)));
typedef uint8_t PackedBytes __attribute__((vector_size(8)));

/// The low four bits of sixteen integers, the first one lowest.
uint64_t packNibbles(IntLanes x) {
  auto pairs = NibblePairs(__builtin_convertvector(x & 15, NibbleBytes)); // little-endian
  auto bytes = __builtin_convertvector(pairs | pairs >> 4, PackedBytes);
  return __builtin_bit_cast(uint64_t, bytes);
}

/// Sixteen numbers of four bits, in two's complement.
Lanes unpackNibbles(uint64_t packed) {
  auto bytes = __builtin_bit_cast(PackedBytes, packed);
  auto pairs = __builtin_convertvector(bytes, NibblePairs);
  pairs = (pairs & 0x0f) | (pairs & 0xf0) << 4;
  auto numbers = __builtin_convertvector(NibbleBytes(pairs), IntLanes);
  return __builtin_convertvector((numbers ^ 8) - 8, Lanes);
}

/// The bytes of so many numbers, at most sixteen, in whole words.
int64_t bytesOf(int64_t numbers) { return numbers > kWord ? 8 : 4; }

/// The first n elements, up to sixteen; zeros behind them.
template <typename X> Lanes loadGroup(const X *x, int64_t n) {
  return n >= kLanes ? load(x) : n > 0 ? loadPart(x, n, 0.0f) : Lanes{};
}

/// The max of |x| as bits, which are in the order of the values, infinity and NaN after all others.
template <typename X> int32_t maxBitsOf(const X *x, int64_t n) {
  IntLanes most = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    IntLanes bits = IntLanes(loadGroup(x + i, n - i)) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  int32_t result = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    result = std::max(result, most[lane]);
  return result;
}

/// Packs a block of `size` numbers, of which there are n; the others are zero. Returns the scale.
template <typename X> float packBlock(int8_t *to, const X *x, int64_t n, int64_t size) {
  int32_t most = maxBitsOf(x, n);
  float max = half::fromBits(uint32_t(most));
  bool isFinite = most < 0x7f800000;
  float inverse = isFinite ? int4_chunks::inverseOf(max) : 0;
  // Adding 1.5 * 2^23 rounds to an integer, whose low bits then are those of the sum.
  const Lanes factor = splat(inverse), magic = splat(12582912.0f);
  for (int64_t i = 0; i < size; i += kLanes) {
    uint64_t packed = 0;
    if (inverse != 0 && i < n)
      packed = packNibbles(IntLanes(rounded(loadGroup(x + i, n - i) * factor) + magic));
    std::memcpy(to + i / 2, &packed, size_t(bytesOf(size - i)));
  }
  return isFinite ? int4_chunks::scaleOf(max) : int4_chunks::nan();
}

} // namespace

template <typename X>
void quantizeChunks(int8_t *chunks, int64_t offset, int64_t stride, const X *x, int64_t n,
                    int64_t chunk, int64_t ranks, int64_t block) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t begin = std::min(n, rank * chunk), count = std::min(chunk, n - begin);
    int8_t *scales = chunks + offset + rank * stride,
           *numbers = scales + int4_chunks::scaleBytes(chunk, block);
    for (int64_t first = 0; first < chunk; first += block) {
      int64_t size = std::min(block, chunk - first),
              there = std::clamp(count - first, int64_t(0), size);
      float scale =
          packBlock(numbers + first / 2, x + begin + (there > 0 ? first : 0), there, size);
      std::memcpy(scales + 4 * (first / block), &scale, 4);
    }
  }
}

template <typename X>
void sumChunks(X *sum, const int8_t *chunks, int64_t offset, int64_t stride, int64_t chunk,
               int64_t ranks, int64_t block) {
  int64_t toNumbers = int4_chunks::scaleBytes(chunk, block);
  for (int64_t first = 0; first < chunk; first += block) {
    int64_t size = std::min(block, chunk - first);
    for (int64_t i = first; i < first + size; i += kLanes) {
      int64_t count = std::min(kLanes, first + size - i);
      Lanes total = {};
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const int8_t *row = chunks + offset + rank * stride;
        float scale;
        std::memcpy(&scale, row + 4 * (first / block), 4);
        uint64_t packed = 0;
        std::memcpy(&packed, row + toNumbers + i / 2, size_t(bytesOf(count)));
        total += rounded(unpackNibbles(packed) * splat(scale));
      }
      if (count == kLanes)
        store(sum + i, total);
      else
        storePart(sum + i, total, count);
    }
  }
}

#define CHUNKS(X)                                                                                  \
  template void quantizeChunks(int8_t *, int64_t, int64_t, const X *, int64_t, int64_t, int64_t,   \
                               int64_t);                                                           \
  template void sumChunks(X *, const int8_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
CHUNKS(float)
CHUNKS(Half)
CHUNKS(BFloat16)

} // namespace partita_rt
