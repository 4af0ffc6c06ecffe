// Blockwise quantization (kernels.h, int8_blocks.h). Lanes of a warp share a block: as many as it has packs, a power
// of two, each of which reads neighbouring packs. A max does not depend on the order of its operands, so the bits are
// those of the CPU.
//
// Moves sizeof(X) + 1 bytes per element and 4 per block.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/block_max.cuh"
#include "partita_rt/int8_blocks.h"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = kElementwiseThreads;

struct Factors {
  float scale, inverse;
};

/// Those of the block at x, of which these lanes each read packs; `reads`: the block exists. All lanes call it.
template <typename X>
__device__ inline Factors factorsOf(const X *x, int64_t block, int lane, int lanes, bool reads) {
  unsigned most = maxBits(x, reads ? block : 0, lane, lanes);
  float max = half::fromBits(most);
  if (most >= 0x7f800000u)
    return {max - max, 0};
  return {int8_blocks::scaleOf(max), int8_blocks::inverseOf(max)};
}

/// Stores 8 bits and scales, or, if y is given, what they are worth.
template <typename X>
__global__ void __launch_bounds__(kThreads)
    quantizeLanes(int8_t *values, float *scales, X *y, const X *x, int64_t block, int64_t blocks,
                  int lanes) {
  int64_t number = globalThread() / lanes;
  int lane = int(threadIdx.x) % lanes;
  bool reads = number < blocks;
  const X *from = x + (reads ? number : 0) * block;
  Factors factors = factorsOf(from, block, lane, lanes, reads);
  if (!reads)
    return;
  if (scales && lane == 0)
    scales[number] = factors.scale;
  for (int64_t first = lane * kPack; first < block; first += int64_t(lanes) * kPack) {
    int64_t count = least(block - first, kPack);
    float each[kPack];
    load(each, from + first, count);
#pragma unroll
    for (float &one : each)
      one = factors.inverse == 0 ? 0 : float(int(rintf(one * factors.inverse))); // no -0
    if (y) {
#pragma unroll
      for (float &one : each)
        one *= factors.scale;
      store(y + number * block + first, each, count);
      continue;
    }
    int8_t *to = values + number * block + first;
    unsigned words[2] = {};
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      words[i / 4] |= unsigned(uint8_t(int8_t(int(each[i])))) << (i % 4 * 8);
    if (count == kPack && isAligned<kPack>(to)) {
      *reinterpret_cast<uint2 *>(to) = uint2{words[0], words[1]};
      continue;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < count)
        to[i] = int8_t(uint8_t(words[i / 4] >> (i % 4 * 8)));
  }
}
static_assert(kPack == 8, "two words");

template <typename X>
void launchQuantize(const Stream &stream, int8_t *values, float *scales, X *y, const X *x,
                    int64_t block, int64_t n) {
  int lanes = lanesOfBlock(block);
  int64_t blocks = n / block;
  if (n > 0)
    PARTITA_RT_LAUNCH(quantizeLanes<X>, gridOf(ceilDiv(blocks * lanes, kThreads)), kThreads, 0,
                      stream, values, scales, y, x, block, blocks, lanes);
}

/// A pack of elements, which may lie in several blocks.
template <typename X> struct Dequantize {
  X *x;
  const int8_t *values;
  const float *scales;
  int64_t block;
  __device__ void operator()(int64_t first, int count) const {
    float each[kPack];
    for (int i = 0; i < kPack; ++i)
      each[i] = i < count ? float(values[first + i]) * scales[(first + i) / block] : 0;
    store(x + first, each, count);
  }
};

} // namespace

template <typename X>
void quantizeBlocks(const Stream &stream, int8_t *values, float *scales, const X *x, int64_t block,
                    int64_t n) {
  launchQuantize<X>(stream, values, scales, nullptr, x, block, n);
}

template <typename X>
void dequantizeBlocks(const Stream &stream, X *x, const int8_t *values, const float *scales,
                      int64_t block, int64_t n) {
  launchElementwise<kPack>(stream, n, Dequantize<X>{x, values, scales, block});
}

template <typename X>
void roundBlocks(const Stream &stream, X *y, const X *x, int64_t block, int64_t n) {
  launchQuantize<X>(stream, nullptr, nullptr, y, x, block, n);
}

#define BLOCKS(X)                                                                                  \
  template void quantizeBlocks(const Stream &, int8_t *, float *, const X *, int64_t, int64_t);    \
  template void dequantizeBlocks(const Stream &, X *, const int8_t *, const float *, int64_t,      \
                                 int64_t);                                                         \
  template void roundBlocks(const Stream &, X *, const X *, int64_t, int64_t);
FOR_STORAGE(BLOCKS)

} // namespace partita_rt::cuda
