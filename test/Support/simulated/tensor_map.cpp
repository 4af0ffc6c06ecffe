// Tensor maps (simulated/cuda.h), as simt/bulk.h reads them, and the driver functions that a program asks
// for.

#include "simulated/cuda.h"
#include "simulated/cuda_runtime.h"

#include "simt/bulk.h"

#include <cstring>

namespace {

/// Does the documentation of cuTensorMapEncodeTiled allow these sizes?
bool isAllowed(const simt::BoxMap &map, const cuuint32_t *elementStrides) {
  if (reinterpret_cast<uintptr_t>(map.data) % 16 != 0 || map.box[0] * 2 > 128 ||
      map.box[0] * 2 % 16 != 0)
    return false;
  for (int i = 0; i < simt::BoxMap::kRank; ++i)
    if (map.sizes[i] == 0 || map.box[i] == 0 || map.box[i] > 256 || elementStrides[i] != 1)
      return false;
  for (uint64_t stride : map.strides)
    if (stride % 16 != 0 || stride >= uint64_t(1) << 40)
      return false;
  return true;
}

} // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType type, cuuint32_t rank,
                                void *globalAddress, const cuuint64_t *globalDim,
                                const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
                                const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill oobFill) {
  bool known =
      rank == simt::BoxMap::kRank &&
      (type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) &&
      interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && swizzle == CU_TENSOR_MAP_SWIZZLE_128B &&
      oobFill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  if (!known || reinterpret_cast<uintptr_t>(tensorMap) % 64 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  simt::BoxMap map{
      simt::BoxMap::kMagic, static_cast<const unsigned char *>(globalAddress), {}, {}, {}};
  for (int i = 0; i < simt::BoxMap::kRank; ++i) {
    map.sizes[i] = cuuint32_t(globalDim[i]);
    map.box[i] = boxDim[i];
    if (i > 0)
      map.strides[i - 1] = globalStrides[i - 1];
    if (globalDim[i] >> 32)
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (!isAllowed(map, elementStrides))
    return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof(map) <= sizeof(tensorMap->opaque));
  std::memset(tensorMap, 0, sizeof(*tensorMap));
  std::memcpy(tensorMap->opaque, &map, sizeof(map));
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *status) {
  bool known = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *function = known ? reinterpret_cast<void *>(cuTensorMapEncodeTiled) : nullptr;
  *status = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
