// Attention forward, in tiles with a running maximum and sum per query (the "online softmax" of
// flash attention). For a tile of queries and every tile of keys that some of them see:
//
//     S = Q K^T                           BLAS
//     m' = max(m, scale * max(S)),  P = exp(scale * S - m'),  l = l * exp(m - m') + sum(P)
//     O = O * exp(m - m') + P V           BLAS
//
// and at the end O / l, logSumExp = m + log(l). The first tile needs no rescaling, so short
// sequences (up to one key tile) take the direct way.

#include "cpu/attention.h"
#include "cpu/rows.h"

#include <cmath>

namespace partita_rt {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct RunningSoftmax {
  float largest[kQueryTile];
  float sum[kQueryTile];
};

/// Turns one tile of scores into probabilities relative to the running maximum, and rescales what
/// has been accumulated. Columns that a query does not see become 0.
void softmaxTile(float *tile, RunningSoftmax &state, float *out, int64_t outStride,
                 const AttentionShape &shape, int64_t query, int64_t queries, int64_t key,
                 int64_t keys) {
  for (int64_t i = 0; i < queries; ++i) {
    float *row = tile + i * kKeyTile;
    int64_t seen = std::clamp<int64_t>(visibleKeys(shape, query + i) - key, 0, keys);
    if (seen < keys)
      fill(row + seen, 0.0f, keys - seen);
    if (seen == 0)
      continue;
    float before = state.largest[i];
    float largest = std::max(before, shape.scale * (shape.scale >= 0 ? rowMax(row, seen) : 0.0f));
    if (shape.scale < 0) // the maximum of scale * S is at the minimum of S
      for (int64_t j = 0; j < seen; ++j)
        largest = std::max(largest, shape.scale * row[j]);
    float correction = before == kNone ? 0.0f : std::exp(before - largest);
    // A row of -inf scores alone: keep exp(-inf - 0) = 0 instead of NaN.
    float shift = largest == kNone ? 0.0f : largest;
    float sum = rowExp(row, row, shape.scale, shift, seen);
    state.sum[i] = state.sum[i] * correction + sum;
    state.largest[i] = largest;
    if (key > 0 && correction != 1.0f)
      rowScale(out + i * outStride, correction, shape.valueDim);
  }
}

void queryTile(float *out, int64_t outStride, float *logSumExp, const float *q, int64_t qStride,
               const float *k, int64_t kStride, const float *v, int64_t vStride,
               const AttentionShape &shape, int64_t query) {
  alignas(64) float tile[kQueryTile * kKeyTile];
  RunningSoftmax state;
  int64_t queries = std::min(kQueryTile, shape.sequence - query);
  std::fill(state.largest, state.largest + queries, kNone);
  std::fill(state.sum, state.sum + queries, 0.0f);

  int64_t end = visibleKeys(shape, query + queries - 1);
  for (int64_t key = 0; key < end; key += kKeyTile) {
    int64_t keys = std::min(kKeyTile, end - key);
    gemm(Trans::No, Trans::Yes, queries, keys, shape.headDim, 1.0f, q + query * qStride, qStride,
         k + key * kStride, kStride, 0.0f, tile, kKeyTile);
    softmaxTile(tile, state, out, outStride, shape, query, queries, key, keys);
    gemm(Trans::No, Trans::No, queries, shape.valueDim, keys, 1.0f, tile, kKeyTile,
         v + key * vStride, vStride, key == 0 ? 0.0f : 1.0f, out, outStride);
  }
  for (int64_t i = 0; i < queries; ++i) {
    if (end == 0 || state.sum[i] == 0.0f)
      fill(out + i * outStride, 0.0f, shape.valueDim);
    else
      rowScale(out + i * outStride, 1.0f / state.sum[i], shape.valueDim);
    if (logSumExp)
      logSumExp[query + i] =
          state.sum[i] == 0.0f ? kNone : state.largest[i] + std::log(state.sum[i]);
  }
}

} // namespace

void attentionForward(Heads out, float *logSumExp, ConstHeads q, ConstHeads k, ConstHeads v,
                      const AttentionShape &shape) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t query = 0; query < shape.sequence; query += kQueryTile)
        queryTile(headOf(out, b, h) + query * out.rowStride, out.rowStride,
                  logSumExp ? logSumExp + (b * shape.heads + h) * shape.sequence : nullptr,
                  headOf(q, b, h), q.rowStride, headOf(k, b, h / shape.groups), k.rowStride,
                  headOf(v, b, h / shape.groups), v.rowStride, shape, query);
}

} // namespace partita_rt
