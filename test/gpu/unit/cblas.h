// The two BLAS functions that the CPU's kernels call, as plain loops: the reference for the GPU's
// results must not need a library. Row-major matrices only. Sums in double.

#ifndef PARTITA_TEST_GPU_CBLAS_H
#define PARTITA_TEST_GPU_CBLAS_H

#include <cstdint>

using blasint = int;
enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };

/// Returns beta * c; c is not read if beta is 0, as in BLAS.
inline float blasScaled(float beta, float c) { return beta == 0.0f ? 0.0f : beta * c; }

/// c [m, n] = alpha * op(a) [m, k] * op(b) [k, n] + beta * c.
inline void cblas_sgemm(CBLAS_ORDER, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                        float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                        float *c, int ldc) {
  auto at = [](CBLAS_TRANSPOSE t, int row, int column, int ld) {
    return t == CblasNoTrans ? int64_t(row) * ld + column : int64_t(column) * ld + row;
  };
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int p = 0; p < k; ++p)
        sum += double(a[at(ta, i, p, lda)]) * b[at(tb, p, j, ldb)];
      float &result = c[int64_t(i) * ldc + j];
      result = float(alpha * sum) + blasScaled(beta, result);
    }
}

/// y = alpha * op(a) * x + beta * y, where a is stored as [m, n].
inline void cblas_sgemv(CBLAS_ORDER, CBLAS_TRANSPOSE t, int m, int n, float alpha, const float *a,
                        int lda, const float *x, int incx, float beta, float *y, int incy) {
  int rows = t == CblasNoTrans ? m : n, columns = t == CblasNoTrans ? n : m;
  for (int i = 0; i < rows; ++i) {
    double sum = 0.0;
    for (int j = 0; j < columns; ++j)
      sum += double(a[t == CblasNoTrans ? int64_t(i) * lda + j : int64_t(j) * lda + i]) *
             x[int64_t(j) * incx];
    float &result = y[int64_t(i) * incy];
    result = float(alpha * sum) + blasScaled(beta, result);
  }
}

#endif // PARTITA_TEST_GPU_CBLAS_H
