// Collectives of CUDA programs: the interface of comm.h, over NCCL, and functions on device memory.
//
// A start queues the collective on its communicator's own stream, after all work queued on the
// compute stream; a wait makes the compute stream wait for the collective. The host waits for
// neither, so a step with collectives can be captured in a CUDA graph. Polls do nothing: GPUs need
// no help. Sums are NCCL's: equal on all ranks and in every run on the same GPUs and links, but in
// NCCL's order, not the CPU's rank order; a 16-bit sum may be rounded at every addition.

#ifndef PARTITA_RT_CUDA_COMM_H
#define PARTITA_RT_CUDA_COMM_H

#include "partita_rt/comm.h"
#include "partita_rt/cuda/stream.h"
#include "partita_rt/one_bit.h"

namespace partita_rt::cuda {

/// takeShard of elements of `width` bytes.
void takeShard(const Stream &stream, ShardOf shard, const void *from, void *to, int64_t count,
               int64_t blocks, int64_t fullCount, int64_t width);

/// The rank's shard of a full tensor that it has, like comm.h's, on the device.
template <typename T>
void takeShard(const Stream &stream, ShardOf shard, const T *from, T *to, int64_t count,
               int64_t blocks, int64_t fullCount = 0) {
  takeShard(stream, shard, from, to, count, blocks, fullCount, int64_t(sizeof(T)));
}

/// putShard of elements of `width` bytes.
void putShard(const Stream &stream, ShardOf shard, const void *from, void *to, int64_t count,
              int64_t blocks, int64_t width);

/// A full tensor of zeros, with the rank's shard in its place, like comm.h's, on the device.
template <typename T>
void putShard(const Stream &stream, ShardOf shard, const T *from, T *to, int64_t count,
              int64_t blocks) {
  putShard(stream, shard, from, to, count, blocks, int64_t(sizeof(T)));
}

/// oneBitAllReduce, queued: signs are packed and summed on the device, with the CPU's bits. An exact sum is NCCL's. Scratch of the stream:
/// oneBitSumScratch of the tensors' blocks (shapes.h).
void oneBitAllReduce(const Stream &stream, Communicator &group, OneBitTensors tensors,
                     bool compresses, void *scratch, const char *why);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_COMM_H
