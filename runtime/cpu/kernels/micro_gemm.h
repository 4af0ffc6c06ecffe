// Small matmuls for attention's tiles, whose operands are packed anyway. For these BLAS spends as
// much time on packing and dispatch as on the matmul (about 100 of 160 GFLOP/s at 64 x 256 x 64).
//
//     C[m, n] (+)= A[m, k] * B[k, n]
//
// A may have any strides (P and its transpose); B and C are row-major with rows of full vectors. A
// register tile is 6 rows x 4 vectors with AVX-512, 6 x 2 otherwise.

#ifndef PARTITA_RT_CPU_KERNELS_MICRO_GEMM_H
#define PARTITA_RT_CPU_KERNELS_MICRO_GEMM_H

#include "cpu/kernels/vector.h"
#include "partita_rt/workspaces.h"

#include <algorithm>

namespace partita_rt {

#ifdef __AVX512F__
constexpr int64_t kWide = 16;
constexpr int kTileVectors = 4;
#else
constexpr int64_t kWide = 8;
constexpr int kTileVectors = 2;
#endif
constexpr int kTileRows = 6;

typedef float Wide __attribute__((vector_size(kWide * 4)));
typedef float LooseWide __attribute__((vector_size(kWide * 4), aligned(4), may_alias));

inline Wide splatWide(float x) {
#ifdef __AVX512F__
  return splat(x);
#else
  return Wide{x, x, x, x, x, x, x, x};
#endif
}

/// The rows of packed operands have a multiple of this many elements.
constexpr int64_t kPad = kHeadPad;
constexpr int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

struct MatrixA {
  const float *data;
  int64_t row, column; ///< strides
};

template <int Rows, int Vectors>
inline void microTile(MatrixA a, const float *b, int64_t ldb, float *c, int64_t ldc, int64_t k,
                      bool add) {
  Wide sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      sum[i][j] =
          add ? Wide(*reinterpret_cast<const LooseWide *>(c + i * ldc + j * kWide)) : Wide{};
  for (int64_t l = 0; l < k; ++l) {
    Wide right[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      right[j] = *reinterpret_cast<const LooseWide *>(b + l * ldb + j * kWide);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      Wide left = splatWide(a.data[i * a.row + l * a.column]);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j)
        sum[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      *reinterpret_cast<LooseWide *>(c + i * ldc + j * kWide) = sum[i][j];
}

/// Computes up to kTileRows rows; n is a multiple of kWide.
template <int Rows>
inline void microRows(MatrixA a, const float *b, int64_t ldb, float *c, int64_t ldc, int64_t n,
                      int64_t k, bool add) {
  int64_t j = 0;
  for (; j + kTileVectors * kWide <= n; j += kTileVectors * kWide)
    microTile<Rows, kTileVectors>(a, b + j, ldb, c + j, ldc, k, add);
  for (; j < n; j += kWide)
    microTile<Rows, 1>(a, b + j, ldb, c + j, ldc, k, add);
}

inline void microRows(int64_t rows, MatrixA a, const float *b, int64_t ldb, float *c, int64_t ldc,
                      int64_t n, int64_t k, bool add) {
  switch (rows) {
  case 6:
    return microRows<6>(a, b, ldb, c, ldc, n, k, add);
  case 5:
    return microRows<5>(a, b, ldb, c, ldc, n, k, add);
  case 4:
    return microRows<4>(a, b, ldb, c, ldc, n, k, add);
  case 3:
    return microRows<3>(a, b, ldb, c, ldc, n, k, add);
  case 2:
    return microRows<2>(a, b, ldb, c, ldc, n, k, add);
  default:
    return microRows<1>(a, b, ldb, c, ldc, n, k, add);
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_MICRO_GEMM_H
