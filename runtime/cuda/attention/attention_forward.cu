// Attention forward without a matrix of scores: tiles with a running maximum and sum per query
// (FlashAttention: Dao et al., arXiv 2205.14135). Causal, windows, biases, grouped queries; q, out
// [batch, sequence, heads, dim], k, v [batch, keySequence, heads / groups, dim] in T, in any
// layout; logSumExp [batch, heads, sequence] float.
//
//     S = scale * Q K^T + bias - base;  m' = max(m, rows of S);  P = exp(S - m')
//     l = l * exp(m - m') + sum(P);  O = O * exp(m - m') + P V;  finally O / l, m + log(l)
//
// With dropout, P V is of P without the elements that it drops (attention_drops.h), O / l is multiplied
// by its factor, and l stays the sum over all.
//
// Tiles of keys without a block that the queries' layout computes are skipped.
//
// A step of attention whose keys come in parts (kStep) has a float O and goes on from m = logSumExp, l = 1 and the
// normalized O: one launch for each run of queries and each of keys, whose numbers only the device knows.
//
// This is the portable form, without tensor cores, for float and for calls that
// attention_mma_forward.cu does not take: tiles of 32 queries by 32 keys, as floats in shared
// memory. Reads K and V once per 32 queries (usually from L2), Q and O once. Blocks with the most
// keys start first.

#include "partita_rt/cuda/kernels.h"

#include "cuda/attention/attention_mma.cuh"
#include "cuda/attention/fused_attention.h"
#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

/// The state of a query from the keys before.
template <int kParts> struct RowState {
  float largest, total, sums[kParts];

  __device__ RowState(const float *out, float logSumExp, int width, float scale)
      : largest(logSumExp), total(logSumExp == Largest::kNone ? 0.0f : 1.0f) {
    float inverse = scale == 0.0f ? 0.0f : 1.0f / scale; // the last division multiplies with it
    int lane = int(threadIdx.x) % kWarp;
#pragma unroll
    for (int c = 0; c < kParts; ++c)
      sums[c] = lane + kWarp * c < width ? out[lane + kWarp * c] * inverse : 0.0f;
  }
};

template <typename T, int kParts, bool kStep>
__global__ void __launch_bounds__(kTileThreads)
    forwardTiles(HeadsOf<ResultOf<T, kStep>> out, float *logSumExp, HeadsOf<const T> q,
                 HeadsOf<const T> k, HeadsOf<const T> v, AttentionShape shape, Bias<T> bias,
                 bool continues) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float weights[kTileRows * (kTileRows + 1)];
  auto *queries = reinterpret_cast<float *>(dynamic);
  float *keys = queries + kTileRows * pitchOf(shape.headDim); // or values
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int64_t h = blockIdx.y, b = blockIdx.z, kv = h / shape.groups;
  int64_t query = (int64_t(gridDim.x) - 1 - blockIdx.x) * kTileRows;
  HeadRows<const T> keyRows = headOf(k, b, kv), valueRows = headOf(v, b, kv);
  HeadRows<ResultOf<T, kStep>> outRows = headOf(out, b, h);
  float *logSums = logSumExp ? logSumExp + (b * shape.heads + h) * queryPitch(shape) : nullptr;
  float sums[kRowsOfWarp][kParts] = {}, largest[kRowsOfWarp], total[kRowsOfWarp] = {};
  float bases[kRowsOfWarp];
#pragma unroll
  for (float &each : largest)
    each = Largest::kNone;
  Sight<int64_t, true, kStep> sight(shape, b);
  HeadDrops drops(shape, b, h);
  HeadBlocks blocks(shape, h);
  KeyRange range(sight, query);
  auto next = [&](int64_t key) { return nextKeys(blocks, sight, query, key, range.end); };
  if constexpr (kStep)
    if (continues) {
      if (next(range.first) >= range.end && (shape.zeroHidden || !bias)) // for all of the block
        return;
#pragma unroll
      for (int i = 0; i < kRowsOfWarp; ++i)
        if (int64_t row = query + warp * kRowsOfWarp + i; row < shape.sequence) {
          RowState<kParts> state(outRows.row(row), logSums[row], int(shape.valueDim), drops.scale);
          largest[i] = state.largest;
          total[i] = state.total;
#pragma unroll
          for (int c = 0; c < kParts; ++c)
            sums[i][c] = state.sums[c];
        }
    }
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i)
    bases[i] = baseOf(bias, sight, blocks, b, h, query + warp * kRowsOfWarp + i);
  loadTile(queries, headOf(q, b, h), query, shape.sequence, shape.headDim);
  for (int64_t key = next(range.first); key < range.end; key = next(key + kTileRows)) {
    ComputedKeys computed(blocks, sight.keyNumber + key);
    __syncthreads();
    loadTile(keys, keyRows, key, shape.keySequence, shape.headDim);
    __syncthreads();
    float scores[kRowsOfWarp];
    multiplyTiles(scores, queries, keys, shape.headDim);
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i) {
      int row = warp * kRowsOfWarp + i;
      int64_t at = query + row, column = key + lane;
      bool seen = at < shape.sequence && column < sight.end(at) && column >= sight.first(at) &&
                  computed.computes(sight.queryNumber + at, lane);
      float score = Largest::kNone;
      if (seen)
        score = scores[i] * shape.scale +
                (bias ? bias.at(b, h, at, sight.keyNumber + column) : 0.0f) - bases[i];
      float before = largest[i];
      largest[i] = Largest::of(before, overWarp<Largest>(score));
      float shift = largest[i] == Largest::kNone ? 0.0f : largest[i];
      float weight = seen ? expf(score - shift) : 0.0f, correction = expf(before - shift);
      total[i] = total[i] * correction + overWarp<Sum>(weight);
#pragma unroll
      for (float &each : sums[i])
        each *= correction;
      weights[row * (kTileRows + 1) + lane] = drops(at, column) ? 0.0f : weight;
    }
    __syncthreads(); // all threads have read the keys
    loadTile(keys, valueRows, key, shape.keySequence, shape.valueDim);
    __syncthreads();
    addWeightedRows<kParts, false>(sums, weights, keys, shape.valueDim);
  }
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    int64_t row = query + warp * kRowsOfWarp + i;
    if (row >= shape.sequence)
      continue;
    // Every score is -inf, or there are none.
    bool hidden = total[i] == 0.0f, undefined = hidden && bias && !shape.zeroHidden;
    float nan = __int_as_float(0x7fc00000);
#pragma unroll
    for (int c = 0; c < kParts; ++c)
      if (lane + kWarp * c < int(shape.valueDim))
        outRows.row(row)[lane + kWarp * c] = undefined ? nan
                                             : hidden  ? 0.0f
                                                       : sums[i][c] * (drops.scale / total[i]);
    if (logSums && lane == 0)
      logSums[row] = undefined ? nan : hidden ? Largest::kNone : largest[i] + logf(total[i]);
  }
}

/// Runs the library's kernel; returns false if it has none.
template <typename T>
bool forwardFused(const Stream &stream, const HeadsOf<T> &out, float *logSumExp,
                  const HeadsOf<const T> &q, const HeadsOf<const T> &k, const HeadsOf<const T> &v,
                  const AttentionShape &shape, const ScoresOf<const T> &bias) {
  if (!stream.attention)
    return false;
  FusedCall call{};
  call.dtype = kDTypeOf<T>;
  call.shape = shape;
  call.bias = Bias<T>(bias).data.data != nullptr;
  call.q = untyped(q);
  call.k = untyped(k);
  call.v = untyped(v);
  call.out = untyped(out);
  call.logSumExp = logSumExp;
  return stream.attention->run(stream, call);
}

template <typename T, bool kStep>
void forwardInTiles(const Stream &stream, const HeadsOf<ResultOf<T, kStep>> &out, float *logSumExp,
                    const HeadsOf<const T> &q, const HeadsOf<const T> &k, const HeadsOf<const T> &v,
                    const AttentionShape &shape, const ScoresOf<const T> &bias, bool continues) {
  int64_t tiles = ceilDiv(shape.sequence, kTileRows);
  withHeadParts(shape, [&](auto parts) {
    if (tiles * shape.heads * shape.batch == 0)
      return;
    int pitches = pitchOf(shape.headDim) + pitchOf(most(shape.headDim, shape.valueDim));
    PARTITA_RT_LAUNCH((forwardTiles<T, parts(), kStep>),
                      attentionGrid(tiles, shape.heads, shape.batch), kTileThreads,
                      kTileRows * pitches * 4, stream, out, logSumExp, q, k, v, shape,
                      Bias<T>(bias), continues);
  });
}

template <typename T>
void forward(const Stream &stream, const HeadsOf<T> &out, float *logSumExp,
             const HeadsOf<const T> &q, const HeadsOf<const T> &k, const HeadsOf<const T> &v,
             const AttentionShape &shape, const ScoresOf<const T> &bias) {
  if (forwardFused(stream, out, logSumExp, q, k, v, shape, bias))
    return;
  if constexpr (sizeof(T) == 2)
    if (onTensorCores<T>(shape)) {
      if (bias.data || !attentionForwardWgmma(stream, out, logSumExp, q, k, v, shape))
        attentionForwardMma(stream, out, logSumExp, q, k, v, shape, bias);
      return;
    }
  forwardInTiles<T, false>(stream, out, logSumExp, q, k, v, shape, bias, /*continues=*/false);
}

template <typename T>
void forwardStep(const Stream &stream, const Heads &out, float *logSumExp,
                 const HeadsOf<const T> &q, const HeadsOf<const T> &k, const HeadsOf<const T> &v,
                 const AttentionShape &shape, const ScoresOf<const T> &bias, bool continues) {
  forRuns(shape, [&](AttentionShape pair, int64_t query, int64_t key) {
    pair.zeroHidden = shape.zeroHidden || key + pair.keySequence < shape.keySequence;
    if constexpr (sizeof(T) == 2)
      if (onTensorCores<T>(pair))
        return attentionStepMma(stream, fromRow(out, query), logSumExp + query, fromRow(q, query),
                                fromRow(k, key), fromRow(v, key), pair, fromRow(bias, query),
                                continues || key > 0);
    forwardInTiles<T, true>(stream, fromRow(out, query), logSumExp + query, fromRow(q, query),
                            fromRow(k, key), fromRow(v, key), pair, fromRow(bias, query),
                            continues || key > 0);
  });
}

} // namespace

#define ATTENTION_FORWARD(T)                                                                       \
  void attentionForward(const Stream &stream, HeadsOf<T> out, float *logSumExp,                    \
                        HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,                \
                        const AttentionShape &shape, ScoresOf<const T> bias) {                     \
    forward<T>(stream, out, logSumExp, q, k, v, shape, bias);                                      \
  }                                                                                                \
  void attentionStep(const Stream &stream, HeadsOf<float> out, float *logSumExp,                   \
                     HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,                   \
                     const AttentionShape &shape, ScoresOf<const T> bias, bool continues) {        \
    forwardStep<T>(stream, out, logSumExp, q, k, v, shape, bias, continues);                       \
  }
FOR_STORAGE(ATTENTION_FORWARD)
#undef ATTENTION_FORWARD

} // namespace partita_rt::cuda
