// Implements tile_maps.h with cuTensorMapEncodeTiled. Programs do not link the driver's library: the CUDA
// runtime finds the function in it.

#include "cuda/attention/tile_maps.h"

#include "cuda/cuda.h"
#include "partita_rt/cuda/shapes.h"

namespace partita_rt::cuda {

namespace {

decltype(&cuTensorMapEncodeTiled) findEncoder() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  checkCuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                             cudaEnableDefault, &found),
            "cudaGetDriverEntryPointByVersion");
  if (found != cudaDriverEntryPointSuccess || !function)
    fail("the driver has no cuTensorMapEncodeTiled; one for CUDA 12 or later has");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

} // namespace

CUtensorMap tileMap(const void *data, DType dtype, int64_t headDim, const TensorSize &size,
                    int64_t rowStride, int64_t headStride, int64_t batchStride) {
  static const auto encode = findEncoder();
  // A size of 0 is refused; no tile of such a tensor is copied.
  const cuuint64_t sizes[] = {cuuint64_t(headDim), cuuint64_t(most(size.rows, 1)),
                              cuuint64_t(most(size.heads, 1)), cuuint64_t(most(size.batch, 1))};
  const cuuint64_t strides[] = {cuuint64_t(rowStride * 2), cuuint64_t(headStride * 2),
                                cuuint64_t(batchStride * 2)};
  const cuuint32_t box[] = {kBoxColumns, kBoxRows, 1, 1}, steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  CUresult result = encode(&map,
                           dtype == DType::Float16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                   : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                           4, const_cast<void *>(data), sizes, strides, box, steps,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    fail("cuTensorMapEncodeTiled: error %d for %lld x %lld heads of %lld rows of %lld elements, "
         "strides %lld, %lld, %lld",
         int(result), (long long)size.batch, (long long)size.heads, (long long)size.rows,
         (long long)headDim, (long long)batchStride, (long long)headStride, (long long)rowStride);
  return map;
}

} // namespace partita_rt::cuda
