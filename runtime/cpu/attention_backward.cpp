// Attention backward, recomputing the probabilities tile by tile from logSumExp:
//
//     delta = sum_d dO * O                       per query
//     P  = exp(scale * Q K^T - logSumExp)        BLAS + exp
//     dP = dO V^T                                BLAS
//     dS = P * (dP - delta) * scale
//     dV += P^T dO,  dK += dS^T Q,  dQ += dS K   BLAS
//
// Query tiles ascend, key tiles within them: every sum has one order.

#include "cpu/attention.h"
#include "cpu/rows.h"

namespace partita_rt {

namespace {

template <typename T> struct Head {
  T *data;
  int64_t stride;
  T *row(int64_t i) const { return data + i * stride; }
};

struct HeadGradients {
  Head<float> dq, dk, dv;
  float *delta;
  Head<const float> dout, out;
  const float *logSumExp;
  Head<const float> q, k, v;
};

void computeDelta(const HeadGradients &head, const AttentionShape &shape) {
  for (int64_t i = 0; i < shape.sequence; ++i) {
    Lanes sum{};
    forLanes(shape.valueDim, [&](int64_t d, int64_t n) {
      sum += loadUpTo(head.dout.row(i) + d, n) * loadUpTo(head.out.row(i) + d, n);
    });
    head.delta[i] = sumLanes(sum);
  }
}

/// scores -> P, dP -> dS, both 0 where a query does not see the key.
void differentiateTile(float *p, float *ds, const HeadGradients &head, const AttentionShape &shape,
                       int64_t query, int64_t queries, int64_t key, int64_t keys) {
  for (int64_t i = 0; i < queries; ++i) {
    float *pRow = p + i * kKeyTile, *dsRow = ds + i * kKeyTile;
    int64_t seen = std::clamp<int64_t>(visibleKeys(shape, query + i) - key, 0, keys);
    float shift = head.logSumExp[query + i];
    if (shift == -std::numeric_limits<float>::infinity())
      seen = 0; // the query saw nothing but masked keys: its output is constant
    Lanes scale = splat(shape.scale), delta = splat(head.delta[query + i]);
    forLanes(seen, [&](int64_t j, int64_t n) {
      Lanes probability = expLanes(loadUpTo(pRow + j, n) * scale - splat(shift));
      storeUpTo(pRow + j, probability, n);
      storeUpTo(dsRow + j, probability * (loadUpTo(dsRow + j, n) - delta) * scale, n);
    });
    fill(pRow + seen, 0.0f, keys - seen);
    fill(dsRow + seen, 0.0f, keys - seen);
  }
}

void queryTileBackward(const HeadGradients &head, const AttentionShape &shape, int64_t query) {
  alignas(64) float p[kQueryTile * kKeyTile];
  alignas(64) float ds[kQueryTile * kKeyTile];
  int64_t queries = std::min(kQueryTile, shape.sequence - query);
  int64_t end = visibleKeys(shape, query + queries - 1);
  if (end == 0)
    for (int64_t i = 0; i < queries; ++i)
      fill(head.dq.row(query + i), 0.0f, shape.headDim);
  for (int64_t key = 0; key < end; key += kKeyTile) {
    int64_t keys = std::min(kKeyTile, end - key);
    gemm(Trans::No, Trans::Yes, queries, keys, shape.headDim, 1.0f, head.q.row(query),
         head.q.stride, head.k.row(key), head.k.stride, 0.0f, p, kKeyTile);
    gemm(Trans::No, Trans::Yes, queries, keys, shape.valueDim, 1.0f, head.dout.row(query),
         head.dout.stride, head.v.row(key), head.v.stride, 0.0f, ds, kKeyTile);
    differentiateTile(p, ds, head, shape, query, queries, key, keys);
    gemm(Trans::Yes, Trans::No, keys, shape.valueDim, queries, 1.0f, p, kKeyTile,
         head.dout.row(query), head.dout.stride, 1.0f, head.dv.row(key), head.dv.stride);
    gemm(Trans::Yes, Trans::No, keys, shape.headDim, queries, 1.0f, ds, kKeyTile, head.q.row(query),
         head.q.stride, 1.0f, head.dk.row(key), head.dk.stride);
    gemm(Trans::No, Trans::No, queries, shape.headDim, keys, 1.0f, ds, kKeyTile, head.k.row(key),
         head.k.stride, key == 0 ? 0.0f : 1.0f, head.dq.row(query), head.dq.stride);
  }
}

} // namespace

void attentionBackward(Heads dq, Heads dk, Heads dv, float *delta, ConstHeads dout, ConstHeads out,
                       const float *logSumExp, ConstHeads q, ConstHeads k, ConstHeads v,
                       const AttentionShape &shape) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      int64_t kv = h / shape.groups, rows = (b * shape.heads + h) * shape.sequence;
      HeadGradients head{{headOf(dq, b, h), dq.rowStride},
                         {headOf(dk, b, kv), dk.rowStride},
                         {headOf(dv, b, kv), dv.rowStride},
                         delta + rows,
                         {headOf(dout, b, h), dout.rowStride},
                         {headOf(out, b, h), out.rowStride},
                         logSumExp + rows,
                         {headOf(q, b, h), q.rowStride},
                         {headOf(k, b, kv), k.rowStride},
                         {headOf(v, b, kv), v.rowStride}};
      if (h % shape.groups == 0) // the first query head of a group starts the sums
        for (int64_t j = 0; j < shape.keySequence; ++j) {
          fill(head.dk.row(j), 0.0f, shape.headDim);
          fill(head.dv.row(j), 0.0f, shape.valueDim);
        }
      computeDelta(head, shape);
      for (int64_t query = 0; query < shape.sequence; query += kQueryTile)
        queryTileBackward(head, shape, query);
    }
}

} // namespace partita_rt
