// The alignment that kernels with 16-byte accesses ask of heads: decided on the host, for own kernels
// and for a library's.

#ifndef PARTITA_RT_CUDA_ATTENTION_PACKS_H
#define PARTITA_RT_CUDA_ATTENTION_PACKS_H

#include "partita_rt/attention.h"
#include "partita_rt/cuda/shapes.h"

#include <cstdint>

namespace partita_rt::cuda {

inline bool isAligned16(const void *address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/// Are all packs of 8 elements of these 16-bit heads aligned to 16 bytes?
template <typename T> bool inPacks(const HeadsOf<T> &heads) {
  return (heads.batchStride | heads.rowStride | heads.headStride) % kPack == 0 &&
         isAligned16(heads.data);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_PACKS_H
