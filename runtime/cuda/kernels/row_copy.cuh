// Rows copied from wherever they stand, bits as they are: a thread has a few 16-byte chunks of a
// row, or its elements where source and destination are not aligned alike. As many threads have a
// row as it has chunks, a warp at most.

#ifndef PARTITA_RT_CUDA_ROW_COPY_CUH
#define PARTITA_RT_CUDA_ROW_COPY_CUH

#include "partita_rt/cuda/pack.cuh"

namespace partita_rt::cuda {

/// A block of 256 threads, each row of them for a row of so many elements.
template <typename T> dim3 rowCopyBlock(int64_t width) {
  unsigned lanes = 1;
  while (lanes < kWarp && int64_t(lanes) * 16 < width * int64_t(sizeof(T)))
    lanes *= 2;
  return dim3(lanes, 256 / lanes);
}

/// to[0 .. width) = from, or zeros where that is null, by the threads of the block's row. Of a
/// thread's chunks four are read before the first is written.
template <typename T> __device__ inline void copyRow(T *to, const T *from, int64_t width) {
  constexpr int kChunk = 16 / int(sizeof(T)), kAtOnce = 4;
  int64_t done = 0, step = int64_t(blockDim.x) * kChunk;
  if (isAligned<16>(to) && (!from || isAligned<16>(from))) {
    done = width / kChunk * kChunk;
    for (int64_t i = int64_t(threadIdx.x) * kChunk; i < done; i += kAtOnce * step) {
      Pack<T, kChunk> packs[kAtOnce]{};
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        if (from && i + j * step < done)
          loadAligned(packs[j], from + i + j * step);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        if (i + j * step < done)
          storeAligned(to + i + j * step, packs[j]);
    }
  }
  for (int64_t i = done + threadIdx.x; i < width; i += blockDim.x)
    to[i] = from ? from[i] : T{};
}

/// dst + row * dstStride gets `width` elements from source(row), zeros where that is null.
template <typename T, typename Source>
__global__ void copyRowsFrom(T *dst, int64_t dstStride, int64_t rows, int64_t width,
                             Source source) {
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row < rows)
    copyRow(dst + row * dstStride, source(row), width);
}

template <typename T, typename Source>
void launchCopyRows(const Stream &stream, T *dst, int64_t dstStride, int64_t rows, int64_t width,
                    const Source &source) {
  if (rows == 0 || width == 0)
    return;
  dim3 block = rowCopyBlock<T>(width);
  PARTITA_RT_LAUNCH((copyRowsFrom<T, Source>), gridOf(ceilDiv(rows, block.y)), block, 0, stream,
                    dst, dstStride, rows, width, source);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ROW_COPY_CUH
