// The simulated cuBLASLt's descriptors: of matrices, of operations, and preferences.

#include <cublasLt.h>

#include "simulated/matmul.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

using namespace simulated;

cublasStatus_t simulated::refuse(cublasStatus_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("simulated cuBLASLt: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  return status;
}

namespace {

template <typename T> cublasStatus_t assign(T &to, const void *buf, size_t size) {
  if (!buf || size != sizeof(T))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of %zu bytes given with %zu",
                  sizeof(T), size);
  std::memcpy(&to, buf, size);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T> cublasStatus_t give(const T &from, void *buf, size_t size, size_t *written) {
  if (!buf || size != sizeof(T))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of %zu bytes asked for with %zu",
                  sizeof(T), size);
  std::memcpy(buf, &from, size);
  if (written)
    *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = new Layout{type, rows, cols, ld};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *buf, size_t size) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return assign(layout->batch, buf, size);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return assign(layout->stride, buf, size);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED; // the others are set when it is created
  }
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void *buf, size_t size, size_t *written) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return give(uint32_t(layout->type), buf, size, written);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return give(layout->rows, buf, size, written);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return give(layout->cols, buf, size, written);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return give(layout->ld, buf, size, written);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return give(layout->batch, buf, size, written);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return give(layout->stride, buf, size, written);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation,
                                        cublasComputeType_t computeType, cudaDataType_t scaleType) {
  *operation = new Operation{computeType, scaleType};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *buf, size_t size) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return assign(operation->transA, buf, size);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return assign(operation->transB, buf, size);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return assign(operation->epilogue, buf, size);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return assign(operation->bias, buf, size);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return assign(operation->aux, buf, size);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return assign(operation->auxLd, buf, size);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return assign(operation->scaleA, buf, size);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return assign(operation->scaleB, buf, size);
  case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
    return assign(operation->fastAccumulation, buf, size);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, void *buf,
                                              size_t size, size_t *written) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return give(operation->transA, buf, size, written);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return give(operation->transB, buf, size, written);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return give(operation->epilogue, buf, size, written);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return give(operation->bias, buf, size, written);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return give(operation->aux, buf, size, written);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return give(operation->auxLd, buf, size, written);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return give(operation->scaleA, buf, size, written);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return give(operation->scaleB, buf, size, written);
  case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
    return give(operation->fastAccumulation, buf, size, written);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *buf, size_t size) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return assign(preference->workspace, buf, size);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return assign(preference->schemes, buf, size);
  return assign(preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], buf,
                size);
}
