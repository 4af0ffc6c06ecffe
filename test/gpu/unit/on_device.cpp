// The linker's --wrap=cublasLtMatmul sends all matmuls of the tests through on_device.h.

#include "on_device.h"

extern "C" {
cublasStatus_t __real_cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *,
                                     const void *, cublasLtMatrixLayout_t, const void *,
                                     cublasLtMatrixLayout_t, const void *, const void *,
                                     cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,
                                     const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t);
cublasStatus_t __wrap_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                     const void *alpha, const void *a,
                                     cublasLtMatrixLayout_t aLayout, const void *b,
                                     cublasLtMatrixLayout_t bLayout, const void *beta,
                                     const void *c, cublasLtMatrixLayout_t cLayout, void *d,
                                     cublasLtMatrixLayout_t dLayout,
                                     const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                                     size_t workspaceBytes, cudaStream_t stream) {
  return on_device::matmul(__real_cublasLtMatmul, handle, operation, alpha, a, aLayout, b, bLayout,
                           beta, c, cLayout, d, dLayout, algorithm, workspace, workspaceBytes,
                           stream);
}
}
