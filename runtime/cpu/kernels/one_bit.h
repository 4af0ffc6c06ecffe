// Kernels of sums with one bit per element (partita_rt/one_bit.h).

#ifndef PARTITA_RT_CPU_KERNELS_ONE_BIT_H
#define PARTITA_RT_CPU_KERNELS_ONE_BIT_H

#include "common/mesh/one_bit_blocks.h"

#include <cstdint>

namespace partita_rt {

/// Bit i of the bits, from the lowest of each byte on, is 1 if x[i] >= 0. The rest of the last byte
/// is 0.
void packSigns(uint8_t *bits, const float *x, int64_t n);

/// y[i] += scale where bit i is 1, else y[i] -= scale.
void addSigns(float *y, const uint8_t *bits, float scale, int64_t n);

/// |x| / sqrt(n), the scale of the signs that is nearest to x's own norm; 0 without elements. Squares are summed as on GPUs: each
/// block by sumOfSquares, the blocks by lanes (one_bit_shapes.h).
float signScale(const float *x, int64_t n);

/// Those of OneBitKernels (common/mesh/one_bit_sum.h).
void packForServers(const OneBitBlocks &blocks, uint8_t *sent);
void serveSums(const OneBitBlocks &blocks, int self, const uint8_t *sent, const uint8_t *received,
               uint8_t *served);
void unpackSums(const OneBitBlocks &blocks, const uint8_t *received);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_ONE_BIT_H
