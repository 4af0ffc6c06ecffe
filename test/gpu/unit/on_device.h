// Matmuls on device memory for operands on the host. The unit tests pass page-locked memory, which
// our kernels read and write like any other. NVIDIA does not promise this for cuBLASLt's kernels,
// some of which let the GPU's copy engine fetch tiles.

#ifndef PARTITA_TEST_GPU_ON_DEVICE_H
#define PARTITA_TEST_GPU_ON_DEVICE_H

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace on_device {

using Matmul = decltype(&cublasLtMatmul);

inline void must(bool good, const char *what) {
  if (good)
    return;
  std::fprintf(stderr, "matmuls on device memory: %s failed\n", what);
  std::_Exit(1);
}
inline void must(cudaError_t error, const char *what) { must(error == cudaSuccess, what); }

/// A range of host memory, and its copy on the device with the same alignment modulo 256 bytes.
class Copy {
public:
  Copy(const void *host, int64_t bytes) : host(const_cast<void *>(host)), bytes(size_t(bytes)) {
    cudaPointerAttributes attributes{};
    bool known = host && cudaPointerGetAttributes(&attributes, host) == cudaSuccess;
    (void)cudaGetLastError();
    if (!host || bytes <= 0 || (known && attributes.type == cudaMemoryTypeDevice))
      return;
    must(cudaMalloc(&memory, this->bytes + 256), "cudaMalloc");
    data = static_cast<char *>(memory) + reinterpret_cast<uintptr_t>(host) % 256;
    must(cudaMemcpy(data, host, this->bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Copy() { cudaFree(memory); }
  Copy(const Copy &) = delete;
  Copy &operator=(const Copy &) = delete;
  void *get() const { return data ? data : host; }
  void copyBack() const {
    if (data)
      must(cudaMemcpy(host, data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  }

private:
  void *host, *memory = nullptr, *data = nullptr;
  size_t bytes;
};

template <typename T>
T layoutOf(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute) {
  T value{};
  size_t written = 0;
  must(cublasLtMatrixLayoutGetAttribute(layout, attribute, &value, sizeof value, &written) ==
           CUBLAS_STATUS_SUCCESS,
       "a layout");
  return value;
}
template <typename T>
T fieldOf(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute) {
  T value{};
  size_t written = 0;
  must(cublasLtMatmulDescGetAttribute(operation, attribute, &value, sizeof value, &written) ==
           CUBLAS_STATUS_SUCCESS,
       "a matmul's attribute");
  return value;
}
template <typename T>
void setField(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  must(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS,
       "a matmul's attribute");
}

inline int64_t sizeOf(cublasLtMatrixLayout_t layout) {
  auto type = layoutOf<uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE);
  return type == CUDA_R_32F ? 4 : type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 ? 1 : 2;
}

/// Returns the bytes from a matrix's first to its last.
inline int64_t bytesOf(cublasLtMatrixLayout_t layout) {
  auto rows = int64_t(layoutOf<uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS));
  auto cols = int64_t(layoutOf<uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS));
  auto ld = layoutOf<int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD);
  auto batch = layoutOf<int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  auto stride = layoutOf<int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  return ((batch - 1) * stride + (cols - 1) * ld + rows) * sizeOf(layout);
}

/// Calls cublasLtMatmul with copies of operands that are not device memory. A captured matmul has
/// only device memory.
inline cublasStatus_t matmul(Matmul real, cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                             const void *alpha, const void *a, cublasLtMatrixLayout_t aLayout,
                             const void *b, cublasLtMatrixLayout_t bLayout, const void *beta,
                             const void *c, cublasLtMatrixLayout_t cLayout, void *d,
                             cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algorithm,
                             void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  must(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  if (capture != cudaStreamCaptureStatusNone)
    return real(handle, operation, alpha, a, aLayout, b, bLayout, beta, c, cLayout, d, dLayout,
                algorithm, workspace, workspaceBytes, stream);
  must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  auto epilogue = fieldOf<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  bool hasAux = (epilogue & 128) != 0,
       hasVector = epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_DGELU;
  auto rows = int64_t(layoutOf<uint64_t>(dLayout, CUBLASLT_MATRIX_LAYOUT_ROWS));
  auto cols = int64_t(layoutOf<uint64_t>(dLayout, CUBLASLT_MATRIX_LAYOUT_COLS));
  int64_t vectorBytes = (epilogue == CUBLASLT_EPILOGUE_BGRADB ? cols : rows) * sizeOf(dLayout);
  int64_t auxBytes =
      hasAux ? ((cols - 1) * fieldOf<int64_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) +
                rows) *
                   sizeOf(dLayout)
             : 0;
  void *vector =
      hasVector ? fieldOf<void *>(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER) : nullptr;
  void *aux =
      hasAux ? fieldOf<void *>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER) : nullptr;
  Copy aCopy(a, bytesOf(aLayout)), bCopy(b, bytesOf(bLayout)), dCopy(d, bytesOf(dLayout));
  bool isScaled = sizeOf(aLayout) == 1;
  auto scale = [&](cublasLtMatmulDescAttributes_t which) {
    return isScaled ? fieldOf<void *>(operation, which) : nullptr;
  };
  void *scaleA = scale(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER),
       *scaleB = scale(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  Copy scaleACopy(scaleA, sizeof(float)), scaleBCopy(scaleB, sizeof(float));
  auto setScales = [&](void *ofA, void *ofB) {
    if (!isScaled)
      return;
    setField(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, ofA);
    setField(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, ofB);
  };
  setScales(scaleACopy.get(), scaleBCopy.get());
  Copy vectorCopy(vector, vectorBytes), auxCopy(aux, auxBytes),
      space(workspace, int64_t(workspaceBytes));
  std::unique_ptr<Copy> cCopy = c == d ? nullptr : std::make_unique<Copy>(c, bytesOf(cLayout));
  if (hasVector)
    setField(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vectorCopy.get());
  if (hasAux)
    setField(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxCopy.get());
  cublasStatus_t status = real(handle, operation, alpha, aCopy.get(), aLayout, bCopy.get(), bLayout,
                               beta, cCopy ? cCopy->get() : dCopy.get(), cLayout, dCopy.get(),
                               dLayout, algorithm, space.get(), workspaceBytes, stream);
  must(cudaStreamSynchronize(stream), "a matmul");
  for (const Copy *copy : {&dCopy, &vectorCopy, &auxCopy})
    copy->copyBack();
  setScales(scaleA, scaleB);
  if (hasVector)
    setField(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  if (hasAux)
    setField(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  return status;
}

} // namespace on_device

#endif // PARTITA_TEST_GPU_ON_DEVICE_H
