// Shared by the forward and the backward pass of attention: tiles, packing.

#ifndef PARTITA_RT_CPU_KERNELS_ATTENTION_H
#define PARTITA_RT_CPU_KERNELS_ATTENTION_H

#include "cpu/kernels/attention_columns.h"
#include "cpu/kernels/between_tiles.h"
#include "cpu/kernels/drops.h"
#include "cpu/kernels/micro_gemm.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/storage.h"
#include "partita_rt/attention_base.h"
#include "partita_rt/attention_drops.h"

#include <algorithm>
#include <bitset>
#include <memory>
#include <optional>
#include <vector>

namespace partita_rt {

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

/// Before some tiles: a step, beside which a ring's shift is under way, moves it on. Beside other kernels the program polls,
/// as often as it was compiled to.
inline void betweenTiles(const AttentionShape &shape) {
  if (shape.queries.first)
    BetweenTiles::run();
}

/// Keys of a pass.
inline int64_t passSize(const AttentionShape &shape) {
  int64_t widest = padded(std::max(shape.headDim, shape.valueDim));
  return std::min(kKeyBlock, kBlockElements / widest / kPad * kPad);
}
/// Keys of a block.
inline int64_t keyBlock(const AttentionShape &shape) {
  return passSize(shape) * (shape.blocks ? passesOfBlock(layoutOfHead(shape.blocks, 0)) : 1);
}

/// Arrays of a block of keys: on the stack, or, for the longer blocks of layouts, on the heap. Not initialized.
template <int kArrays> class BlockSpace {
  alignas(64) float own[kArrays * kBlockElements];
  std::unique_ptr<float[]> more;
  float *data = own;
  int64_t each = kBlockElements;

public:
  explicit BlockSpace(const AttentionShape &shape) {
    if (!shape.blocks)
      return;
    each = std::min(keyBlock(shape), padded(shape.keySequence)) *
           padded(std::max(shape.headDim, shape.valueDim));
    more.reset(new float[size_t(kArrays * each) + kPad]);
    data = more.get() + (64 - reinterpret_cast<uintptr_t>(more.get()) % 64) % 64 / sizeof(float);
  }
  float *array(int number) { return data + number * each; }
};

/// A block of keys, of which each vector is packed when a tile first needs it.
class PackedKeys {
  std::bitset<kKeyVectors> packed; ///< of each vector

public:
  int64_t first = 0, count = 0;
  void begin(int64_t key, const AttentionShape &shape) {
    first = key;
    count = std::min(keyBlock(shape), shape.keySequence - key);
    packed.reset();
  }
  /// Calls pack(key, keys) for the vectors of a tile's pass that are not packed yet; key: in the block.
  template <typename Pack> void need(const TileColumns &columns, Pack pack) {
    for (int64_t v = 0; v * kPad < columns.count; ++v) {
      int64_t key = columns.keyOf(v);
      if (packed[size_t(key / kPad)])
        continue;
      packed.set(size_t(key / kPad));
      pack(key, std::min(kPad, count - key));
    }
  }
};

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
  /// Calls visit(j, dropped) for the first `count` gathered keys j of a query, of a block that begins at `key`.
  template <typename Visit>
  void forKeys(int64_t query, int64_t key, const TileColumns &columns, int64_t count,
               Visit visit) const {
    int64_t row = drops->row(batch, head, query) + key;
    columns.forRuns(0, count, [&](int64_t gathered, int64_t first, int64_t n) {
      forDropped(drops->drops, row + first, n,
                 [&](int64_t j, bool dropped) { visit(gathered + j, dropped); });
    });
  }
};

/// Throws Error if the kernels cannot make the call.
inline void checkAttention(const AttentionShape &shape) {
  if (shape.headDim > kLargestHead || shape.valueDim > kLargestHead)
    fail("attention: heads of %lld elements, at most %lld are possible",
         (long long)std::max(shape.headDim, shape.valueDim), (long long)kLargestHead);
  for (int64_t head = 0; shape.blocks && head < shape.heads; ++head) {
    const BlockLayout &layout = layoutOfHead(shape.blocks, head);
    int64_t positions = int64_t(layout.n) * layout.size;
    int64_t queries = fullLength(shape.queries, shape.sequence),
            keys = fullLength(shape.keys, shape.keySequence);
    if (positions != queries || positions != keys)
      fail("attention: a layout of %d x %d blocks of %d positions, for %lld queries and %lld keys",
           int(layout.n), int(layout.n), int(layout.size), (long long)queries, (long long)keys);
  }
}

/// Throws Error if runs are not parts of the full sequence.
inline void checkRuns(const SequenceRuns &runs, int64_t here, const char *what) {
  int64_t full = fullLength(runs, here), length = runs.runs > 0 ? here / runs.runs : 0;
  if (runs.runs <= 0 || here % runs.runs != 0)
    fail("attention: %lld %s in %lld runs, which must have equal lengths", (long long)here, what,
         (long long)runs.runs);
  for (int64_t run = 0; run < runs.runs; ++run)
    if (int64_t first = runs.first ? runs.first[run] : 0;
        first < 0 || first + length > full || (length && first % length))
      fail("attention: a run of %lld %s begins at number %lld of %lld, "
           "not at a multiple of its length",
           (long long)length, what, (long long)first, (long long)full);
}
inline void checkRuns(const AttentionShape &shape) {
  checkRuns(shape.queries, shape.sequence, "queries");
  checkRuns(shape.keys, shape.keySequence, "keys");
}

/// Does no query of a run see any key of another, whatever its document?
inline bool hidesAll(AttentionShape pair) {
  pair.firstKeys = nullptr;
  RunSight sight(pair, 0);
  return sight.queries == 0 || sight.end(sight.queries - 1) <= sight.first(0);
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

/// Sets a panel [width, kPad] to the transpose of up to kPad rows, followed by zeros.
template <typename T>
inline void packTransposed(float *panel, const HeadRows<const T> &in, int64_t first, int64_t rows,
                           int64_t width) {
  for (int64_t d = 0; d < width; ++d)
    for (int64_t i = 0; i < kPad; ++i)
      panel[d * kPad + i] = i < rows ? float(in.row(first + i)[d]) : 0.0f;
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

/// Zeros the elements of a tile's row of gathered `keys` after the `seen` ones that matmuls read: they read a
/// group of rows as far as its last row sees, less than kTileRows keys further than its first. The caller
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

/// `data` is the scores' data, whose type is now known; `key`: the first key's number in the full sequence.
template <typename T, typename S>
HeadScores<T> headOf(const ScoresOf<S> &scores, T *data, int64_t batch, int64_t head, int64_t key) {
  if (!data)
    return {};
  return {data + batch * scores.batchStride + head * scores.headStride + key * scores.columnStride,
          scores.rowStride, scores.columnStride};
}

/// Returns the base of each query of a head (attention_base.h); empty without a bias. Looks at keys until one has a
/// bias that is not low: the first or the last one that the query sees, unless both are hidden.
template <typename B>
std::vector<float> basesOf(const HeadScores<B> &bias, const RunSight &sight,
                           const BlockLayout *layout);

/// row[seen] = scale * row + bias - base, of gathered keys, with -inf for the first `hidden` ones and those that row
/// number `query` of the tile does not compute. bias: from the block's first key on. B: const float, Half or
/// BFloat16.
template <typename B>
void maskRow(float *row, float scale, ScoreRow<B> bias, float base, const TileColumns &columns,
             int64_t query, int64_t hidden, int64_t seen);

/// A tile of queries, from number `query` on, and the keys that it computes, in a pass, of a block of `keys` keys
/// from `key` on.
struct ScoreTile {
  int64_t query, queries, key, keys;
  const RunSight &sight;
  TileColumns columns;
  ScoreTile(const RunSight &sight, const BlockLayout *layout, int64_t query, int64_t key,
            int64_t keys)
      : query(query), queries(std::min(kQueryTile, sight.queries - query)), key(key), keys(keys),
        sight(sight),
        columns(layout, sight.queryNumber + query, queries, sight.keyNumber + key, keys) {}
  /// The passes that have keys which some query sees.
  TileColumns::Passes passes(int64_t size) const {
    int64_t first = sight.first(query) - key, end = sight.end(query + queries - 1) - key;
    return columns.passes(std::clamp<int64_t>(first, 0, keys), std::clamp<int64_t>(end, 0, keys),
                          size);
  }
  void begin(int64_t pass, int64_t size) { columns.begin(pass, size, sight, queries, key, keys); }
  /// How many gathered keys there are before the end of what query number `row` of the tile sees,
  int64_t seen(int64_t row) const {
    return columns.upTo(std::clamp<int64_t>(sight.end(query + row) - key, 0, keys));
  }
  /// and before its beginning.
  int64_t hidden(int64_t row) const {
    return columns.upTo(std::clamp<int64_t>(sight.first(query + row) - key, 0, keys));
  }
  /// The rows of a group of at most kTileRows.
  int64_t rowsFrom(int64_t row) const { return std::min<int64_t>(kTileRows, queries - row); }
};

/// out[queries, gathered keys padded] = q[queries, width] * kT; kT has the block's panels [width, kPad]. Computes,
/// for each group of rows, only the vectors that its last query sees; those of which no query computes a key are
/// zero.
void scoreTile(float *out, const ScoreTile &tile, const HeadRows<const float> &q, const float *kT,
               int64_t width);

/// out[queries, padded(width)] (+)= p[queries, gathered keys] * v[keys, padded(width)], where p is zero, or
/// not even read, after the keys that a group of queries sees.
void weightTile(float *out, const ScoreTile &tile, const float *p, const float *v, int64_t width,
                bool add);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_ATTENTION_H
