// Matmuls on OpenBLAS.
//
// OpenBLAS multiplies only float (and sums bfloat16 in another order), so operands of 8 and 16 bits are
// widened panel by panel into 6 MiB per thread, and a 16-bit result is rounded from there:
//
//     for a panel of op(B)'s columns      [k, nb] -> float, once
//       for a panel of op(A)'s rows       [mb, k] -> float
//         C[mb, nb] = sgemm, in float, then rounded
//
// The bits are those of the float matmul of the same numbers, rounded once, as long as B's columns
// are one panel (any 585 are; more of them if k is below 1344): rows are cut at multiples of 48,
// where OpenBLAS's register tiles end, and k where its own blocks end. If columns are cut, OpenBLAS
// sums the last ones of a panel with a different kernel than those in the middle of a matrix, so
// their float sums may differ by a rounding.

#include "partita_rt/kernels.h"

#include "cpu/kernels/storage.h"

#include <cblas.h>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

namespace partita_rt {

static CBLAS_TRANSPOSE flag(Trans trans) { return trans == Trans::Yes ? CblasTrans : CblasNoTrans; }

/// OpenBLAS takes 32-bit sizes.
static blasint narrow(int64_t value) {
  if (value < 0 || value > std::numeric_limits<blasint>::max())
    fail("gemm: a size of %lld does not fit into BLAS's 32 bits", (long long)value);
  return blasint(value);
}

static void floatGemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, float alpha,
                      const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                      float *c, int64_t ldc) {
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

//===-- 16-bit operands ---------------------------------------------------------------------===//

namespace {

/// A matrix as stored, of any storage type.
struct Stored {
  const void *data;
  DType type;
  int64_t ld;
  Trans trans = Trans::No; ///< op()
  float scale = 1.0f;      ///< of 8-bit numbers
  bool isFloat() const { return type == DType::Float32; }

  template <typename T>
  void widen(float *to, int64_t pitch, int64_t row, int64_t rows, int64_t column,
             int64_t columns) const {
    const T *from = static_cast<const T *>(data) + row * ld + column;
    for (int64_t r = 0; r < rows; ++r)
      convertArray(to + r * pitch, from + r * ld, columns);
    if constexpr (sizeof(T) == 1)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          to[r * pitch + c] *= scale;
  }
  /// Copies rows and columns of the stored matrix to rows `pitch` apart.
  void read(float *to, int64_t pitch, int64_t row, int64_t rows, int64_t column,
            int64_t columns) const {
    if (type == DType::Float16)
      widen<Half>(to, pitch, row, rows, column, columns);
    else if (type == DType::BFloat16)
      widen<BFloat16>(to, pitch, row, rows, column, columns);
    else if (type == DType::Float8E4M3)
      widen<Float8E4M3>(to, pitch, row, rows, column, columns);
    else if (type == DType::Float8E5M2)
      widen<Float8E5M2>(to, pitch, row, rows, column, columns);
    else
      widen<float>(to, pitch, row, rows, column, columns);
  }
};

template <typename T> Stored stored(const T *data, int64_t ld, Trans trans = Trans::No) {
  return {data, kDTypeOf<T>, ld, trans};
}

/// A block of op(X) in float: in place if X is float, else widened into `space`.
class Panel {
public:
  Panel(const Stored &of, float *space) : of(of), space(space) {}
  /// Selects these rows and columns of op(X).
  void move(int64_t row, int64_t rows, int64_t column, int64_t columns) {
    if (of.trans == Trans::Yes) {
      std::swap(row, column);
      std::swap(rows, columns);
    }
    if (of.isFloat()) {
      data = static_cast<const float *>(of.data) + row * of.ld + column;
      ld = of.ld;
      return;
    }
    // sgemv sums a vector with a stride in a different order than one without.
    int64_t pitch = columns > 1 || of.ld == 1 ? std::max<int64_t>(1, columns) : 2;
    bool there = data && row == at[0] && rows == at[1] && column == at[2] && columns == at[3];
    if (!there)
      of.read(space, pitch, row, rows, column, columns);
    int64_t now[] = {row, rows, column, columns};
    std::copy_n(now, 4, at);
    data = space;
    ld = pitch;
  }
  const float *data = nullptr;
  int64_t ld = 0;

private:
  const Stored &of;
  float *space;
  int64_t at[4] = {};
};

// The workspace, in floats: 6 MiB.
constexpr int64_t kPanelA = 512 << 10, kPanelB = 768 << 10, kResult = 256 << 10;
/// Returns OpenBLAS's block size along k. It sums in blocks, the last two of equal size; the sum
/// may be cut after an even number of blocks. A block has 448 elements in its kernels for AVX-512
/// without bfloat16 and 320 in those for other x86 processors with AVX2. (On another processor a
/// cut costs no more than a rounding.)
int64_t blockSize() {
#ifdef OPENBLAS_VERSION // another CBLAS, such as the one for the GPU tests, does not name its kernels
  static const bool isLong = std::string_view(openblas_get_corename()) == "SkylakeX";
  if (isLong)
    return 448;
#endif
  return 320;
}

float *workspace() {
  thread_local std::unique_ptr<float[]> space(new float[kPanelA + kPanelB + kResult]);
  return space.get();
}

/// Returns the size of about equal ranges of [0, n): at most `most` elements (48 at least),
/// multiples of 48.
int64_t partOf(int64_t n, int64_t most) {
  if (n <= most)
    return n;
  most = std::max<int64_t>(48, most / 48 * 48);
  int64_t parts = (n + most - 1) / most;
  return ((n + parts - 1) / parts + 47) / 48 * 48;
}

/// The result of a matmul: its initial value and destination, with float sums if C has 16 bits.
template <typename C> struct Result {
  C *c;
  int64_t ldc;
  float beta;
  Stored start; ///< added, times beta: C itself, or a bias (with ld 0)
  float *space;

  /// Returns where to compute elements [row, row + rows) x [column, column + columns), and their
  /// ld.
  float *begin(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t &ld) const {
    if constexpr (kIsFloat<C>) {
      ld = ldc;
      return c + row * ldc + column;
    } else {
      ld = columns > 1 || ldc == 1 ? columns : 2; // as in Panel::move
      if (beta != 0.0f)
        start.read(space, ld, row, rows, column, columns);
      return space;
    }
  }
  void end(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t ld) const {
    if constexpr (!kIsFloat<C>)
      for (int64_t r = 0; r < rows; ++r)
        convertArray(c + (row + r) * ldc + column, space + r * ld, columns);
  }
};

/// Calls `body(first, count)` for the ranges in which a sum over k is computed.
template <typename Body> void forChunks(int64_t k, Body body) {
  const int64_t block = blockSize();
  int64_t first = 0;
  do {
    int64_t count = k - first >= 3 * block ? 2 * block : k - first;
    body(first, count);
    first += count;
  } while (first < k);
}

template <typename C>
void matmul(int64_t m, int64_t n, int64_t k, float alpha, const Stored &a, const Stored &b,
            const Result<C> &result) {
  float *space = workspace();
  int64_t depth = std::clamp<int64_t>(k, 2, 3 * blockSize()); // a single column has pitch 2
  int64_t mostColumns = b.isFloat() ? n : kPanelB / depth;
  if (!kIsFloat<C>)
    mostColumns = std::min(mostColumns, kResult / 64);
  int64_t columns = partOf(n, mostColumns), mostRows = a.isFloat() ? m : kPanelA / depth;
  if (!kIsFloat<C>)
    mostRows = std::min(mostRows, kResult / columns);
  int64_t rows = partOf(m, mostRows);
  Panel left(a, space), right(b, space + kPanelA);
  for (int64_t j = 0; j < n; j += columns)
    for (int64_t i = 0; i < m; i += rows) {
      int64_t height = std::min(rows, m - i), width = std::min(columns, n - j), ld = 0;
      float *c = result.begin(i, height, j, width, ld);
      forChunks(k, [&](int64_t first, int64_t count) {
        left.move(i, height, first, count);
        right.move(first, count, j, width);
        cblas_sgemm(CblasRowMajor, flag(a.trans), flag(b.trans), narrow(height), narrow(width),
                    narrow(count), alpha, left.data, narrow(left.ld), right.data, narrow(right.ld),
                    first == 0 ? result.beta : 1.0f, c, narrow(ld));
      });
      result.end(i, height, j, width, ld);
    }
}

/// Computes one row of C, y[n] = alpha op(B)^T x + beta y, or one column, which is one row of the
/// transpose: `vector` is [1, k], `matrix` [k, n]. Sums over more than 16384 elements are computed
/// in ranges.
template <typename C>
void vectorMatmul(int64_t n, int64_t k, float alpha, const Stored &vector, const Stored &matrix,
                  const Result<C> &result, bool row) {
  constexpr int64_t kLongest = kPanelB / 48;
  float *space = workspace();
  int64_t columns = partOf(n, matrix.isFloat() ? n : kPanelB / std::min(k, kLongest));
  if (!kIsFloat<C>)
    columns = partOf(n, std::min(columns, kResult / 2));
  Panel left(vector, space), right(matrix, space + kPanelA);
  for (int64_t j = 0; j < n; j += columns) {
    int64_t width = std::min(columns, n - j), ld = 0;
    float *y = row ? result.begin(0, 1, j, width, ld) : result.begin(j, width, 0, 1, ld);
    for (int64_t first = 0; first < k; first += kLongest) {
      int64_t count = std::min(kLongest, k - first);
      left.move(0, 1, first, count);
      right.move(first, count, j, width);
      bool plain = matrix.trans == Trans::No; // stored [k, n]
      cblas_sgemv(CblasRowMajor, plain ? CblasTrans : CblasNoTrans, narrow(plain ? count : width),
                  narrow(plain ? width : count), alpha, right.data, narrow(right.ld), left.data,
                  vector.trans == Trans::Yes ? narrow(left.ld) : 1, first == 0 ? result.beta : 1.0f,
                  y, row ? 1 : narrow(ld));
    }
    row ? result.end(0, 1, j, width, ld) : result.end(j, width, 0, 1, ld);
  }
}

Trans flipped(Trans trans) { return trans == Trans::Yes ? Trans::No : Trans::Yes; }

/// C = alpha op(A) op(B) + beta start.
template <typename C>
void narrowGemm(int64_t m, int64_t n, int64_t k, float alpha, Stored a, Stored b, float beta,
                Stored start, C *c, int64_t ldc) {
  if (m == 0 || n == 0)
    return;
  Result<C> result{c, ldc, beta, start, workspace() + kPanelA + kPanelB};
  if (m == 1 && k > 0)
    return vectorMatmul(n, k, alpha, a, b, result, true);
  if (n == 1 && k > 0) {
    a.trans = flipped(a.trans);
    b.trans = flipped(b.trans);
    return vectorMatmul(m, k, alpha, b, a, result, false);
  }
  matmul(m, n, k, alpha, a, b, result);
}

template <typename A, typename B, typename C>
constexpr bool kAllFloat = kIsFloat<A> && kIsFloat<B> && kIsFloat<C>;

} // namespace

//===-- Entry points ------------------------------------------------------------------------===//

template <typename A, typename B, typename C>
void gemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, float alpha, const A *a,
          int64_t lda, const B *b, int64_t ldb, float beta, C *c, int64_t ldc) {
  if constexpr (kAllFloat<A, B, C>)
    floatGemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else
    narrowGemm(m, n, k, alpha, stored(a, lda, transA), stored(b, ldb, transB), beta, stored(c, ldc),
               c, ldc);
}

template <typename A, typename B, typename V, typename C>
void gemmBias(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const A *a, int64_t lda,
              const B *b, int64_t ldb, const V *bias, C *c, int64_t ldc) {
  if constexpr (!kIsFloat<C>)
    return narrowGemm(m, n, k, 1.0f, stored(a, lda, transA), stored(b, ldb, transB), 1.0f,
                      stored(bias, 0), c, ldc);
  // Write the bias first, so that the matmul itself adds it while its tile is in registers.
  for (int64_t row = 0; row < m; ++row)
    convertArray(c + row * ldc, bias, n);
  gemm(transA, transB, m, n, k, 1.0f, a, lda, b, ldb, 1.0f, c, ldc);
}

template <typename A, typename B, typename C>
void gemmBatched(Trans transA, Trans transB, int64_t batch, int64_t m, int64_t n, int64_t k,
                 float alpha, const A *a, int64_t lda, int64_t strideA, const B *b, int64_t ldb,
                 int64_t strideB, float beta, C *c, int64_t ldc, int64_t strideC) {
  for (int64_t i = 0; i < batch; ++i)
    gemm(transA, transB, m, n, k, alpha, a + i * strideA, lda, b + i * strideB, ldb, beta,
         c + i * strideC, ldc);
}

template <typename A, typename B, typename C>
void scaledGemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const A *a,
                const float *scaleA, const B *b, const float *scaleB, C *c,
                std::common_type_t<const C *> bias, std::common_type_t<const C *> addend) {
  if (bias && addend)
    fail("scaledGemm: a bias and an addend");
  Stored left = stored(a, transA == Trans::Yes ? m : k, transA);
  Stored right = stored(b, transB == Trans::Yes ? k : n, transB);
  left.scale = *scaleA;
  right.scale = *scaleB;
  Stored start = bias ? stored(bias, 0) : stored(addend ? addend : c, n);
  narrowGemm(m, n, k, 1.0f, left, right, bias || addend ? 1.0f : 0.0f, start, c, n);
}

#define SCALED_GEMM(A, B, C)                                                                       \
  template void scaledGemm(Trans, Trans, int64_t, int64_t, int64_t, const A *, const float *,      \
                           const B *, const float *, C *, std::common_type_t<const C *>,           \
                           std::common_type_t<const C *>);
#define SCALED_GEMMS(C)                                                                            \
  SCALED_GEMM(Float8E4M3, Float8E4M3, C)                                                           \
  SCALED_GEMM(Float8E4M3, Float8E5M2, C) SCALED_GEMM(Float8E5M2, Float8E4M3, C)
SCALED_GEMMS(float)
SCALED_GEMMS(BFloat16)

#define GEMM(A, B, C)                                                                              \
  template void gemm(Trans, Trans, int64_t, int64_t, int64_t, float, const A *, int64_t,           \
                     const B *, int64_t, float, C *, int64_t);                                     \
  template void gemmBatched(Trans, Trans, int64_t, int64_t, int64_t, int64_t, float, const A *,    \
                            int64_t, int64_t, const B *, int64_t, int64_t, float, C *, int64_t,    \
                            int64_t);
#define GEMM_BIAS(A, B, V, C)                                                                      \
  template void gemmBias(Trans, Trans, int64_t, int64_t, int64_t, const A *, int64_t, const B *,   \
                         int64_t, const V *, C *, int64_t);
#define GEMMS(A, B, C, T) GEMM(A, B, C) GEMM_BIAS(A, B, float, C) GEMM_BIAS(A, B, T, C)
#define COMBINATIONS(T)                                                                            \
  GEMMS(T, T, T, T)                                                                                \
  GEMMS(T, T, float, T)                                                                            \
  GEMMS(T, float, T, T)                                                                            \
  GEMMS(T, float, float, T)                                                                        \
  GEMMS(float, T, T, T)                                                                            \
  GEMMS(float, T, float, T)                                                                        \
  GEMMS(float, float, T, T)
GEMM(float, float, float)
GEMM_BIAS(float, float, float, float)
COMBINATIONS(Half)
COMBINATIONS(BFloat16)

} // namespace partita_rt
