// Attention backward, recomputing the probabilities tile by tile from logSumExp:
//
//     delta = sum_d dO * O                       per query
//     P  = exp(scale * Q K^T + bias - base - logSumExp)
//     dP = dO V^T
//     dS = P * (dP - delta),  dbias += dS
//     dV += P^T dO,  dK += scale * dS^T Q,  dQ += scale * dS K
//
// With dropout, dV is of P with the forward pass's elements dropped and the others multiplied, and dP
// is treated like this P; delta remains the sum over dO * O.
//
// Loops over blocks of keys, heads that share them and query tiles, each in ascending order, so
// every sum has one order. A 16-bit dQ is summed in float in the workspace, and rounded after the
// last block. A step of attention whose keys come in parts has float gradients, and may add to them.

#include "cpu/kernels/attention.h"
#include "cpu/kernels/rows.h"

namespace partita_rt {

namespace {

/// G: the gradients' type, float or T.
template <typename T, typename B, typename G> struct HeadGradients {
  HeadRows<G> dq;
  float *dqSums; ///< [sequence, padded(headDim)], for a 16-bit dq
  float *delta;
  HeadRows<const T> dout, out;
  const float *logSumExp;
  HeadRows<const T> q;
  HeadScores<B> bias;
  HeadScores<float> dbias;
  const float *bases; ///< of each query; null without a bias
  RunSight sight;
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

template <typename T>
void computeDelta(float *delta, const HeadRows<const T> &dout, const HeadRows<const T> &out,
                  const AttentionShape &shape) {
  for (int64_t i = 0; i < shape.sequence; ++i) {
    Lanes sum{};
    forLanes(shape.valueDim, [&](int64_t d, int64_t n) {
      sum += loadUpTo(dout.row(i) + d, n) * loadUpTo(out.row(i) + d, n);
    });
    delta[i] = sumLanes(sum);
  }
}

template <typename T>
void computeDeltas(float *delta, const HeadsOf<const T> &dout, const HeadsOf<const T> &out,
                   const AttentionShape &shape) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      computeDelta(delta + (b * shape.heads + h) * shape.sequence, headOf(dout, b, h),
                   headOf(out, b, h), shape);
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
template <typename Head>
void differentiateTile(float *p, float *ds, const Head &head, const ScoreTile &tile,
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
      maskRow(pRow, scaleOfScores, head.bias.row(query).from(tile.key),
              head.bases ? head.bases[query] : 0.0f, tile.columns, i,
              std::min(tile.hidden(i), seen), seen);
    alignas(64) float factors[kKeyBlock]; // of dropout
    if (head.drops)
      head.drops.forKeys(query, tile.key, tile.columns, seen, [&](int64_t j, bool dropped) {
        factors[j] = dropped ? 0.0f : head.drops.scale();
      });
    Lanes scale = splat(plain ? scaleOfScores : 1.0f), delta = splat(head.delta[query]);
    for (int64_t j = 0; j < seen; j += kLanes) {
      Lanes probability = expLanes(load(pRow + j) * scale - splat(shift));
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
      int64_t vector = (gathered + j) / kPad, last = (gathered + j + count - 1) / kPad;
      auto [first, end] = tile.columns.queriesThatCompute(std::clamp<int64_t>(skip, 0, queries),
                                                          queries, vector, last - vector + 1);
      if (first < end)
        microRows(count, {weights + first * kKeyBlock + gathered + j, 1, kKeyBlock},
                  rows + first * pitch, pitch, sums + (key + j) * pitch, pitch, pitch, end - first,
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

/// `fresh`: there are no sums of dq yet.
template <typename T, typename B, typename G>
void backwardTile(const HeadGradients<T, B, G> &head, KeyBlock &block, const ScoreTile &tile,
                  const AttentionShape &shape, bool fresh) {
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
  float *dq = kIsFloat<G> ? rows : head.dqSums + query * pitch;
  if (fresh)
    std::fill(dq, dq + queries * pitch, 0.0f);
  else if (kIsFloat<G>)
    packRows(rows, head.dq, query, queries, shape.headDim);
  if (some)
    weightTile(dq, tile, ds, block.k, shape.headDim, true);
  if (kIsFloat<G>)
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

/// What is known of a head's queries: the blocks that each tile computes, and the bases (basesOf).
struct HeadTiles {
  std::vector<TileBlocks> blocks;
  std::vector<float> bases;
};

/// The operands of one call.
template <typename T, typename B, typename G> struct Backward {
  HeadsOf<G> dq, dk, dv;
  float *workspace;
  HeadsOf<const T> dout, out;
  const float *logSumExp;
  HeadsOf<const T> q, k, v;
  const AttentionShape &shape;
  ScoresOf<const T> bias;
  B *biasData;
  Scores dbias;
  bool addToQueries = false, addToKeys = false; ///< to dq; to dk and dv

  /// Without the bases.
  HeadGradients<T, B, G> head(int64_t b, int64_t h) const {
    int64_t row = (b * shape.heads + h) * queryPitch(shape), key = firstNumber(shape.keys);
    float *sums = workspace + shape.batch * shape.heads * shape.sequence;
    return {headOf(dq, b, h),
            kIsFloat<G> ? nullptr
                        : sums + h % shape.groups * shape.sequence * padded(shape.headDim),
            workspace + row,
            headOf(dout, b, h),
            headOf(out, b, h),
            logSumExp + row,
            headOf(q, b, h),
            headOf(bias, biasData, b, h, key),
            headOf(dbias, dbias.data, b, h, key),
            nullptr,
            RunSight(shape, b),
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
  void tiles(KeyBlock &block, const HeadTiles &own, int64_t b, int64_t h) const {
    HeadGradients<T, B, G> of = head(b, h);
    of.bases = own.bases.empty() ? nullptr : own.bases.data();
    int64_t size = passSize(shape);
    for (int64_t query = 0; query < shape.sequence; query += kQueryTile) {
      const TileBlocks &range = own.blocks[size_t(query / kQueryTile)];
      if (block.first < range.first || block.first > range.last)
        continue;
      ScoreTile tile(of.sight, of.layout, query, block.first, block.count);
      bool begins = block.first == range.first;
      auto [pass, end] = tile.passes(size);
      if (begins && pass == end && !addToQueries)
        ++end; // the queries see nothing
      for (int64_t i = pass; i < end; ++i) {
        tile.begin(i, size);
        pack(block, tile.columns, b, h / shape.groups);
        backwardTile(of, block, tile, shape, begins && i == pass && !addToQueries);
      }
    }
  }
};

/// Sets a block's sums of a gradient to zeros, or to what its rows hold.
template <typename G>
void beginSums(float *sums, const HeadRows<G> &rows, const KeyBlock &block, int64_t width,
               bool adds) {
  if (adds)
    packRows(sums, rows, block.first, block.count, width);
  else
    std::fill_n(sums, block.count * padded(width), 0.0f);
}

/// delta of each query is already in the workspace.
template <typename T, typename B, typename G> void backwardHeads(const Backward<T, B, G> &call) {
  const AttentionShape &shape = call.shape;
  BlockSpace<5> space(shape);
  KeyBlock block{
      {}, space.array(0), space.array(1), space.array(2), space.array(3), space.array(4)};
  int64_t blockSize = keyBlock(shape);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t kv = 0; kv < shape.heads / shape.groups; ++kv) {
      int64_t firstHead = kv * shape.groups, lastHead = firstHead + shape.groups;
      std::vector<HeadTiles> tiles; // of each head
      for (int64_t h = firstHead; h < lastHead; ++h) {
        HeadGradients<T, B, G> head = call.head(b, h);
        tiles.push_back({tileBlocks(head.sight, head.layout, blockSize),
                         basesOf(head.bias, head.sight, head.layout)});
      }
      for (int64_t key = 0; key < std::max<int64_t>(shape.keySequence, 1); key += blockSize) {
        block.begin(key, shape);
        beginSums(block.dk, headOf(call.dk, b, kv), block, shape.headDim, call.addToKeys);
        beginSums(block.dv, headOf(call.dv, b, kv), block, shape.valueDim, call.addToKeys);
        for (int64_t h = firstHead; h < lastHead; ++h) {
          betweenTiles(shape);
          call.tiles(block, tiles[size_t(h - firstHead)], b, h);
        }
        writeRows(headOf(call.dk, b, kv), block.dk, key, block.count, shape.headDim);
        writeRows(headOf(call.dv, b, kv), block.dv, key, block.count, shape.valueDim);
      }
      if (!kIsFloat<G>)
        for (int64_t h = firstHead; h < lastHead; ++h)
          writeRows(headOf(call.dq, b, h), call.head(b, h).dqSums, 0, shape.sequence,
                    shape.headDim);
    }
}

/// y[heads, width] = the sums of rows of all sequences, columnSum's where all rows are equally far apart.
template <typename Y, typename T>
void sumRows(Y *y, const HeadsOf<T> &x, int64_t batch, int64_t rows, int64_t heads, int64_t width) {
  const T *data = x.data;
  bool even = batch <= 1 || x.batchStride == rows * x.rowStride;
  if (even && x.headStride == width)
    return columnSum(y, data, batch * rows, heads * width, x.rowStride);
  alignas(64) float sums[kLargestHead];
  for (int64_t h = 0; h < heads; ++h) {
    const T *head = data + h * x.headStride;
    if (even)
      columnSum(sums, head, batch * rows, width, x.rowStride);
    for (int64_t b = 0; b < (even ? 0 : batch); ++b)
      columnSum(sums, head + b * x.batchStride, rows, width, x.rowStride,
                b == 0 ? Write::Set : Write::Add);
    convertArray(y + h * width, sums, width);
  }
}

template <typename T>
void writeRowSums(const FloatOr<T> &y, const HeadsOf<T> &x, int64_t batch, int64_t rows,
                  int64_t heads, int64_t width) {
  if (y)
    withType(y, [&](auto *to) { sumRows(to, x, batch, rows, heads, width); });
}

template <typename T>
void sumRows(const RowSumsOf<T> &sums, const AttentionShape &shape, const HeadsOf<T> &dq,
             const HeadsOf<T> &dk, const HeadsOf<T> &dv) {
  int64_t keyHeads = shape.heads / shape.groups;
  writeRowSums<T>(sums.dq, dq, shape.batch, shape.sequence, shape.heads, shape.headDim);
  writeRowSums<T>(sums.dk, dk, shape.batch, shape.keySequence, keyHeads, shape.headDim);
  writeRowSums<T>(sums.dv, dv, shape.batch, shape.keySequence, keyHeads, shape.valueDim);
}

} // namespace

#define ATTENTION_BACKWARD(T)                                                                      \
  void attentionBackward(HeadsOf<T> dq, HeadsOf<T> dk, HeadsOf<T> dv, float *workspace,            \
                         HeadsOf<const T> dout, HeadsOf<const T> out, const float *logSumExp,      \
                         HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,               \
                         const AttentionShape &shape, ScoresOf<const T> bias, Scores dbias,        \
                         RowSumsOf<T> sums) {                                                      \
    checkAttention(shape);                                                                         \
    clear(dbias, shape);                                                                           \
    computeDeltas(workspace, dout, out, shape);                                                    \
    withType(bias.data, [&](auto *data) {                                                          \
      backwardHeads(Backward<T, std::remove_pointer_t<decltype(data)>, T>{                         \
          dq, dk, dv, workspace, dout, out, logSumExp, q, k, v, shape, bias, data, dbias});        \
    });                                                                                            \
    sumRows(sums, shape, dq, dk, dv);                                                              \
  }
FOR_STORAGE(ATTENTION_BACKWARD)
#undef ATTENTION_BACKWARD

//===-- Steps -------------------------------------------------------------------------------===//

namespace {

/// Zeroes rows of [batch, rows, heads, width].
void clear(const Heads &gradient, int64_t batch, int64_t heads, int64_t rows, int64_t width) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        fill(headOf(gradient, b, h).row(i), 0.0f, width);
}

/// The operands of a step, whose gradients are float.
template <typename T> struct BackwardStep {
  Heads dq, dk, dv;
  float *workspace;
  HeadsOf<const T> dout, out;
  const float *logSumExp;
  HeadsOf<const T> q, k, v;
  ScoresOf<const T> bias;
  Scores dbias;

  void run(const AttentionShape &pair, int64_t query, int64_t key, bool addToQueries,
           bool addToKeys) const {
    ScoresOf<const T> scores = fromRow(bias, query);
    withType(scores.data, [&](auto *data) {
      using B = std::remove_pointer_t<decltype(data)>;
      backwardHeads(Backward<T, B, float>{fromRow(dq, query), fromRow(dk, key), fromRow(dv, key),
                                          workspace + query, fromRow(dout, query),
                                          fromRow(out, query), logSumExp + query, fromRow(q, query),
                                          fromRow(k, key), fromRow(v, key), pair, scores, data,
                                          fromRow(dbias, query), addToQueries, addToKeys});
    });
  }
};

template <typename T>
void backwardStep(const BackwardStep<T> &step, const AttentionShape &shape, bool continues) {
  checkAttention(shape);
  checkRuns(shape);
  bool hasDelta = false;
  forRuns(shape, [&](const AttentionShape &pair, int64_t query, int64_t key) {
    bool queries = continues || key > 0, keys = query > 0;
    if (!hidesAll(pair)) {
      if (!hasDelta)
        computeDeltas(step.workspace, step.dout, step.out, shape);
      hasDelta = true;
      return step.run(pair, query, key, queries, keys);
    }
    if (!queries)
      clear(fromRow(step.dq, query), pair.batch, pair.heads, pair.sequence, pair.headDim);
    if (!keys) {
      int64_t heads = pair.heads / pair.groups;
      clear(fromRow(step.dk, key), pair.batch, heads, pair.keySequence, pair.headDim);
      clear(fromRow(step.dv, key), pair.batch, heads, pair.keySequence, pair.valueDim);
    }
  });
}

} // namespace

#define ATTENTION_STEP_BACKWARD(T)                                                                 \
  void attentionStepBackward(HeadsOf<float> dq, HeadsOf<float> dk, HeadsOf<float> dv,              \
                             float *workspace, HeadsOf<const T> dout, HeadsOf<const T> out,        \
                             const float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,       \
                             HeadsOf<const T> v, const AttentionShape &shape,                      \
                             ScoresOf<const T> bias, Scores dbias, bool continues) {               \
    backwardStep<T>({dq, dk, dv, workspace, dout, out, logSumExp, q, k, v, bias, dbias}, shape,    \
                    continues);                                                                    \
  }
FOR_STORAGE(ATTENTION_STEP_BACKWARD)
#undef ATTENTION_STEP_BACKWARD

} // namespace partita_rt
