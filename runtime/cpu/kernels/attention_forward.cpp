// Attention forward, in tiles with a running maximum and sum per query (the "online softmax" of
// flash attention). For a block of keys and every tile of queries that see some of them:
//
//     S = Q K^T  (+ (bias - base) / scale, -inf before a window)
//     m' = max(m, scale * max(S)),  P = exp(scale * S - m'),  l = l * exp(m - m') + sum(P)
//     O = O * exp(m - m') + P V     (with dropout, of P without what is dropped)
//
// and after a query's last block O / l, logSumExp = m + log(l). K is packed transposed and V in
// rows, once per block for all queries of all heads that share them. Dropout's factor is part of the
// last division. With a layout, a tile gathers the keys that it computes (attention_columns.h).
//
// A 16-bit O is rounded when it is complete. Until then its float sums are kept for a few hundred
// queries of one head at a time (256 KiB), which see all their blocks before the next ones do.
//
// A step of attention whose keys come in parts has a float O, whatever the type of Q. It goes on from m =
// logSumExp and l = 1, with the normalized O. (A query that has seen no key: m = -inf, l = 0, O = 0.)

#include "cpu/kernels/attention.h"
#include "cpu/kernels/rows.h"

#include <cmath>
#include <vector>

namespace partita_rt {

//===-- Shared with the backward pass -------------------------------------------------------===//

void scoreTile(float *out, const ScoreTile &tile, const HeadRows<const float> &q, const float *kT,
               int64_t width) {
  constexpr int64_t kColumns = kPanels * kPad; // whose panels of K^T stay in the L1 cache
  int64_t gathered = padded(tile.columns.count);
  for (int64_t j = 0; j < gathered; j += kColumns)
    for (int64_t i = 0; i < tile.queries; i += kTileRows) {
      int64_t rows = tile.rowsFrom(i), seen = padded(tile.seen(i + rows - 1));
      int64_t columns = std::min({kColumns, gathered - j, seen - j});
      if (columns <= 0)
        continue;
      float *scores = out + i * kKeyBlock + j;
      if (tile.columns.computes(i, rows, j / kPad, columns / kPad))
        microPanels(rows, {q.row(i), q.stride, 1}, kT, tile.columns.numbersFrom(j / kPad),
                    columns / kPad, scores, kKeyBlock, width);
      else
        for (int64_t row = 0; row < rows; ++row)
          std::fill_n(scores + row * kKeyBlock, columns, 0.0f);
    }
}

void weightTile(float *out, const ScoreTile &tile, const float *p, const float *v, int64_t width,
                bool add) {
  constexpr int64_t kPanel = 64; // keys whose rows of V stay in the L1 cache
  int64_t pitch = padded(width);
  for (int64_t j = 0; j < tile.columns.count; j += kPanel)
    for (int64_t i = 0; i < tile.queries; i += kTileRows) {
      int64_t rows = tile.rowsFrom(i), end = std::min(j + kPanel, tile.seen(i + rows - 1));
      int64_t count = std::max<int64_t>(end - j, 0), vector = j / kPad;
      if (count > 0 && !tile.columns.computes(i, rows, vector, padded(count) / kPad))
        count = 0;
      bool more = add || j > 0;
      if (count == 0 && more)
        continue;
      MatrixA weights{p + i * kKeyBlock + j, kKeyBlock, 1};
      if (count == 0 || tile.columns.adjacent(vector, padded(count) / kPad))
        microRows(rows, weights, v + tile.columns.keyOf(vector) * pitch, pitch, out + i * pitch,
                  pitch, pitch, count, more);
      else
        microGathered(rows, weights, v, tile.columns.numbersFrom(vector), pitch, out + i * pitch,
                      pitch, pitch, count, more);
    }
}

static constexpr float kNone = -std::numeric_limits<float>::infinity();

/// The largest bias of keys [first, end), or one that is not low. Looks at the ends first: a mask hides one of them at
/// most, unless it hides much, and distances (ALiBi) are zero at one of them.
template <typename B> static float largestBias(ScoreRow<B> row, int64_t first, int64_t end) {
  if (first >= end)
    return kNone;
  auto at = [&](int64_t key) { return float(row.data[key * row.stride]); };
  float largest = std::max(at(first), at(end - 1));
  constexpr int64_t kStretch = 256;
  for (int64_t key = first; row.stride == 1 && key < end && !(largest >= float(kLowBias));
       key += kStretch)
    largest = std::max(largest, rowMax(row.data + key, std::min(kStretch, end - key)));
  for (int64_t key = first; row.stride > 1 && key < end && !(largest >= float(kLowBias)); ++key)
    largest = std::max(largest, at(key));
  return largest;
}

template <typename B>
std::vector<float> basesOf(const HeadScores<B> &bias, const RunSight &sight,
                           const BlockLayout *layout) {
  std::vector<float> bases(size_t(bias.data ? sight.queries : 0));
  for (int64_t query = 0; query < int64_t(bases.size()); ++query) {
    auto row = bias.row(query);
    int64_t first = sight.firstOfAll(query), end = sight.endOfAll(query), key = sight.keyNumber;
    float largest = kNone;
    if (!layout)
      largest = largestBias(row, first, end);
    while (layout && first < end && !(largest >= float(kLowBias))) { // block by block
      int64_t size = layout->size, blockRow = (sight.queryNumber + query) / size;
      first = firstComputed(*layout, blockRow, first + key, end + key) - key;
      int64_t blockEnd = std::min(((first + key) / size + 1) * size - key, end);
      largest = std::max(largest, largestBias(row, first, blockEnd));
      first = blockEnd;
    }
    bases[size_t(query)] = baseOf(largest);
  }
  return bases;
}

template <typename B>
void maskRow(float *row, float scale, ScoreRow<B> bias, float base, const TileColumns &columns,
             int64_t query, int64_t hidden, int64_t seen) {
  for (int64_t j = 0; j < seen; j += kLanes) {
    int64_t n = std::min<int64_t>(kLanes, seen - j);
    Lanes score = load(row + j) * splat(scale);
    if (bias) {
      score += bias.stride ? loadUpTo(bias.data + columns.keyOf(j / kLanes), n) : splat(*bias.data);
      score -= splat(base); // of the rounded sum
    }
    store(row + j, score); // a tile's row extends to a full vector
  }
  std::fill_n(row, hidden, -std::numeric_limits<float>::infinity());
  if (columns.hidesBlocks())
    columns.hide(row, query, seen);
}
#define MASK_ROW(B)                                                                                \
  template std::vector<float> basesOf(const HeadScores<B> &, const RunSight &,                     \
                                      const BlockLayout *);                                        \
  template void maskRow(float *, float, ScoreRow<B>, float, const TileColumns &, int64_t, int64_t, \
                        int64_t);
MASK_ROW(const float)
MASK_ROW(const Half)
MASK_ROW(const BFloat16)
#undef MASK_ROW

//===-- Forward -----------------------------------------------------------------------------===//

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The running maximum (of scale * S) and sum per query of one head, their bases, and the blocks that each tile
/// computes.
struct Running {
  std::vector<float> largest, sum, bases;
  std::vector<TileBlocks> blocks;
  /// `continued`: null, or logSumExp of the keys before.
  Running(const AttentionShape &shape, int64_t batch, int64_t head, std::vector<float> bases,
          const float *continued)
      : largest(size_t(shape.sequence), kNone), sum(size_t(shape.sequence), 0.0f),
        bases(std::move(bases)),
        blocks(tileBlocks(RunSight(shape, batch), layoutOf(shape, head), keyBlock(shape))) {
    if (!continued)
      return;
    std::copy_n(continued, shape.sequence, largest.begin());
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] = largest[i] == kNone ? 0.0f : 1.0f;
  }
};

struct KeyBlock : PackedKeys {
  float *kT; ///< panels of [headDim, kPad]
  float *v;  ///< [keys, padded(valueDim)]
};

/// O: float, or T.
template <typename T, typename B, typename O> struct HeadForward {
  HeadRows<O> out;
  float *logSumExp;
  HeadRows<const T> q;
  HeadScores<B> bias;
  RunSight sight;
  const BlockLayout *layout;
  HeadDrops drops;
  bool continues;
};

/// Turns a tile of scores into probabilities relative to the running maximum, zero if a query does
/// not see the key, and rescales the sums in `out`, unless there are none yet.
template <typename Head>
void softmaxTile(float *scores, float *out, int64_t pitch, Running &running, const Head &head,
                 const ScoreTile &tile, float scaleOfScores, bool fresh) {
  bool plain = !head.bias.data && !tile.sight.hidesBefore() && !tile.columns.hidesBlocks();
  float scale = plain ? scaleOfScores : 1.0f;
  for (int64_t i = 0; i < tile.queries; ++i) {
    float *row = scores + i * kKeyBlock;
    int64_t query = tile.query + i, seen = tile.seen(i);
    clearBehind(row, seen, tile.columns.count);
    if (seen == 0)
      continue;
    if (!plain)
      maskRow(row, scaleOfScores, head.bias.row(query).from(tile.key),
              running.bases.empty() ? 0.0f : running.bases[size_t(query)], tile.columns, i,
              std::min(tile.hidden(i), seen), seen);
    float &sumOf = running.sum[size_t(query)], &largestOf = running.largest[size_t(query)];
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
      head.drops.forKeys(query, tile.key, tile.columns, seen,
                         [&](int64_t j, bool dropped) { row[j] = dropped ? 0.0f : row[j]; });
    if (!fresh && correction != 1.0f)
      rowScale(out + i * pitch, correction, pitch);
  }
}

/// Loads the sums so far of float rows: those of this call, or, if it `begins`, normalized ones of the keys before.
template <typename Head>
void loadSums(float *out, const Head &head, const ScoreTile &tile, int64_t width, bool begins) {
  packRows(out, head.out, tile.query, tile.queries, width);
  float scale = head.drops.scale(); // which the last division multiplies with
  if (begins && scale != 1.0f)
    rowScale(out, scale == 0.0f ? 0.0f : 1.0f / scale, tile.queries * padded(width));
}

/// Computes one tile of queries of one head against one block of keys, the first that the tile computes
/// if it `begins`, the last one if it `ends`. `sums`: the sums so far of a 16-bit out.
template <typename T, typename B, typename O>
void forwardTile(const HeadForward<T, B, O> &head, const KeyBlock &block, const ScoreTile &tile,
                 Running &running, const AttentionShape &shape, bool begins, bool ends,
                 [[maybe_unused]] float *sums) {
  constexpr int64_t kSpace = kQueryTile * kLargestHead;
  alignas(64) float scores[kQueryTile * kKeyBlock];
  alignas(64) float floatOut[kIsFloat<O> ? kSpace : kPad];
  alignas(64) float widened[kIsFloat<T> ? kPad : kSpace]; // 16-bit queries
  float *out = floatOut;
  int64_t query = tile.query, queries = tile.queries, width = shape.valueDim, pitch = padded(width);
  bool fresh = begins && !head.continues;
  if constexpr (!kIsFloat<O>)
    out = sums;
  else if (!fresh)
    loadSums(out, head, tile, width, begins);
  if (tile.seen(queries - 1) > 0) {
    scoreTile(scores, tile, tileRows(head.q, query, queries, shape.headDim, widened), block.kT,
              shape.headDim);
    softmaxTile(scores, out, pitch, running, head, tile, shape.scale, fresh);
    weightTile(out, tile, scores, block.v, width, !fresh);
  }
  if (!kIsFloat<O> && !ends)
    return;
  for (int64_t i = 0; i < queries; ++i) {
    float sum = running.sum[size_t(query + i)];
    O *row = head.out.row(query + i);
    // Every score is -inf. (No program asks for a query that sees no key at all.)
    bool hidden = sum == 0.0f, undefined = hidden && head.bias.data && !shape.zeroHidden;
    if (ends && hidden)
      fill(row, undefined ? kNaN : 0.0f, width);
    else
      for (int64_t d = 0; d < width; ++d)
        row[d] = out[i * pitch + d] * (ends ? head.drops.scale() / sum : 1.0f);
    if (ends && head.logSumExp)
      head.logSumExp[query + i] = undefined ? kNaN
                                  : hidden  ? kNone
                                            : running.largest[size_t(query + i)] + std::log(sum);
  }
}

/// The operands of one call.
template <typename T, typename B, typename O> struct Forward {
  HeadsOf<O> out;
  float *logSumExp;
  HeadsOf<const T> q, k, v;
  const AttentionShape &shape;
  ScoresOf<const T> bias;
  B *biasData;
  bool continues = false; ///< from what out and logSumExp hold

  float *logSumExpOf(int64_t b, int64_t h) const {
    return logSumExp ? logSumExp + (b * shape.heads + h) * queryPitch(shape) : nullptr;
  }
  HeadForward<T, B, O> head(int64_t b, int64_t h) const {
    return {headOf(out, b, h),      logSumExpOf(b, h),
            headOf(q, b, h),        headOf(bias, biasData, b, h, firstNumber(shape.keys)),
            RunSight(shape, b),     layoutOf(shape, h),
            HeadDrops(shape, b, h), continues};
  }
  Running running(int64_t b, int64_t h) const {
    HeadForward<T, B, O> of = head(b, h);
    return Running(shape, b, h, basesOf(of.bias, of.sight, of.layout),
                   continues ? logSumExpOf(b, h) : nullptr);
  }
  void pack(KeyBlock &block, const TileColumns &columns, int64_t b, int64_t kv) const {
    block.need(columns, [&](int64_t key, int64_t keys) {
      packTransposed(block.kT + key * shape.headDim, headOf(k, b, kv), block.first + key, keys,
                     shape.headDim);
      packRows(block.v + key * padded(shape.valueDim), headOf(v, b, kv), block.first + key, keys,
               shape.valueDim);
    });
  }
  /// Computes the tiles of queries [first, last) that compute some of the block's keys.
  void tiles(KeyBlock &block, Running &running, int64_t b, int64_t h, int64_t first, int64_t last,
             float *sums) const {
    betweenTiles(shape);
    HeadForward<T, B, O> of = head(b, h);
    int64_t size = passSize(shape);
    for (int64_t query = first; query < last; query += kQueryTile) {
      const TileBlocks &blocks = running.blocks[size_t(query / kQueryTile)];
      if (block.first < blocks.first || block.first > blocks.last)
        continue;
      ScoreTile tile(of.sight, of.layout, query, block.first, block.count);
      bool begins = block.first == blocks.first, ends = block.first == blocks.last;
      auto [pass, end] = tile.passes(size);
      if (begins && ends && pass == end && !continues)
        ++end; // the queries see nothing
      for (int64_t i = pass; i < end; ++i) {
        tile.begin(i, size);
        pack(block, tile.columns, b, h / shape.groups);
        forwardTile(of, block, tile, running, shape, begins && i == pass, ends && i + 1 == end,
                    sums ? sums + (query - first) * padded(shape.valueDim) : nullptr);
      }
    }
  }
};

/// Loops over blocks of keys outside, so each is packed once.
template <typename T, typename B> void forwardHeads(const Forward<T, B, float> &call) {
  const AttentionShape &shape = call.shape;
  BlockSpace<2> space(shape);
  KeyBlock block{{}, space.array(0), space.array(1)};
  int64_t blockSize = keyBlock(shape);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t kv = 0; kv < shape.heads / shape.groups; ++kv) {
      std::vector<Running> running;
      for (int64_t g = 0; g < shape.groups; ++g)
        running.push_back(call.running(b, kv * shape.groups + g));
      for (int64_t key = 0; key < std::max<int64_t>(shape.keySequence, 1); key += blockSize) {
        block.begin(key, shape);
        for (int64_t g = 0; g < shape.groups; ++g)
          call.tiles(block, running[size_t(g)], b, kv * shape.groups + g, 0, shape.sequence,
                     nullptr);
      }
    }
}

/// Loops outside over groups of as many queries as have their sums in float; key blocks are packed
/// once per group.
template <typename T, typename B, std::enable_if_t<!kIsFloat<T>, int> = 0>
void forwardHeads(const Forward<T, B, T> &call) {
  constexpr int64_t kSums = 64 << 10;
  const AttentionShape &shape = call.shape;
  BlockSpace<2> space(shape);
  KeyBlock block{{}, space.array(0), space.array(1)};
  int64_t blockSize = keyBlock(shape), pitch = padded(shape.valueDim);
  int64_t queries = kSums / pitch / kQueryTile * kQueryTile;
  std::vector<float> sums(size_t(std::min(queries, shape.sequence) * pitch));
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      Running running = call.running(b, h);
      for (int64_t first = 0; first < shape.sequence; first += queries) {
        int64_t last = std::min(first + queries, shape.sequence);
        auto tile = running.blocks.begin() + first / kQueryTile;
        auto end = running.blocks.begin() + (last + kQueryTile - 1) / kQueryTile;
        int64_t key = tile->first, lastKey = tile->last;
        for (; tile != end; ++tile) {
          key = std::min(key, tile->first);
          lastKey = std::max(lastKey, tile->last);
        }
        for (; key <= lastKey; key += blockSize) {
          block.begin(key, shape);
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
      forwardHeads(Forward<T, std::remove_pointer_t<decltype(data)>, T>{out, logSumExp, q, k, v,   \
                                                                        shape, bias, data});       \
    });                                                                                            \
  }
FOR_STORAGE(ATTENTION_FORWARD)
#undef ATTENTION_FORWARD

//===-- Steps -------------------------------------------------------------------------------===//

namespace {

/// Sets the rows of queries that have seen no key.
template <typename Rows>
void setRows(const Rows &out, float *logSumExp, const AttentionShape &shape, float value,
             float itsLogSumExp, bool onlyUnseen) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      float *of = logSumExp + (b * shape.heads + h) * queryPitch(shape);
      for (int64_t i = 0; i < shape.sequence; ++i)
        if (!onlyUnseen || of[i] == kNone) {
          fill(headOf(out, b, h).row(i), value, shape.valueDim);
          of[i] = itsLogSumExp;
        }
    }
}

template <typename T>
void forwardStep(HeadsOf<float> out, float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,
                 HeadsOf<const T> v, const AttentionShape &shape, ScoresOf<const T> bias,
                 bool continues) {
  checkAttention(shape);
  checkRuns(shape);
  forRuns(shape, [&](AttentionShape pair, int64_t query, int64_t key) {
    bool goesOn = continues || key > 0;
    HeadsOf<float> outs = fromRow(out, query);
    float *sums = logSumExp + query;
    pair.zeroHidden = true;
    if (hidesAll(pair))
      return goesOn ? void() : setRows(outs, sums, pair, 0.0f, kNone, /*onlyUnseen=*/false);
    ScoresOf<const T> scores = fromRow(bias, query);
    withType(scores.data, [&](auto *data) {
      using B = std::remove_pointer_t<decltype(data)>;
      forwardHeads(Forward<T, B, float>{outs, sums, fromRow(q, query), fromRow(k, key),
                                        fromRow(v, key), pair, scores, data, goesOn});
    });
  });
  if (bias.data && !shape.zeroHidden)
    setRows(out, logSumExp, shape, kNaN, kNaN, /*onlyUnseen=*/true);
}

} // namespace

#define ATTENTION_STEP(T)                                                                          \
  void attentionStep(HeadsOf<float> out, float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k, \
                     HeadsOf<const T> v, const AttentionShape &shape, ScoresOf<const T> bias,      \
                     bool continues) {                                                             \
    forwardStep(out, logSumExp, q, k, v, shape, bias, continues);                                  \
  }
FOR_STORAGE(ATTENTION_STEP)
#undef ATTENTION_STEP

} // namespace partita_rt
