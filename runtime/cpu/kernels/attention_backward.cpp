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
  HeadDrops drops;
};

/// A block of keys and values, packed as the matmuls need them, and their gradients.
struct KeyBlock {
  int64_t first, count;
  alignas(64) float kT[kBlockElements]; ///< [headDim, keys]
  alignas(64) float vT[kBlockElements]; ///< [valueDim, keys]
  alignas(64) float k[kBlockElements];  ///< [keys, headDim]
  alignas(64) float dk[kBlockElements];
  alignas(64) float dv[kBlockElements];
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
  int64_t count = 0;
  for (int64_t j = head.sight.first(query); j < head.sight.end(query); ++j)
    count += bias.data[j * bias.stride] >= shift;
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

/// Turns scores into P, its elements dropped, and dP into dS * scale, both 0 if a query does not see
/// the key.
template <typename T, typename B>
void differentiateTile(float *p, float *ds, const HeadGradients<T, B> &head, float scaleOfScores,
                       int64_t query, int64_t queries, int64_t key, int64_t keys) {
  bool plain = !head.bias.data && !head.sight.hidesBefore();
  for (int64_t i = 0; i < queries; ++i) {
    float *pRow = p + i * kKeyBlock, *dsRow = ds + i * kKeyBlock;
    int64_t seen = std::clamp<int64_t>(head.sight.end(query + i) - key, 0, keys);
    float shift = head.logSumExp[query + i];
    if (shift == -std::numeric_limits<float>::infinity())
      seen = 0; // the query saw only masked keys: its output is constant
    if (!plain && seen > 0)
      maskRow(pRow, scaleOfScores, head.bias.row(query + i).from(key),
              head.sight.first(query + i) - key, seen);
    alignas(64) float factors[kKeyBlock]; // of dropout
    if (head.drops)
      head.drops.forKeys(query + i, key, seen, [&](int64_t j, bool dropped) {
        factors[j] = dropped ? 0.0f : head.drops.scale();
      });
    Lanes scale = splat(plain ? scaleOfScores : 1.0f), delta = splat(head.delta[query + i]),
          share = splat(shareOf(head, query + i));
    for (int64_t j = 0; j < seen; j += kLanes) {
      Lanes probability = expLanes(load(pRow + j) * scale - splat(shift)) * share;
      probability = firstLanes(probability, seen - j, 0.0f);
      Lanes factor = head.drops ? firstLanes(load(factors + j), seen - j, 0.0f) : splat(1.0f);
      Lanes dScore = probability * (load(dsRow + j) * factor - delta);
      store(pRow + j, probability * factor);
      store(dsRow + j, firstLanes(dScore, seen - j, 0.0f)); // 0 * inf of an unset lane is NaN
    }
    if (head.dbias.data && seen > 0)
      addToBias(head.dbias.row(query + i).from(key), dsRow, seen);
    for (int64_t j = 0; j < seen; j += kLanes)
      store(dsRow + j, load(dsRow + j) * splat(scaleOfScores));
    clearBehind(pRow, seen, keys);
    clearBehind(dsRow, seen, keys);
  }
}

/// sums[keys, padded(width)] += tile^T[keys, queries] * rows[queries, padded(width)].
void addTransposed(float *sums, const float *tile, const float *rows, const Sight<int64_t> &sight,
                   int64_t query, int64_t queries, int64_t key, int64_t keys, int64_t width) {
  int64_t pitch = padded(width);
  for (int64_t j = 0; j < keys; j += kTileRows) {
    int64_t count = std::min<int64_t>(kTileRows, keys - j);
    int64_t skip = std::clamp<int64_t>(sight.firstQuery(key + j) - query, 0, queries);
    microRows(count, {tile + skip * kKeyBlock + j, 1, kKeyBlock}, rows + skip * pitch, pitch,
              sums + j * pitch, pitch, pitch, queries - skip, true);
  }
}

/// Copies rows of packed sums to a head.
template <typename T>
void writeRows(const HeadRows<T> &out, const float *rows, int64_t first, int64_t count,
               int64_t width) {
  for (int64_t j = 0; j < count; ++j)
    convertArray(out.row(first + j), rows + j * padded(width), width);
}

template <typename T, typename B>
void backwardTile(const HeadGradients<T, B> &head, KeyBlock &block, const AttentionShape &shape,
                  int64_t query, bool begins) {
  alignas(64) float p[kQueryTile * kKeyBlock];
  alignas(64) float ds[kQueryTile * kKeyBlock];
  alignas(64) float rows[kQueryTile * kLargestHead];
  int64_t queries = std::min(kQueryTile, shape.sequence - query), key = block.first;
  int64_t keys = std::min(block.count, head.sight.end(query + queries - 1) - key);
  int64_t pitch = padded(shape.headDim);

  if (keys > 0) {
    scoreTile(p, tileRows(head.q, query, queries, shape.headDim, rows), query, queries, block.kT,
              key, block.count, shape.headDim, head.sight);
    scoreTile(ds, tileRows(head.dout, query, queries, shape.valueDim, rows), query, queries,
              block.vT, key, block.count, shape.valueDim, head.sight);
    differentiateTile(p, ds, head, shape.scale, query, queries, key, block.count);
    if (kIsFloat<T>) // else the rows already hold dout
      packRows(rows, head.dout, query, queries, shape.valueDim);
    addTransposed(block.dv, p, rows, head.sight, query, queries, key, keys, shape.valueDim);
    packRows(rows, head.q, query, queries, shape.headDim);
    addTransposed(block.dk, ds, rows, head.sight, query, queries, key, keys, shape.headDim);
  }
  float *dq = kIsFloat<T> ? rows : head.dqSums + query * pitch;
  if (begins)
    std::fill(dq, dq + queries * pitch, 0.0f);
  else if (kIsFloat<T>)
    packRows(rows, head.dq, query, queries, shape.headDim);
  if (keys > 0)
    weightTile(dq, ds, query, queries, block.k, key, block.count, shape.headDim, head.sight, true);
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
            HeadDrops(shape, b, h)};
  }
};

template <typename T, typename B> void backwardHeads(const Backward<T, B> &call) {
  const AttentionShape &shape = call.shape;
  KeyBlock block;
  int64_t blockSize = keyBlock(shape);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t kv = 0; kv < shape.heads / shape.groups; ++kv) {
      int64_t firstHead = kv * shape.groups, lastHead = firstHead + shape.groups;
      for (int64_t h = firstHead; h < lastHead; ++h)
        computeDelta(call.head(b, h), shape);
      for (int64_t key = 0; key < std::max<int64_t>(shape.keySequence, 1); key += blockSize) {
        block.first = key;
        block.count = std::min(blockSize, shape.keySequence - key);
        packTransposed(block.kT, headOf(call.k, b, kv), key, block.count, shape.headDim);
        packTransposed(block.vT, headOf(call.v, b, kv), key, block.count, shape.valueDim);
        packRows(block.k, headOf(call.k, b, kv), key, block.count, shape.headDim);
        std::fill(block.dk, block.dk + block.count * padded(shape.headDim), 0.0f);
        std::fill(block.dv, block.dv + block.count * padded(shape.valueDim), 0.0f);
        for (int64_t h = firstHead; h < lastHead; ++h)
          for (int64_t query = 0; query < shape.sequence; query += kQueryTile) {
            TileOfBlock tile(Sight<int64_t>(shape, b), query, key, block.count);
            if (tile.begins || tile.meets)
              backwardTile(call.head(b, h), block, shape, query, tile.begins);
          }
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
