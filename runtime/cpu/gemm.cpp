// Matrix products on OpenBLAS.

#include "partita_rt/kernels.h"

#include <cblas.h>
#include <cstring>
#include <limits>

namespace partita_rt {

static CBLAS_TRANSPOSE flag(Trans trans) { return trans == Trans::Yes ? CblasTrans : CblasNoTrans; }

/// OpenBLAS takes 32-bit sizes.
static blasint narrow(int64_t value) {
  if (value < 0 || value > std::numeric_limits<blasint>::max())
    fail("gemm: a size of %lld does not fit into BLAS's 32 bits", (long long)value);
  return blasint(value);
}

void gemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
          int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  if (m == 0 || n == 0)
    return;
  if (m == 1 && k > 0) {
    // One row: y = op(B)^T x, three times as fast as sgemm (which packs B for a single use).
    blasint step = transA == Trans::Yes ? narrow(lda) : 1;
    bool stored = transB == Trans::No; // B is stored [k, n]
    cblas_sgemv(CblasRowMajor, stored ? CblasTrans : CblasNoTrans, narrow(stored ? k : n),
                narrow(stored ? n : k), alpha, b, narrow(ldb), a, step, beta, c, 1);
    return;
  }
  if (n == 1 && k > 0) {
    blasint step = transB == Trans::Yes ? 1 : narrow(ldb);
    bool stored = transA == Trans::No; // A is stored [m, k]
    cblas_sgemv(CblasRowMajor, stored ? CblasNoTrans : CblasTrans, narrow(stored ? m : k),
                narrow(stored ? k : m), alpha, a, narrow(lda), b, step, beta, c, narrow(ldc));
    return;
  }
  cblas_sgemm(CblasRowMajor, flag(transA), flag(transB), narrow(m), narrow(n), narrow(k), alpha, a,
              narrow(lda), b, narrow(ldb), beta, c, narrow(ldc));
}

void gemmBias(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const float *a,
              int64_t lda, const float *b, int64_t ldb, const float *bias, float *c, int64_t ldc) {
  // The bias is written first and added by the product itself, while its tile is in registers.
  for (int64_t row = 0; row < m; ++row)
    std::memcpy(c + row * ldc, bias, size_t(n) * sizeof(float));
  gemm(transA, transB, m, n, k, 1.0f, a, lda, b, ldb, 1.0f, c, ldc);
}

void gemmBatched(Trans transA, Trans transB, int64_t batch, int64_t m, int64_t n, int64_t k,
                 float alpha, const float *a, int64_t lda, int64_t strideA, const float *b,
                 int64_t ldb, int64_t strideB, float beta, float *c, int64_t ldc, int64_t strideC) {
  for (int64_t i = 0; i < batch; ++i)
    gemm(transA, transB, m, n, k, alpha, a + i * strideA, lda, b + i * strideB, ldb, beta,
         c + i * strideC, ldc);
}

} // namespace partita_rt
