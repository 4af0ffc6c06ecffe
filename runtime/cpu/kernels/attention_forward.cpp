// Attention forward, in tiles with a running maximum and sum per query (the "online softmax" of
// flash attention). For a block of keys and every tile of queries that see some of them:
//
//     S = Q K^T  (+ bias / scale, -inf before a window)
//     m' = max(m, scale * max(S)),  P = exp(scale * S - m'),  l = l * exp(m - m') + sum(P)
//     O = O * exp(m - m') + P V     (with dropout, of P without what is dropped)
//
// and after a query's last block O / l, logSumExp = m + log(l). K is packed transposed and V in
// rows, once per block for all queries of all heads that share them. Dropout's factor is part of the
// last division.
//
// A 16-bit O is rounded when it is complete. Until then its float sums are kept for a few hundred
// queries of one head at a time (256 KiB), which see all their blocks before the next ones do.

#include "cpu/kernels/attention.h"
#include "cpu/kernels/rows.h"

#include <cmath>
#include <vector>

namespace partita_rt {

//===-- Shared with the backward pass -------------------------------------------------------===//

void scoreTile(float *tile, const HeadRows<const float> &q, int64_t query, int64_t queries,
               const float *kT, int64_t key, int64_t keys, int64_t width,
               const Sight<int64_t> &sight) {
  int64_t pitch = padded(keys), panel = kTileVectors * kWide;
  for (int64_t j = 0; j < pitch; j += panel) // a panel of K^T stays in the L1 cache
    for (int64_t i = 0; i < queries; i += kTileRows) {
      int64_t rows = std::min<int64_t>(kTileRows, queries - i);
      int64_t seen = padded(std::min(keys, sight.end(query + i + rows - 1) - key));
      int64_t columns = std::min({panel, pitch - j, seen - j});
      if (columns > 0)
        microRows(rows, {q.row(i), q.stride, 1}, kT + j, pitch, tile + i * kKeyBlock + j, kKeyBlock,
                  columns, width, false);
    }
}

void weightTile(float *out, const float *p, int64_t query, int64_t queries, const float *v,
                int64_t key, int64_t keys, int64_t width, const Sight<int64_t> &sight, bool add) {
  constexpr int64_t kPanel = 64; // keys whose rows of V stay in the L1 cache
  int64_t pitch = padded(width);
  for (int64_t j = 0; j < keys; j += kPanel)
    for (int64_t i = 0; i < queries; i += kTileRows) {
      int64_t rows = std::min<int64_t>(kTileRows, queries - i);
      int64_t seen = std::min(keys, sight.end(query + i + rows - 1) - key);
      int64_t count = std::min(kPanel, seen - j);
      if (count > 0 || (j == 0 && !add))
        microRows(rows, {p + i * kKeyBlock + j, kKeyBlock, 1}, v + j * pitch, pitch,
                  out + i * pitch, pitch, pitch, std::max<int64_t>(count, 0), add || j > 0);
    }
}

template <typename B>
void maskRow(float *row, float scale, ScoreRow<B> bias, int64_t hidden, int64_t seen) {
  for (int64_t j = 0; j < seen; j += kLanes) {
    int64_t n = std::min<int64_t>(kLanes, seen - j);
    Lanes score = load(row + j) * splat(scale);
    if (bias)
      score += bias.stride ? loadUpTo(bias.data + j, n) : splat(*bias.data);
    store(row + j, score); // a tile's row extends to a full vector
  }
  std::fill(row, row + std::clamp<int64_t>(hidden, 0, seen),
            -std::numeric_limits<float>::infinity());
}
template void maskRow(float *, float, ScoreRow<const float>, int64_t, int64_t);
template void maskRow(float *, float, ScoreRow<const Half>, int64_t, int64_t);
template void maskRow(float *, float, ScoreRow<const BFloat16>, int64_t, int64_t);

//===-- Forward -----------------------------------------------------------------------------===//

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The running maximum (of scale * S) and sum per query of one head.
struct Running {
  std::vector<float> largest, sum;
  explicit Running(int64_t n) : largest(size_t(n), kNone), sum(size_t(n), 0.0f) {}
};

struct KeyBlock {
  int64_t first, count;
  alignas(64) float kT[kBlockElements];
  alignas(64) float v[kBlockElements];
};

template <typename T, typename B> struct HeadForward {
  HeadRows<T> out;
  float *logSumExp;
  HeadRows<const T> q;
  HeadScores<B> bias;
  Sight<int64_t> sight;
  HeadDrops drops;
};

/// Turns a tile of scores into probabilities relative to the running maximum, zero if a query does
/// not see the key, and rescales the sums in `out`, unless the tile `begins` them.
template <typename T, typename B>
void softmaxTile(float *tile, float *out, int64_t pitch, Running &running,
                 const HeadForward<T, B> &head, float scaleOfScores, int64_t query, int64_t queries,
                 int64_t key, int64_t keys, bool begins) {
  bool plain = !head.bias.data && !head.sight.hidesBefore();
  float scale = plain ? scaleOfScores : 1.0f;
  for (int64_t i = 0; i < queries; ++i) {
    float *row = tile + i * kKeyBlock;
    int64_t seen = std::clamp<int64_t>(head.sight.end(query + i) - key, 0, keys);
    clearBehind(row, seen, keys);
    if (seen == 0)
      continue;
    if (!plain)
      maskRow(row, scaleOfScores, head.bias.row(query + i).from(key),
              head.sight.first(query + i) - key, seen);
    float &sumOf = running.sum[size_t(query + i)], &largestOf = running.largest[size_t(query + i)];
    float before = largestOf, largest = before;
    if (scale >= 0)
      largest = std::max(before, scale * tileMax(row, seen));
    else // with a negative scale, the max of scale * S is at the min of S
      for (int64_t j = 0; j < seen; ++j)
        largest = std::max(largest, scale * row[j]);
    float correction = before == kNone ? 0.0f : std::exp(before - largest);
    // For a row of only -inf scores, keep exp(-inf - 0) = 0 instead of NaN.
    float sum = tileExp(row, scale, largest == kNone ? 0.0f : largest, seen);
    sumOf = sumOf * correction + sum;
    largestOf = largest;
    if (head.drops)
      head.drops.forKeys(query + i, key, seen,
                         [&](int64_t j, bool dropped) { row[j] = dropped ? 0.0f : row[j]; });
    if (!begins && correction != 1.0f)
      rowScale(out + i * pitch, correction, pitch);
  }
}

/// Computes one tile of queries of one head against one block of keys, the first that the tile sees
/// if it `begins`. `sums`: the sums so far of a 16-bit out.
template <typename T, typename B>
void forwardTile(const HeadForward<T, B> &head, const KeyBlock &block, Running &running,
                 const AttentionShape &shape, int64_t query, bool begins,
                 [[maybe_unused]] float *sums) {
  alignas(64) float tile[kQueryTile * kKeyBlock];
  alignas(64) float space[kQueryTile * kLargestHead]; // out, or widened 16-bit queries
  float *out = space;
  int64_t queries = std::min(kQueryTile, shape.sequence - query), width = shape.valueDim;
  int64_t end = head.sight.end(query + queries - 1), key = block.first, pitch = padded(width);
  int64_t keys = std::min(block.count, end - key);
  if constexpr (!kIsFloat<T>)
    out = sums;
  else if (!begins)
    packRows(out, head.out, query, queries, width);
  if (keys > 0) {
    // K^T was packed for the full block, so its pitch is the block's.
    scoreTile(tile, tileRows(head.q, query, queries, shape.headDim, space), query, queries,
              block.kT, key, block.count, shape.headDim, head.sight);
    softmaxTile(tile, out, pitch, running, head, shape.scale, query, queries, key, block.count,
                begins);
    weightTile(out, tile, query, queries, block.v, key, block.count, width, head.sight, !begins);
  }
  bool last = end <= key + block.count;
  if (!kIsFloat<T> && !last)
    return;
  for (int64_t i = 0; i < queries; ++i) {
    float sum = running.sum[size_t(query + i)];
    T *row = head.out.row(query + i);
    // Every score is -inf. (No program asks for a query that sees no key at all.)
    bool hidden = sum == 0.0f, undefined = hidden && head.bias.data && !shape.zeroHidden;
    if (last && hidden)
      fill(row, undefined ? kNaN : 0.0f, width);
    else
      for (int64_t d = 0; d < width; ++d)
        row[d] = out[i * pitch + d] * (last ? head.drops.scale() / sum : 1.0f);
    if (last && head.logSumExp)
      head.logSumExp[query + i] = undefined ? kNaN
                                  : hidden  ? kNone
                                            : running.largest[size_t(query + i)] + std::log(sum);
  }
}

/// The operands of one call.
template <typename T, typename B> struct Forward {
  HeadsOf<T> out;
  float *logSumExp;
  HeadsOf<const T> q, k, v;
  const AttentionShape &shape;
  ScoresOf<const T> bias;
  B *biasData;

  HeadForward<T, B> head(int64_t b, int64_t h) const {
    return {headOf(out, b, h),
            logSumExp ? logSumExp + (b * shape.heads + h) * shape.sequence : nullptr,
            headOf(q, b, h),
            headOf(bias, biasData, b, h),
            Sight<int64_t>(shape, b),
            HeadDrops(shape, b, h)};
  }
  void pack(KeyBlock &block, int64_t b, int64_t kv) const {
    int64_t key = block.first;
    packTransposed(block.kT, headOf(k, b, kv), key, block.count, shape.headDim);
    packRows(block.v, headOf(v, b, kv), key, block.count, shape.valueDim);
  }
  /// Computes the tiles of queries [first, last) that see some of the block's keys.
  void tiles(const KeyBlock &block, Running &running, int64_t b, int64_t h, int64_t first,
             int64_t last, float *sums) const {
    HeadForward<T, B> of = head(b, h);
    for (int64_t query = first; query < last; query += kQueryTile) {
      TileOfBlock tile(of.sight, query, block.first, block.count);
      if (tile.begins || tile.meets)
        forwardTile(of, block, running, shape, query, tile.begins,
                    sums ? sums + (query - first) * padded(shape.valueDim) : nullptr);
    }
  }
};

/// Loops over blocks of keys outside, so each is packed once.
template <typename B> void forwardHeads(const Forward<float, B> &call) {
  const AttentionShape &shape = call.shape;
  KeyBlock block;
  int64_t blockSize = keyBlock(shape);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t kv = 0; kv < shape.heads / shape.groups; ++kv) {
      std::vector<Running> running(size_t(shape.groups), Running(shape.sequence));
      for (int64_t key = 0; key < std::max<int64_t>(shape.keySequence, 1); key += blockSize) {
        block.first = key;
        block.count = std::min(blockSize, shape.keySequence - key);
        call.pack(block, b, kv);
        for (int64_t g = 0; g < shape.groups; ++g)
          call.tiles(block, running[size_t(g)], b, kv * shape.groups + g, 0, shape.sequence,
                     nullptr);
      }
    }
}

/// Loops outside over groups of as many queries as have their sums in float; key blocks are packed
/// once per group.
template <typename T, typename B> void forwardHeads(const Forward<T, B> &call) {
  constexpr int64_t kSums = 64 << 10;
  const AttentionShape &shape = call.shape;
  KeyBlock block;
  int64_t blockSize = keyBlock(shape), pitch = padded(shape.valueDim);
  int64_t queries = kSums / pitch / kQueryTile * kQueryTile;
  std::vector<float> sums(size_t(std::min(queries, shape.sequence) * pitch));
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      Running running(shape.sequence);
      Sight<int64_t> sight(shape, b);
      for (int64_t first = 0; first < shape.sequence; first += queries) {
        int64_t last = std::min(first + queries, shape.sequence);
        int64_t end = std::max<int64_t>(sight.end(last - 1), 1);
        for (int64_t key = sight.first(first) / blockSize * blockSize; key < end;
             key += blockSize) {
          block.first = key;
          block.count = std::min(blockSize, shape.keySequence - key);
          call.pack(block, b, h / shape.groups);
          call.tiles(block, running, b, h, first, last, sums.data());
        }
      }
    }
}

} // namespace

#define ATTENTION_FORWARD(T)                                                                       \
  void attentionForward(HeadsOf<T> out, float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,  \
                        HeadsOf<const T> v, const AttentionShape &shape, ScoresOf<const T> bias) { \
    checkAttention(shape);                                                                         \
    withType(bias.data, [&](auto *data) {                                                          \
      forwardHeads(Forward<T, std::remove_pointer_t<decltype(data)>>{out, logSumExp, q, k, v,      \
                                                                     shape, bias, data});          \
    });                                                                                            \
  }
FOR_STORAGE(ATTENTION_FORWARD)
#undef ATTENTION_FORWARD

} // namespace partita_rt
