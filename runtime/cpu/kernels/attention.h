// Shared by the forward and the backward pass of attention: tiles, packing.

#ifndef PARTITA_RT_CPU_KERNELS_ATTENTION_H
#define PARTITA_RT_CPU_KERNELS_ATTENTION_H

#include "cpu/kernels/drops.h"
#include "cpu/kernels/micro_gemm.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/storage.h"
#include "partita_rt/attention_drops.h"
#include "partita_rt/attention_sight.h"

#include <algorithm>
#include <optional>

namespace partita_rt {

/// Queries per tile: a multiple of kTileRows whose rows fit into the L1 cache.
constexpr int64_t kQueryTile = 48;
/// Max keys per block; fewer if heads are wide, so that a packed block has at most kBlockElements
/// elements (64 KiB).
constexpr int64_t kKeyBlock = 256;
constexpr int64_t kBlockElements = 16384;
constexpr int64_t kLargestHead = kBlockElements / kPad;

/// One head of one sequence.
template <typename T> struct HeadRows {
  T *data;
  int64_t stride;
  T *row(int64_t i) const { return data + i * stride; }
};

template <typename T> HeadRows<T> headOf(const HeadsOf<T> &tensor, int64_t batch, int64_t head) {
  return {tensor.data + batch * tensor.batchStride + head * tensor.headStride, tensor.rowStride};
}

/// A tile of queries, from `query` on, and a block of keys.
struct TileOfBlock {
  bool begins; ///< the block is the first that the tile sees; the first of all, if it sees none
  bool meets;  ///< some of the queries see some of the keys
  TileOfBlock(const Sight<int64_t> &sight, int64_t query, int64_t key, int64_t keys) {
    int64_t first = sight.first(query), last = std::min(query + kQueryTile, sight.queries) - 1;
    begins = key <= first && (first < key + keys || key + keys >= sight.keys);
    meets = sight.meets(query, last, key, key + keys);
  }
};

inline int64_t keyBlock(const AttentionShape &shape) {
  int64_t widest = padded(std::max(shape.headDim, shape.valueDim));
  return std::min(kKeyBlock, kBlockElements / widest / kPad * kPad);
}

/// The dropped probabilities of one head; none if the call has no dropout.
struct HeadDrops {
  std::optional<AttentionDrops> drops;
  int64_t batch = 0, head = 0;
  HeadDrops(const AttentionShape &shape, int64_t batch, int64_t head) : batch(batch), head(head) {
    if (shape.dropout.ratio > 0.0)
      drops.emplace(shape);
  }
  explicit operator bool() const { return drops.has_value(); }
  float scale() const { return drops ? drops->scale : 1.0f; }
  /// Calls visit(j, dropped) for a query's keys [key, key + count).
  template <typename Visit>
  void forKeys(int64_t query, int64_t key, int64_t count, Visit visit) const {
    forDropped(drops->drops, drops->row(batch, head, query) + key, count, visit);
  }
};

inline void checkAttention(const AttentionShape &shape) {
  if (shape.headDim > kLargestHead || shape.valueDim > kLargestHead)
    fail("attention: heads of %lld elements, at most %lld are possible",
         (long long)std::max(shape.headDim, shape.valueDim), (long long)kLargestHead);
}

/// Sets out[rows, padded(width)] to rows of a head, followed by zeros.
template <typename T>
inline void packRows(float *out, const HeadRows<T> &in, int64_t first, int64_t rows,
                     int64_t width) {
  int64_t pitch = padded(width);
  for (int64_t i = 0; i < rows; ++i) {
    convertArray(out + i * pitch, in.row(first + i), width);
    std::fill(out + i * pitch + width, out + (i + 1) * pitch, 0.0f);
  }
}

/// Sets out[width, padded(rows)] to the transpose, followed by zeros.
template <typename T>
inline void packTransposed(float *out, const HeadRows<const T> &in, int64_t first, int64_t rows,
                           int64_t width) {
  int64_t pitch = padded(rows);
  for (int64_t i0 = 0; i0 < pitch; i0 += kPad)
    for (int64_t d = 0; d < width; ++d)
      for (int64_t i = i0; i < i0 + kPad; ++i)
        out[d * pitch + i] = i < rows ? float(in.row(first + i)[d]) : 0.0f;
}

/// Returns a tile's rows in float: in place, or packed into `space` if they are stored in 16 bits.
template <typename T>
inline HeadRows<const float> tileRows(const HeadRows<const T> &in, int64_t first, int64_t rows,
                                      int64_t width, [[maybe_unused]] float *space) {
  if constexpr (kIsFloat<T>) {
    return {in.row(first), in.stride};
  } else {
    packRows(space, in, first, rows, width);
    return {space, padded(width)};
  }
}

/// Zeros the elements of a tile's row after the `seen` keys that matmuls read: they read a group of
/// rows as far as its last row sees, less than kTileRows keys further than its first. The caller
/// computes full vectors, so elements up to the next full vector are left alone.
inline void clearBehind(float *row, int64_t seen, int64_t keys) {
  int64_t end = std::min(padded(keys), padded(seen) + kPad);
  std::fill(row + padded(seen), row + end, 0.0f);
}

/// Elements [key, key + keys) of a query's row of a bias.
template <typename T> struct ScoreRow {
  T *data;
  int64_t stride; ///< 0: one number for all keys
  explicit operator bool() const { return data != nullptr; }
  ScoreRow from(int64_t key) const { return {data + key * stride, stride}; }
};

/// The rows of one batch element and head.
template <typename T> struct HeadScores {
  T *data = nullptr;
  int64_t rowStride = 0, columnStride = 0;
  ScoreRow<T> row(int64_t query) const {
    return {data ? data + query * rowStride : nullptr, columnStride};
  }
};

/// `data` is the scores' data, whose type is now known.
template <typename T, typename S>
HeadScores<T> headOf(const ScoresOf<S> &scores, T *data, int64_t batch, int64_t head) {
  if (!data)
    return {};
  return {data + batch * scores.batchStride + head * scores.headStride, scores.rowStride,
          scores.columnStride};
}

/// row[seen] = scale * row + bias, with -inf for the first `hidden` keys. B: const float, Half or
/// BFloat16.
template <typename B>
void maskRow(float *row, float scale, ScoreRow<B> bias, int64_t hidden, int64_t seen);

/// tile[queries, keys padded] = q[queries, width] * kT[width, keys], where q's first row is query
/// number `query`. Computes, for each group of rows, only the vectors that its last query sees.
void scoreTile(float *tile, const HeadRows<const float> &q, int64_t query, int64_t queries,
               const float *kT, int64_t key, int64_t keys, int64_t width,
               const Sight<int64_t> &sight);

/// out[queries, padded(width)] (+)= p[queries, keys] * v[keys, padded(width)], where p is zero, or
/// not even read, after the keys that a group of queries sees.
void weightTile(float *out, const float *p, int64_t query, int64_t queries, const float *v,
                int64_t key, int64_t keys, int64_t width, const Sight<int64_t> &sight, bool add);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_ATTENTION_H
