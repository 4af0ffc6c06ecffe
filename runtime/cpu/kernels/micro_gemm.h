// Small matmuls for attention's tiles, whose operands are packed anyway. For these BLAS spends as
// much time on packing and dispatch as on the matmul (about 100 of 160 GFLOP/s at 64 x 256 x 64).
//
//     C[m, n] (+)= A[m, k] * B[k, n]
//
// A may have any strides (P and its transpose); B and C are row-major with rows of full vectors. A
// register tile is 6 rows x 4 vectors with AVX-512, 6 x 2 otherwise. Its vectors of B may lie apart
// (block-sparse attention): every sum has the same order, and so the same bits.

#ifndef PARTITA_RT_CPU_KERNELS_MICRO_GEMM_H
#define PARTITA_RT_CPU_KERNELS_MICRO_GEMM_H

#include "cpu/kernels/vector.h"
#include "partita_rt/workspaces.h"

#include <algorithm>
#include <type_traits>

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

/// Vectors side by side in rows of B.
struct Adjacent {
  const float *data;
  int64_t ld;
  static int64_t turnTo(int64_t, int64_t k) { return k; }
  Wide at(int64_t row, int vector) const {
    return *reinterpret_cast<const LooseWide *>(data + row * ld + vector * kWide);
  }
};
/// The same, of B's rows in groups of kPad, number numbers[0], numbers[1], ...
struct GatheredRows {
  const float *data;
  int64_t ld;
  const int16_t *numbers;
  int64_t ahead = 0; ///< of the group's rows in A's columns
  /// Turns to the group that begins at row `begin` of A's k columns; returns its end.
  int64_t turnTo(int64_t begin, int64_t k) {
    ahead = numbers[begin / kPad] * kPad - begin;
    return std::min(begin + kPad, k);
  }
  Wide at(int64_t row, int vector) const {
    return *reinterpret_cast<const LooseWide *>(data + (ahead + row) * ld + vector * kWide);
  }
};
/// Vectors of different panels; a panel is [k, kPad], kWide == kPad.
template <int Vectors> struct Apart {
  const float *data[Vectors];
  static int64_t turnTo(int64_t, int64_t k) { return k; }
  Wide at(int64_t row, int vector) const {
    return *reinterpret_cast<const LooseWide *>(data[vector] + row * kPad);
  }
};

/// The sums of a register tile: A's column times B's row, k times, from sums in c or 0.
template <int Rows, int Vectors, typename B>
inline void microTile(MatrixA a, B b, float *c, int64_t ldc, int64_t k, bool add) {
  Wide sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      sum[i][j] =
          add ? Wide(*reinterpret_cast<const LooseWide *>(c + i * ldc + j * kWide)) : Wide{};
  for (int64_t begin = 0, end; begin < k; begin = end) {
    end = b.turnTo(begin, k);
    for (int64_t l = begin; l < end; ++l) {
      Wide right[Vectors];
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j)
        right[j] = b.at(l, j);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        Wide left = splatWide(a.data[i * a.row + l * a.column]);
#pragma GCC unroll 8
        for (int j = 0; j < Vectors; ++j)
          sum[i][j] += left * right[j];
      }
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
    microTile<Rows, kTileVectors>(a, Adjacent{b + j, ldb}, c + j, ldc, k, add);
  for (; j < n; j += kWide)
    microTile<Rows, 1>(a, Adjacent{b + j, ldb}, c + j, ldc, k, add);
}

/// c[Rows, vectors * kPad] = a times panels [k, kPad] number at[0], at[1], ... of b; up to kPanels of them.
constexpr int64_t kPanels = std::max<int64_t>(kTileVectors * kWide / kPad, 1);
template <int Rows>
inline void microPanels(MatrixA a, const float *b, const int16_t *at, int64_t vectors, float *c,
                        int64_t ldc, int64_t k) {
  if constexpr (kWide == kPad) {
    auto gathered = [&](auto count) {
      constexpr int kVectors = count();
      Apart<kVectors> apart;
      for (int j = 0; j < kVectors; ++j)
        apart.data[j] = b + at[j] * k * kPad;
      microTile<Rows, kVectors>(a, apart, c, ldc, k, false);
    };
    if (vectors == 4)
      gathered(std::integral_constant<int, 4>());
    else if (vectors == 3)
      gathered(std::integral_constant<int, 3>());
    else if (vectors == 2)
      gathered(std::integral_constant<int, 2>());
    else
      gathered(std::integral_constant<int, 1>());
  } else {
    for (int64_t j = 0; j < vectors; ++j)
      microRows<Rows>(a, b + at[j] * k * kPad, kPad, c + j * kPad, ldc, kPad, k, false);
  }
}

/// Calls body(rows) with their number, up to kTileRows, as a constant.
template <typename Body> inline void withRows(int64_t rows, Body body) {
  switch (rows) {
  case 6:
    return body(std::integral_constant<int, 6>());
  case 5:
    return body(std::integral_constant<int, 5>());
  case 4:
    return body(std::integral_constant<int, 4>());
  case 3:
    return body(std::integral_constant<int, 3>());
  case 2:
    return body(std::integral_constant<int, 2>());
  default:
    return body(std::integral_constant<int, 1>());
  }
}
inline void microRows(int64_t rows, MatrixA a, const float *b, int64_t ldb, float *c, int64_t ldc,
                      int64_t n, int64_t k, bool add) {
  withRows(rows, [&](auto count) { microRows<count()>(a, b, ldb, c, ldc, n, k, add); });
}
/// microRows of groups of kPad rows of b (GatheredRows).
inline void microGathered(int64_t rows, MatrixA a, const float *b, const int16_t *numbers,
                          int64_t ldb, float *c, int64_t ldc, int64_t n, int64_t k, bool add) {
  withRows(rows, [&](auto count) {
    int64_t j = 0;
    for (; j + kTileVectors * kWide <= n; j += kTileVectors * kWide)
      microTile<count(), kTileVectors>(a, GatheredRows{b + j, ldb, numbers}, c + j, ldc, k, add);
    for (; j < n; j += kWide)
      microTile<count(), 1>(a, GatheredRows{b + j, ldb, numbers}, c + j, ldc, k, add);
  });
}
inline void microPanels(int64_t rows, MatrixA a, const float *b, const int16_t *at, int64_t vectors,
                        float *c, int64_t ldc, int64_t k) {
  withRows(rows, [&](auto count) { microPanels<count()>(a, b, at, vectors, c, ldc, k); });
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_MICRO_GEMM_H
