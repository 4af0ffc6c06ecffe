// Rows copied from wherever they stand, bits as they are: a thread has a few 16-byte chunks of a
// row, or its elements where source and destination are not aligned alike.

#ifndef PARTITA_RT_CUDA_ROW_COPY_CUH
#define PARTITA_RT_CUDA_ROW_COPY_CUH

#include "cuda/kernels/pack.cuh"

namespace partita_rt::cuda {

/// dst + row * dstStride gets `width` elements from source(row), zeros where that is null. A warp
/// has a row at a time; block.y rows are beside each other.
template <typename T, typename Source>
__global__ void copyRowsFrom(T *dst, int64_t dstStride, int64_t rows, int64_t width,
                             Source source) {
  constexpr int kChunk = 16 / int(sizeof(T));
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  const T *from = source(row);
  T *to = dst + row * dstStride;
  int64_t done = 0;
  if (isAligned<16>(to) && (!from || isAligned<16>(from))) {
    done = width / kChunk * kChunk;
    for (int64_t i = int64_t(threadIdx.x) * kChunk; i < done; i += int64_t(kWarp) * kChunk) {
      Pack<T, kChunk> pack{};
      if (from)
        loadAligned(pack, from + i);
      storeAligned(to + i, pack);
    }
  }
  for (int64_t i = done + threadIdx.x; i < width; i += kWarp)
    to[i] = from ? from[i] : T{};
}

template <typename T, typename Source>
void launchCopyRows(const Stream &stream, T *dst, int64_t dstStride, int64_t rows, int64_t width,
                    const Source &source) {
  constexpr int kRows = 8;
  if (rows > 0 && width > 0)
    PARTITA_RT_LAUNCH((copyRowsFrom<T, Source>), gridOf(ceilDiv(rows, kRows)), dim3(kWarp, kRows),
                      0, stream, dst, dstStride, rows, width, source);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ROW_COPY_CUH
