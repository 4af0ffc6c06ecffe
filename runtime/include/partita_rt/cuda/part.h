// A rank's part of a whole that it has (comm.h: takePart), on the GPU.

#ifndef PARTITA_RT_CUDA_PART_H
#define PARTITA_RT_CUDA_PART_H

#include "partita_rt/comm.h"
#include "partita_rt/cuda/kernels.h"

namespace partita_rt::cuda {

template <typename T>
void takePart(const Stream &stream, const Communicator &group, const T *from, T *to, int64_t count,
              int64_t blocks, int64_t whole = 0) {
  if (!whole)
    return stridedCopy(stream, to, {count, 1}, from + group.rank() * count,
                       {group.size() * count, 1}, {blocks, count}, sizeof(T));
  int64_t first = least(whole, group.rank() * count), n = least(count, whole - first);
  stridedCopy(stream, to, {1}, from + first, {1}, {n}, sizeof(T));
  fill(stream, to + n, 0, count - n);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_PART_H
