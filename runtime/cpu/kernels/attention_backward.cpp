// Attention backward, recomputing the probabilities tile by tile from logSumExp:
//
//     delta = sum_d dO * O                       per query
//     P  = exp(scale * Q K^T + bias - logSumExp)
//     dP = dO V^T
//     dS = P * (dP - delta),  dbias += dS
//     dV += P^T dO,  dK += scale * dS^T Q,  dQ += scale * dS K
//
// With dropout, dV is of P with the forward pass's elements dropped and the others multiplied, and dP
// is treated like this P; delta remains the sum over dO * O.
//
// Loops over blocks of keys, heads that share them and query tiles, each in ascending order, so
// every sum has one order. A 16-bit dQ is summed in float in the workspace, and rounded after the
// last block.

#include "cpu/kernels/attention.h"
#include "cpu/kernels/rows.h"

namespace partita_rt {

namespace {

template <typename T, typename B> struct HeadGradients {
  HeadRows<T> dq;
  float *dqSums; ///< [sequence, padded(headDim)], for a 16-bit dq
  float *delta;
  HeadRows<const T> dout, out;
  const float *logSumExp;
  HeadRows<const T> q;
  HeadScores<B> bias;
  HeadScores<float> dbias;
  Sight<int64_t> sight;
  const BlockLayout *layout;
  HeadDrops drops;
};

/// A block of keys and values, packed as the matmuls need them, and their gradients.
struct KeyBlock : PackedKeys {
  float *kT; ///< panels of [headDim, kPad]
  float *vT; ///< panels of [valueDim, kPad]
  float *k;  ///< [keys, padded(headDim)]
  float *dk, *dv;
};

template <typename T, typename B>
void computeDelta(const HeadGradients<T, B> &head, const AttentionShape &shape) {
  for (int64_t i = 0; i < shape.sequence; ++i) {
    Lanes sum{};
    forLanes(shape.valueDim, [&](int64_t d, int64_t n) {
      sum += loadUpTo(head.dout.row(i) + d, n) * loadUpTo(head.out.row(i) + d, n);
    });
    head.delta[i] = sumLanes(sum);
  }
}

/// Below this, adding scores (or the logarithm of a count) does not change a float.
constexpr float kOnlyBias = -1e30f;

/// Returns 1, except for a query whose bias is so low (like the lowest float) that it absorbs all
/// scores, and logSumExp is that bias: then one over the number of keys that have it.
template <typename T, typename B> float shareOf(const HeadGradients<T, B> &head, int64_t query) {
  float shift = head.logSumExp[query];
  ScoreRow<B> bias = head.bias.row(query);
  if (!bias || !(shift < kOnlyBias) || shift == -std::numeric_limits<float>::infinity())
    return 1.0f;
  int64_t count = 0, first = head.sight.first(query), end = head.sight.end(query);
  for (int64_t j = first; j < end; ++j) {
    if (head.layout) // to the next computed key
      j = firstComputed(*head.layout, query / head.layout->size, j, end);
    count += j < end && bias.data[j * bias.stride] >= shift;
  }
  return 1.0f / float(std::max<int64_t>(count, 1));
}

/// dbias[key + j] += ds[j]; a single sum if the bias is one number per row.
void addToBias(ScoreRow<float> dbias, const float *ds, int64_t seen) {
  if (!dbias.stride) {
    *dbias.data += rowSum(ds, seen);
    return;
  }
  forLanes(seen, [&](int64_t j, int64_t n) {
    storeUpTo(dbias.data + j, loadUpTo(dbias.data + j, n) + loadUpTo(ds + j, n), n);
  });
}

/// dbias of the gathered keys of a query: bias begins at the block's first key.
void addToBias(ScoreRow<float> dbias, const float *ds, const TileColumns &columns, int64_t seen) {
  columns.forRuns(0, seen, [&](int64_t gathered, int64_t key, int64_t count) {
    addToBias(dbias.from(key), ds + gathered, count);
  });
}

/// Turns scores into P, its elements dropped, and dP into dS * scale, both 0 if a query does not see
/// the key.
template <typename T, typename B>
void differentiateTile(float *p, float *ds, const HeadGradients<T, B> &head, const ScoreTile &tile,
                       float scaleOfScores) {
  bool plain = !head.bias.data && !tile.sight.hidesBefore() && !tile.columns.hidesBlocks();
  for (int64_t i = 0; i < tile.queries; ++i) {
    float *pRow = p + i * kKeyBlock, *dsRow = ds + i * kKeyBlock;
    int64_t query = tile.query + i, seen = tile.seen(i);
    float shift = head.logSumExp[query];
    clearBehind(pRow, seen, tile.columns.count);
    clearBehind(dsRow, seen, tile.columns.count);
    if (shift == -std::numeric_limits<float>::infinity()) {
      // The query saw only masked keys: its output is constant. Others of its group see these.
      std::fill_n(pRow, padded(seen), 0.0f);
      std::fill_n(dsRow, padded(seen), 0.0f);
      continue;
    }
    if (!plain && seen > 0)
      maskRow(pRow, scaleOfScores, head.bias.row(query).from(tile.key), tile.columns, i,
              std::min(tile.hidden(i), seen), seen);
    alignas(64) float factors[kKeyBlock]; // of dropout
    if (head.drops)
      head.drops.forKeys(query, tile.key, tile.columns, seen, [&](int64_t j, bool dropped) {
        factors[j] = dropped ? 0.0f : head.drops.scale();
      });
    Lanes scale = splat(plain ? scaleOfScores : 1.0f), delta = splat(head.delta[query]),
          share = splat(shareOf(head, query));
    for (int64_t j = 0; j < seen; j += kLanes) {
      Lanes probability = expLanes(load(pRow + j) * scale - splat(shift)) * share;
      probability = firstLanes(probability, seen - j, 0.0f);
      Lanes factor = head.drops ? firstLanes(load(factors + j), seen - j, 0.0f) : splat(1.0f);
      Lanes dScore = probability * (load(dsRow + j) * factor - delta);
      store(pRow + j, probability * factor);
      store(dsRow + j, firstLanes(dScore, seen - j, 0.0f)); // 0 * inf of an unset lane is NaN
    }
    if (head.dbias.data && seen > 0)
      addToBias(head.dbias.row(query).from(tile.key), dsRow, tile.columns, seen);
    for (int64_t j = 0; j < seen; j += kLanes)
      store(dsRow + j, load(dsRow + j) * splat(scaleOfScores));
  }
}

/// sums[keys, padded(width)] += weights^T[keys, queries] * rows[queries, padded(width)], of gathered keys; sums
/// has all of the block.
void addTransposed(float *sums, const float *weights, const float *rows, const ScoreTile &tile,
                   int64_t width) {
  int64_t pitch = padded(width), queries = tile.queries;
  tile.columns.forRuns(0, tile.seen(queries - 1), [&](int64_t gathered, int64_t key, int64_t keys) {
    for (int64_t j = 0; j < keys; j += kTileRows) {
      int64_t count = std::min<int64_t>(kTileRows, keys - j);
      int64_t skip = tile.sight.firstQuery(tile.key + key + j) - tile.query;
      skip = std::clamp<int64_t>(skip, 0, queries);
      microRows(count, {weights + skip * kKeyBlock + gathered + j, 1, kKeyBlock},
                rows + skip * pitch, pitch, sums + (key + j) * pitch, pitch, pitch, queries - skip,
                true);
    }
  });
}

/// Copies rows of packed sums to a head.
template <typename T>
void writeRows(const HeadRows<T> &out, const float *rows, int64_t first, int64_t count,
               int64_t width) {
  for (int64_t j = 0; j < count; ++j)
    convertArray(out.row(first + j), rows + j * padded(width), width);
}

template <typename T, typename B>
void backwardTile(const HeadGradients<T, B> &head, KeyBlock &block, const ScoreTile &tile,
                  const AttentionShape &shape, bool begins) {
  alignas(64) float p[kQueryTile * kKeyBlock];
  alignas(64) float ds[kQueryTile * kKeyBlock];
  alignas(64) float rows[kQueryTile * kLargestHead];
  int64_t query = tile.query, queries = tile.queries, pitch = padded(shape.headDim);
  bool some = tile.seen(queries - 1) > 0;

  if (some) {
    scoreTile(p, tile, tileRows(head.q, query, queries, shape.headDim, rows), block.kT,
              shape.headDim);
    scoreTile(ds, tile, tileRows(head.dout, query, queries, shape.valueDim, rows), block.vT,
              shape.valueDim);
    differentiateTile(p, ds, head, tile, shape.scale);
    if (kIsFloat<T>) // else the rows already hold dout
      packRows(rows, head.dout, query, queries, shape.valueDim);
    addTransposed(block.dv, p, rows, tile, shape.valueDim);
    packRows(rows, head.q, query, queries, shape.headDim);
    addTransposed(block.dk, ds, rows, tile, shape.headDim);
  }
  float *dq = kIsFloat<T> ? rows : head.dqSums + query * pitch;
  if (begins)
    std::fill(dq, dq + queries * pitch, 0.0f);
  else if (kIsFloat<T>)
    packRows(rows, head.dq, query, queries, shape.headDim);
  if (some)
    weightTile(dq, tile, ds, block.k, shape.headDim, true);
  if (kIsFloat<T>)
    writeRows(head.dq, dq, query, queries, shape.headDim);
}

/// Zeroes a bias gradient: the dimensions along which it does not repeat are dense.
void clear(const Scores &dbias, const AttentionShape &shape) {
  if (!dbias.data)
    return;
  int64_t elements = (dbias.batchStride ? shape.batch : 1) * (dbias.headStride ? shape.heads : 1) *
                     (dbias.rowStride ? shape.sequence : 1) *
                     (dbias.columnStride ? shape.keySequence : 1);
  fill(dbias.data, 0.0f, elements);
}

/// The operands of one call.
template <typename T, typename B> struct Backward {
  HeadsOf<T> dq, dk, dv;
  float *workspace;
  HeadsOf<const T> dout, out;
  const float *logSumExp;
  HeadsOf<const T> q, k, v;
  const AttentionShape &shape;
  ScoresOf<const T> bias;
  B *biasData;
  Scores dbias;

  HeadGradients<T, B> head(int64_t b, int64_t h) const {
    int64_t row = (b * shape.heads + h) * shape.sequence;
    float *sums = workspace + shape.batch * shape.heads * shape.sequence;
    return {headOf(dq, b, h),
            kIsFloat<T> ? nullptr
                        : sums + h % shape.groups * shape.sequence * padded(shape.headDim),
            workspace + row,
            headOf(dout, b, h),
            headOf(out, b, h),
            logSumExp + row,
            headOf(q, b, h),
            headOf(bias, biasData, b, h),
            headOf(dbias, dbias.data, b, h),
            Sight<int64_t>(shape, b),
            layoutOf(shape, h),
            HeadDrops(shape, b, h)};
  }
  void pack(KeyBlock &block, const TileColumns &columns, int64_t b, int64_t kv) const {
    block.need(columns, [&](int64_t key, int64_t keys) {
      int64_t first = block.first + key;
      packTransposed(block.kT + key * shape.headDim, headOf(k, b, kv), first, keys, shape.headDim);
      packTransposed(block.vT + key * shape.valueDim, headOf(v, b, kv), first, keys,
                     shape.valueDim);
      packRows(block.k + key * padded(shape.headDim), headOf(k, b, kv), first, keys, shape.headDim);
    });
  }
  /// The tiles of one head that compute some of a block's keys.
  void tiles(KeyBlock &block, const std::vector<TileBlocks> &blocks, int64_t b, int64_t h) const {
    HeadGradients<T, B> of = head(b, h);
    int64_t size = passSize(shape);
    for (int64_t query = 0; query < shape.sequence; query += kQueryTile) {
      const TileBlocks &range = blocks[size_t(query / kQueryTile)];
      if (block.first < range.first || block.first > range.last)
        continue;
      ScoreTile tile(of.sight, of.layout, query, block.first, block.count);
      bool begins = block.first == range.first;
      auto [pass, end] = tile.passes(size);
      if (begins && pass == end)
        ++end; // the queries see nothing
      for (int64_t i = pass; i < end; ++i) {
        tile.begin(i, size);
        pack(block, tile.columns, b, h / shape.groups);
        backwardTile(of, block, tile, shape, begins && i == pass);
      }
    }
  }
};

template <typename T, typename B> void backwardHeads(const Backward<T, B> &call) {
  const AttentionShape &shape = call.shape;
  BlockSpace<5> space(shape);
  KeyBlock block{
      {}, space.array(0), space.array(1), space.array(2), space.array(3), space.array(4)};
  int64_t blockSize = keyBlock(shape);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t kv = 0; kv < shape.heads / shape.groups; ++kv) {
      int64_t firstHead = kv * shape.groups, lastHead = firstHead + shape.groups;
      std::vector<std::vector<TileBlocks>> blocks; // of each head
      for (int64_t h = firstHead; h < lastHead; ++h) {
        computeDelta(call.head(b, h), shape);
        blocks.push_back(tileBlocks(Sight<int64_t>(shape, b), layoutOf(shape, h), blockSize));
      }
      for (int64_t key = 0; key < std::max<int64_t>(shape.keySequence, 1); key += blockSize) {
        block.begin(key, shape);
        std::fill_n(block.dk, block.count * padded(shape.headDim), 0.0f);
        std::fill_n(block.dv, block.count * padded(shape.valueDim), 0.0f);
        for (int64_t h = firstHead; h < lastHead; ++h)
          call.tiles(block, blocks[size_t(h - firstHead)], b, h);
        writeRows(headOf(call.dk, b, kv), block.dk, key, block.count, shape.headDim);
        writeRows(headOf(call.dv, b, kv), block.dv, key, block.count, shape.valueDim);
      }
      if (!kIsFloat<T>)
        for (int64_t h = firstHead; h < lastHead; ++h)
          writeRows(headOf(call.dq, b, h), call.head(b, h).dqSums, 0, shape.sequence,
                    shape.headDim);
    }
}

} // namespace

#define ATTENTION_BACKWARD(T)                                                                      \
  void attentionBackward(HeadsOf<T> dq, HeadsOf<T> dk, HeadsOf<T> dv, float *workspace,            \
                         HeadsOf<const T> dout, HeadsOf<const T> out, const float *logSumExp,      \
                         HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,               \
                         const AttentionShape &shape, ScoresOf<const T> bias, Scores dbias) {      \
    checkAttention(shape);                                                                         \
    clear(dbias, shape);                                                                           \
    withType(bias.data, [&](auto *data) {                                                          \
      backwardHeads(Backward<T, std::remove_pointer_t<decltype(data)>>{                            \
          dq, dk, dv, workspace, dout, out, logSumExp, q, k, v, shape, bias, data, dbias});        \
    });                                                                                            \
  }
FOR_STORAGE(ATTENTION_BACKWARD)
#undef ATTENTION_BACKWARD

} // namespace partita_rt
