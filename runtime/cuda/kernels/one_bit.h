// Kernels of sums with one bit per element: those of OneBitKernels (common/mesh/one_bit_sum.h), queued.

#ifndef PARTITA_RT_CUDA_KERNELS_ONE_BIT_H
#define PARTITA_RT_CUDA_KERNELS_ONE_BIT_H

#include "common/mesh/one_bit_blocks.h"
#include "partita_rt/cuda/stream.h"

namespace partita_rt::cuda {

/// Scratch of each: oneBitSumScratch of the tensors' blocks (shapes.h).
void packForServers(const Stream &stream, const OneBitBlocks &blocks, uint8_t *sent);
void serveSums(const Stream &stream, const OneBitBlocks &blocks, int self, const uint8_t *sent,
               const uint8_t *received, uint8_t *served);
void unpackSums(const Stream &stream, const OneBitBlocks &blocks, const uint8_t *received);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_ONE_BIT_H
