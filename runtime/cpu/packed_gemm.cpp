// The matrix product after Goto and BLIS: blocks of B and A are packed into panels that the
// innermost kernel reads in sequence.
//
//     for columns of C in blocks of kColumns            B's block: last-level cache
//       for the inner dimension in blocks of kInner
//         pack B into panels of 32 columns              a panel: first- and second-level cache
//         for rows of C in blocks of kRows              A's block: second-level cache
//           pack A into panels of 12 rows, or read its rows where they are
//           for each panel of B, each panel of A: 12 x 32 elements of C in 24 registers
//
// Every element of C is a sum over the inner dimension in ascending order, one block after another,
// whatever the shape around it.

#include "cpu/packed_gemm.h"

#ifdef __AVX512F__

#include "cpu/vector.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sys/mman.h>

extern "C" int openblas_get_num_threads(void);

namespace partita_rt {

namespace {

constexpr int64_t kPanelRows = 12, kPanelColumns = 2 * kLanes;
constexpr int64_t kInner = 768;
constexpr int64_t kRows = 24 * kPanelRows;
constexpr int64_t kColumns = 48 * kPanelColumns;

/// Packing buffers of a thread: 5.6 MB.
struct Buffers {
  float *a, *b;
  Buffers() {
    size_t bytes = size_t(kInner * (kRows + kColumns)) * sizeof(float);
    void *memory = std::aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    if (!memory)
      fail("cannot allocate %zu bytes for packing matrices", bytes);
    madvise(memory, bytes, MADV_HUGEPAGE);
    a = static_cast<float *>(memory);
    b = a + kInner * kRows;
  }
  ~Buffers() { std::free(a); }
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;
};

//===-- Packing -----------------------------------------------------------------------------===//

/// Exchanges the off-diagonal halves of blocks of 2 * Distance lanes between two rows.
template <int Distance> inline void exchange(Lanes &x, Lanes &y) {
  IntLanes low, high;
  for (int l = 0; l < kLanes; ++l) {
    low[l] = l & Distance ? kLanes + l - Distance : l;
    high[l] = l & Distance ? kLanes + l : l + Distance;
  }
  Lanes first = __builtin_shuffle(x, y, low);
  y = __builtin_shuffle(x, y, high);
  x = first;
}

template <int Distance> inline void exchangeAll(Lanes (&rows)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i)
    if (!(i & Distance))
      exchange<Distance>(rows[i], rows[i + Distance]);
}

/// out[k][32]: the transpose of `width` rows of `in` (k elements each), zeros behind.
void packTransposed(float *out, const float *in, int64_t stride, int64_t width, int64_t k) {
  for (int64_t w = 0; w < kPanelColumns; w += kLanes) {
    int64_t rows = std::clamp<int64_t>(width - w, 0, kLanes);
    for (int64_t l = 0; l < k; l += kLanes) {
      int64_t depth = std::min(kLanes, k - l);
      Lanes block[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        const float *p = in + (w + i) * stride + l;
        block[i] = i >= rows ? Lanes{} : depth == kLanes ? load(p) : loadPart(p, depth, 0.0f);
      }
      exchangeAll<8>(block);
      exchangeAll<4>(block);
      exchangeAll<2>(block);
      exchangeAll<1>(block);
      float *to = out + l * kPanelColumns + w;
      if (depth == kLanes) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i)
          store(to + i * kPanelColumns, block[i]);
      } else {
        for (int64_t i = 0; i < depth; ++i)
          store(to + i * kPanelColumns, block[i]);
      }
    }
  }
}

/// B's panels [n / 32][k][32], from rows of B.
void packB(float *out, const float *in, int64_t stride, int64_t n, int64_t k) {
  int64_t whole = n / kPanelColumns * kPanelColumns;
  for (int64_t l = 0; l < k; ++l) {
    const float *from = in + l * stride;
    float *to = out + l * kPanelColumns;
    for (int64_t j = 0; j < whole; j += kPanelColumns) {
      store(to + j * k, load(from + j));
      store(to + j * k + kLanes, load(from + j + kLanes));
    }
    for (int64_t j = whole; j < n; j += kPanelColumns)
      for (int64_t i = 0; i < kPanelColumns; ++i)
        to[j * k + i] = j + i < n ? from[j + i] : 0.0f;
  }
}

/// B's panels from rows of B's transpose.
void packBTransposed(float *out, const float *in, int64_t stride, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; j += kPanelColumns)
    packTransposed(out + j * k, in + j * stride, stride, std::min(kPanelColumns, n - j), k);
}

/// A's panels [m / 12][k][12] from rows of A's transpose.
void packATransposed(float *out, const float *in, int64_t stride, int64_t m, int64_t k) {
  int64_t whole = m / kPanelRows * kPanelRows;
  for (int64_t l = 0; l < k; ++l) {
    const float *from = in + l * stride;
    float *to = out + l * kPanelRows;
    for (int64_t i = 0; i < whole; i += kPanelRows)
      std::memcpy(to + i * k, from + i, size_t(kPanelRows) * sizeof(float));
    for (int64_t i = whole; i < m; i += kPanelRows)
      for (int64_t r = 0; r < kPanelRows; ++r)
        to[i * k + r] = i + r < m ? from[i + r] : 0.0f;
  }
}

//===-- The kernel --------------------------------------------------------------------------===//

/// Twelve rows of A: element (i, l) at data[i * row + l * column]. Packed: row 1, column 12. Rows
/// of a matrix that is stored as it is multiplied are read in place: row lda, column 1.
struct Rows {
  const float *data;
  int64_t row, column;
};

struct Tile {
  float *c;
  int64_t ldc;
  float alpha, beta;
  const float *bias; ///< of the tile's columns, or null
};

/// C = alpha * a b + beta * C (+ bias) for 12 x 32 elements; b is [k][32].
template <bool InPlace> inline void kernel(Rows rows, const float *b, int64_t k, const Tile &tile) {
  Lanes sum[kPanelRows][2] = {};
#pragma GCC unroll 12
  for (int64_t i = 0; i < kPanelRows; ++i) {
    __builtin_prefetch(tile.c + i * tile.ldc, 1);
    __builtin_prefetch(tile.c + i * tile.ldc + kLanes, 1);
  }
  // Four pointers and one stride: the compiler reaches three rows from each without further
  // registers.
  const int64_t row = InPlace ? rows.row : 1, column = InPlace ? 1 : kPanelRows;
  const float *a[4];
  for (int64_t i = 0; i < 4; ++i)
    a[i] = rows.data + 3 * i * row;
#pragma GCC unroll 4
  for (int64_t l = 0; l < k; ++l) {
    Lanes left = load(b + l * kPanelColumns), right = load(b + l * kPanelColumns + kLanes);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kPanelRows; ++i) {
      Lanes x = splat(a[i / 3][i % 3 * row + l * column]);
      sum[i][0] += x * left;
      sum[i][1] += x * right;
    }
  }
  const Lanes alpha = splat(tile.alpha), beta = splat(tile.beta);
  const bool reads = tile.beta != 0.0f, biased = tile.bias != nullptr;
  float *c = tile.c;
#pragma GCC unroll 12
  for (int64_t i = 0; i < kPanelRows; ++i, c += tile.ldc) {
    Lanes first = alpha * sum[i][0], second = alpha * sum[i][1];
    if (reads) {
      first += beta * load(c);
      second += beta * load(c + kLanes);
    }
    if (biased) {
      first += load(tile.bias);
      second += load(tile.bias + kLanes);
    }
    store(c, first);
    store(c + kLanes, second);
  }
}

/// A tile that reaches over the edge of C: computed aside, the part inside copied.
void edgeKernel(Rows a, const float *b, int64_t k, const Tile &tile, int64_t rows,
                int64_t columns) {
  alignas(64) float aside[kPanelRows * kPanelColumns] = {}, bias[kPanelColumns] = {};
  alignas(64) float panel[kPanelRows * kInner];
  if (a.column == 1) { // there may be no memory behind the last row
    for (int64_t l = 0; l < k; ++l)
      for (int64_t i = 0; i < kPanelRows; ++i)
        panel[l * kPanelRows + i] = i < rows ? a.data[i * a.row + l] : 0.0f;
    a = {panel, 1, kPanelRows};
  }
  for (int64_t i = 0; i < rows && tile.beta != 0.0f; ++i)
    std::memcpy(aside + i * kPanelColumns, tile.c + i * tile.ldc, size_t(columns) * sizeof(float));
  if (tile.bias)
    std::memcpy(bias, tile.bias, size_t(columns) * sizeof(float));
  kernel<false>(a, b, k, {aside, kPanelColumns, tile.alpha, tile.beta, tile.bias ? bias : nullptr});
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(tile.c + i * tile.ldc, aside + i * kPanelColumns, size_t(columns) * sizeof(float));
}

/// A block of A (packed, or in place when a.column is 1) times one block of B's panels.
void multiplyBlock(Rows a, const float *b, int64_t m, int64_t n, int64_t k, const Tile &block) {
  bool inPlace = a.column == 1;
  for (int64_t j = 0; j < n; j += kPanelColumns)
    for (int64_t i = 0; i < m; i += kPanelRows) {
      Tile tile = {block.c + i * block.ldc + j, block.ldc, block.alpha, block.beta,
                   block.bias ? block.bias + j : nullptr};
      Rows rows = {a.data + i * (inPlace ? a.row : k), a.row, a.column};
      int64_t height = std::min(kPanelRows, m - i), width = std::min(kPanelColumns, n - j);
      if (height < kPanelRows || width < kPanelColumns)
        edgeKernel(rows, b + j * k, k, tile, height, width);
      else if (inPlace)
        kernel<true>(rows, b + j * k, k, tile);
      else
        kernel<false>(rows, b + j * k, k, tile);
    }
}

/// n cut into equal blocks of at most `most`, multiples of `unit`.
int64_t blockSize(int64_t n, int64_t most, int64_t unit) {
  int64_t blocks = (n + most - 1) / most;
  return ((n + blocks - 1) / blocks + unit - 1) / unit * unit;
}

} // namespace

bool prefersPackedGemm(int64_t m, int64_t n, int64_t k) {
  return m >= 4 * kPanelRows && n >= kPanelColumns && k >= 32 && openblas_get_num_threads() == 1;
}

void packedGemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, float alpha,
                const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                int64_t ldc, const float *bias) {
  static thread_local Buffers buffers;
  int64_t columns = blockSize(n, kColumns, kPanelColumns);
  int64_t inner = blockSize(k, kInner, 1), rows = blockSize(m, kRows, kPanelRows);
  for (int64_t j = 0; j < n; j += columns) {
    int64_t width = std::min(columns, n - j);
    for (int64_t l = 0; l < k; l += inner) {
      int64_t depth = std::min(inner, k - l);
      if (transB == Trans::Yes)
        packBTransposed(buffers.b, b + j * ldb + l, ldb, width, depth);
      else
        packB(buffers.b, b + l * ldb + j, ldb, width, depth);
      for (int64_t i = 0; i < m; i += rows) {
        int64_t height = std::min(rows, m - i);
        Rows block = {a + i * lda + l, lda, 1};
        if (transA == Trans::Yes) {
          packATransposed(buffers.a, a + l * lda + i, lda, height, depth);
          block = {buffers.a, 1, kPanelRows};
        }
        multiplyBlock(block, buffers.b, height, width, depth,
                      {c + i * ldc + j, ldc, alpha, l == 0 ? beta : 1.0f,
                       bias && l == 0 ? bias + j : nullptr});
      }
    }
  }
}

} // namespace partita_rt

#else

namespace partita_rt {

bool prefersPackedGemm(int64_t, int64_t, int64_t) { return false; }

void packedGemm(Trans, Trans, int64_t, int64_t, int64_t, float, const float *, int64_t,
                const float *, int64_t, float, float *, int64_t, const float *) {
  fail("this processor has no packed matrix product");
}

} // namespace partita_rt

#endif
