// Copies rows from arbitrary addresses, bit for bit: a thread has a few 16-byte chunks of a row, or
// its elements if source and destination are not aligned alike. A row has as many threads as
// chunks, at most a warp.

#ifndef PARTITA_RT_CUDA_KERNELS_ROW_COPY_CUH
#define PARTITA_RT_CUDA_KERNELS_ROW_COPY_CUH

#include "partita_rt/cuda/pack.cuh"

namespace partita_rt::cuda {

/// Returns a block of 256 threads, with one row of threads per row of `width` elements.
template <typename T> dim3 rowCopyBlock(int64_t width) {
  unsigned lanes = 1;
  while (lanes < kWarp && int64_t(lanes) * 16 < width * int64_t(sizeof(T)))
    lanes *= 2;
  return dim3(lanes, 256 / lanes);
}

/// Sets to[0 .. width) to `from`, or to zeros if that is null, by the threads of the block's row. A
/// thread reads four of its chunks before it writes the first.
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

/// Sets dst + row * dstStride to `width` elements from source(row), or to zeros if that is null.
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

#endif // PARTITA_RT_CUDA_KERNELS_ROW_COPY_CUH
