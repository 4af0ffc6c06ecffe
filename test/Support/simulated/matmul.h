// The simulated cuBLASLt's descriptors; a matmul with the arguments of the call, and its
// computation: sums in float, over k in order, rounded once.

#ifndef PARTITA_TEST_SIMULATED_MATMUL_H
#define PARTITA_TEST_SIMULATED_MATMUL_H

#include <cublasLt.h>

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t computeType;
  cudaDataType scaleType;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t auxLd = 0;
  void *scaleA = nullptr, *scaleB = nullptr; ///< a float each, in device memory; 1 if null
  int8_t fastAccumulation = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace simulated {

/// Says on stderr why a call is refused; returns the status.
__attribute__((format(printf, 2, 3))) cublasStatus_t refuse(cublasStatus_t status,
                                                            const char *format, ...);

using Layout = cublasLtMatrixLayoutOpaque_t;
using Operation = cublasLtMatmulDescOpaque_t;

/// The arguments of a matmul.
struct Matmul {
  Operation operation;
  Layout a, b, c, d;
  float alpha = 1.0f, beta = 0.0f;
  const void *aData = nullptr, *bData = nullptr, *cData = nullptr;
  void *dData = nullptr;
  int algorithm = 0;

  int64_t m() const { return int64_t(d.rows); }
  int64_t n() const { return int64_t(d.cols); }
  int64_t k() const { return int64_t(operation.transA == CUBLAS_OP_N ? a.cols : a.rows); }
};

/// D = alpha op(A) op(B) + beta C and the epilogue, all matrices column-major. parts: ranges of k,
/// 1 or 2, which are summed separately.
void multiply(const Matmul &p, int parts);

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_MATMUL_H
