// Chunks of numbers in 4 bits, and their sums (kernels.h, int4_chunks.h). Lanes of a warp share a block: as many as it has words, a power
// of two at most, each of which reads neighbouring packs and writes neighbouring words. A thread sums a word of every rank's chunk, in their
// order. A max does not depend on the order of its operands, so the bits are those of the CPU.
//
// Quantizing moves sizeof(X) + 1/2 bytes per element, summing sizeof(X) + ranks/2, and either 4 per block.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/block_max.cuh"
#include "partita_rt/int4_chunks.h"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = kElementwiseThreads;
static_assert(kPack == int4_chunks::kWord, "a pack is a word");

/// Where a tensor's chunks lie.
struct Chunks {
  int64_t stride, chunk, block;
  int64_t blocks, numbers; ///< of one chunk: how many, and behind how many bytes of scales
};

template <typename X>
__global__ void __launch_bounds__(kThreads)
    quantizeWords(int8_t *chunks, Chunks at, const X *x, int64_t n, int64_t total, int lanes) {
  int64_t number = globalThread() / lanes;
  int lane = int(threadIdx.x) % lanes;
  bool exists = number < total;
  int64_t rank = exists ? number / at.blocks : 0, block = exists ? number % at.blocks : 0,
          first = block * at.block, size = least(at.chunk - first, at.block),
          begin = rank * at.chunk + first, there = least(n - begin, size);
  if (!exists || there < 0)
    there = 0;
  const X *from = x + (there > 0 ? begin : 0);
  unsigned most = maxBits(from, there, lane, lanes);
  if (!exists)
    return;
  bool isFinite = most < 0x7f800000u;
  float max = half::fromBits(most), inverse = isFinite ? int4_chunks::inverseOf(max) : 0;
  int8_t *row = chunks + rank * at.stride;
  if (lane == 0)
    reinterpret_cast<float *>(row)[block] =
        isFinite ? int4_chunks::scaleOf(max) : int4_chunks::nan();
  auto *words = reinterpret_cast<unsigned *>(row + at.numbers + first / 2);
  for (int64_t i = lane * kPack; i < size; i += int64_t(lanes) * kPack) {
    unsigned word = 0;
    if (inverse != 0 && i < there) {
      float each[kPack];
      load(each, from + i, least(there - i, kPack));
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        word |= (unsigned(int(rintf(each[j] * inverse))) & 15u) << (4 * j);
    }
    words[i / kPack] = word;
  }
}

/// A pack of the sum.
template <typename X> struct SumWords {
  X *sum;
  const int8_t *chunks;
  Chunks at;
  int64_t ranks;
  __device__ void operator()(int64_t first, int count) const {
    float total[kPack] = {};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int8_t *row = chunks + rank * at.stride;
      float scale = reinterpret_cast<const float *>(row)[first / at.block];
      unsigned word = *reinterpret_cast<const unsigned *>(row + at.numbers + first / 2);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        int number = int(word >> (4 * j) & 15u);
        total[j] += roundedProduct(float((number ^ 8) - 8), scale);
      }
    }
    store(sum + first, total, count);
  }
};

Chunks chunksOf(int64_t stride, int64_t chunk, int64_t block) {
  return {stride, chunk, block, ceilDiv(chunk, block), int4_chunks::scaleBytes(chunk, block)};
}

} // namespace

template <typename X>
void quantizeChunks(const Stream &stream, int8_t *chunks, int64_t offset, int64_t stride,
                    const X *x, int64_t n, int64_t chunk, int64_t ranks, int64_t block) {
  Chunks at = chunksOf(stride, chunk, block);
  int lanes = lanesOfBlock(block);
  if (int64_t total = at.blocks * ranks; total > 0)
    PARTITA_RT_LAUNCH(quantizeWords<X>, gridOf(ceilDiv(total * lanes, kThreads)), kThreads, 0,
                      stream, chunks + offset, at, x, n, total, lanes);
}

template <typename X>
void sumChunks(const Stream &stream, X *sum, const int8_t *chunks, int64_t offset, int64_t stride,
               int64_t chunk, int64_t ranks, int64_t block) {
  launchElementwise<kPack>(
      stream, chunk, SumWords<X>{sum, chunks + offset, chunksOf(stride, chunk, block), ranks});
}

#define CHUNKS(X)                                                                                  \
  template void quantizeChunks(const Stream &, int8_t *, int64_t, int64_t, const X *, int64_t,     \
                               int64_t, int64_t, int64_t);                                         \
  template void sumChunks(const Stream &, X *, const int8_t *, int64_t, int64_t, int64_t, int64_t, \
                          int64_t);
FOR_STORAGE(CHUNKS)

} // namespace partita_rt::cuda
