// Attention backward (FlashAttention: Dao et al., arXiv 2205.14135), recomputing probabilities tile
// by tile from logSumExp:
//
//     delta = sum_d dO O per query;  P = exp(scale * Q K^T + bias - base - logSumExp);  dP = dO V^T
//     dS = P (dP - delta);  dbias = dS;  dV = P^T dO;  dK = scale dS^T Q;  dQ = scale dS K
//
// With dropout, dV is of P with the forward pass's elements dropped and the others multiplied, and dP
// is treated like this P; delta remains the sum of dO O.
//
// No atomic additions: one launch splits the keys over blocks and computes dK and dV over all
// queries of all heads that share them; one splits the queries and computes dQ; and one, if
// requested, splits the elements of dbias and loops over all that repeat them. Every sum stays in
// registers and has one order; scores are computed twice (three times with dbias). Shapes as in
// attention_forward.cu. workspace: delta and the base of every query; joint passes have more (workspaces.h).

#include "partita_rt/cuda/kernels.h"

#include "cuda/attention/attention_mma.cuh"
#include "cuda/attention/attention_sums.cuh"
#include "cuda/attention/fused_attention.h"
#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

/// The operands of one call. kStep: some of the keys of the full sequence, gradients in float.
template <typename T, bool kStep> struct Backward {
  HeadsOf<std::conditional_t<kStep, float, T>> dq, dk, dv;
  float *delta, *base; ///< [batch, heads, sequence]
  HeadsOf<const T> dout, out;
  const float *logSumExp;
  HeadsOf<const T> q, k, v;
  AttentionShape shape;
  Bias<T> bias;
  bool addToQueries = false, addToKeys = false; ///< to dq; to dk and dv

  using Sees = Sight<int64_t, true, kStep>;
  __device__ int64_t rowOf(int64_t b, int64_t h, int64_t query) const {
    return (b * shape.heads + h) * queryPitch(shape) + query;
  }
};

/// Computes delta and base. One warp per query.
template <typename T, bool kStep>
__global__ void __launch_bounds__(kTileThreads) prepareRows(Backward<T, kStep> call) {
  const AttentionShape &shape = call.shape;
  int lane = int(threadIdx.x) % kWarp;
  int64_t h = blockIdx.y, b = blockIdx.z;
  int64_t query = int64_t(blockIdx.x) * kTileWarps + threadIdx.x / kWarp;
  if (query >= shape.sequence)
    return;
  const T *dout = headOf(call.dout, b, h).row(query), *out = headOf(call.out, b, h).row(query);
  float sum = 0.0f;
  for (int64_t d = lane; d < shape.valueDim; d += kWarp)
    sum += float(dout[d]) * float(out[d]);
  sum = overWarp<Sum>(sum);
  typename Backward<T, kStep>::Sees sight(shape, b);
  float base = baseOf(call.bias, sight, HeadBlocks(shape, h), b, h, query);
  if (lane == 0) {
    call.delta[call.rowOf(b, h, query)] = sum;
    call.base[call.rowOf(b, h, query)] = base;
  }
}

/// Computes P, its elements dropped, and dS of the warp's queries and the key of its lane, 0 if a
/// query does not see the key.
template <typename T, bool kStep>
__device__ void differentiate(float (&p)[kRowsOfWarp], float (&ds)[kRowsOfWarp],
                              const Backward<T, kStep> &call, int64_t b, int64_t h, int64_t query,
                              int64_t key) {
  const AttentionShape &shape = call.shape;
  typename Backward<T, kStep>::Sees sight(shape, b);
  HeadDrops drops(shape, b, h);
  HeadBlocks blocks(shape, h);
  ComputedKeys computed(blocks, sight.keyNumber + key);
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    int64_t at = query + warp * kRowsOfWarp + i, column = key + lane;
    bool seen = at < shape.sequence && column < sight.end(at) && column >= sight.first(at) &&
                computed.computes(sight.queryNumber + at, lane);
    float shift = seen ? call.logSumExp[call.rowOf(b, h, at)] : 0.0f;
    seen = seen && shift != Largest::kNone; // else its output is constant
    float score = p[i] * shape.scale, gradient = 0.0f, probability = 0.0f;
    if (seen) {
      if (call.bias) {
        score += call.bias.at(b, h, at, sight.keyNumber + column);
        score -= call.base[call.rowOf(b, h, at)]; // of the rounded sum
      }
      probability = expf(score - shift);
      float factor = drops(at, column) ? 0.0f : drops.scale;
      gradient = probability * (ds[i] * factor - call.delta[call.rowOf(b, h, at)]);
      probability *= factor;
    }
    p[i] = probability;
    ds[i] = gradient;
  }
}

/// The four tiles in dynamic shared memory.
struct Tiles {
  float *q, *dout, *k, *v;
  __device__ Tiles(unsigned char *memory, const AttentionShape &shape)
      : q(reinterpret_cast<float *>(memory)), dout(q + kTileRows * pitchOf(shape.headDim)),
        k(dout + kTileRows * pitchOf(shape.valueDim)), v(k + kTileRows * pitchOf(shape.headDim)) {}
  static int bytes(const AttentionShape &shape) {
    return 2 * kTileRows * (pitchOf(shape.headDim) + pitchOf(shape.valueDim)) * 4;
  }
  template <typename T, bool kStep>
  __device__ void loadQueries(const Backward<T, kStep> &call, int64_t b, int64_t h,
                              int64_t query) const {
    loadTile(q, headOf(call.q, b, h), query, call.shape.sequence, call.shape.headDim);
    loadTile(dout, headOf(call.dout, b, h), query, call.shape.sequence, call.shape.valueDim);
  }
  template <typename T, bool kStep>
  __device__ void loadKeys(const Backward<T, kStep> &call, int64_t b, int64_t kv,
                           int64_t key) const {
    loadTile(k, headOf(call.k, b, kv), key, call.shape.keySequence, call.shape.headDim);
    loadTile(v, headOf(call.v, b, kv), key, call.shape.keySequence, call.shape.valueDim);
  }
  template <typename T, bool kStep>
  __device__ void scores(float (&p)[kRowsOfWarp], float (&ds)[kRowsOfWarp],
                         const Backward<T, kStep> &call, int64_t b, int64_t h, int64_t query,
                         int64_t key) const {
    multiplyTiles(p, q, k, call.shape.headDim);
    multiplyTiles(ds, dout, v, call.shape.valueDim);
    differentiate(p, ds, call, b, h, query, key);
  }
};

/// Does any query of a tile see a key of a tile, and compute one?
template <typename Sees>
__device__ bool meet(const AttentionShape &shape, const Sees &sight, int64_t h, int64_t query,
                     int64_t key) {
  KeyRange range(sight, query);
  int64_t last = least(query + kTileRows, shape.sequence) - 1,
          keyEnd = least(key + kTileRows, shape.keySequence);
  return key >= range.first && key < range.end &&
         HeadBlocks(shape, h).meet(sight.queryNumber + query, sight.queryNumber + last,
                                   sight.keyNumber + key, sight.keyNumber + keyEnd);
}

constexpr int kWeights = kTileRows * (kTileRows + 1);

/// Computes dk and dv of a tile of keys (x) of a key head (y).
template <typename T, int kParts, bool kStep>
__global__ void __launch_bounds__(kTileThreads) keyGradients(Backward<T, kStep> call) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float pTile[kWeights], dsTile[kWeights];
  const AttentionShape &shape = call.shape;
  Tiles tiles(dynamic, shape);
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int64_t key = int64_t(blockIdx.x) * kTileRows, kv = blockIdx.y, b = blockIdx.z;
  float dk[kRowsOfWarp][kParts] = {}, dv[kRowsOfWarp][kParts] = {};
  typename Backward<T, kStep>::Sees sight(shape, b);
  tiles.loadKeys(call, b, kv, key);
  for (int64_t h = kv * shape.groups; h < (kv + 1) * shape.groups; ++h)
    for (int64_t query = 0; query < shape.sequence; query += kTileRows) {
      if (!meet(shape, sight, h, query, key)) // for all of the block
        continue;
      __syncthreads(); // all threads are done with the last queries
      tiles.loadQueries(call, b, h, query);
      __syncthreads();
      float p[kRowsOfWarp], ds[kRowsOfWarp];
      tiles.scores(p, ds, call, b, h, query, key);
#pragma unroll
      for (int i = 0; i < kRowsOfWarp; ++i) {
        pTile[(warp * kRowsOfWarp + i) * (kTileRows + 1) + lane] = p[i];
        dsTile[(warp * kRowsOfWarp + i) * (kTileRows + 1) + lane] = ds[i];
      }
      __syncthreads();
      addWeightedRows<kParts, true>(dv, pTile, tiles.dout, shape.valueDim);
      addWeightedRows<kParts, true>(dk, dsTile, tiles.q, shape.headDim);
    }
  storeRows(headOf(call.dk, b, kv), dk, key, shape.keySequence, shape.headDim, shape.scale,
            kStep && call.addToKeys);
  storeRows(headOf(call.dv, b, kv), dv, key, shape.keySequence, shape.valueDim, 1.0f,
            kStep && call.addToKeys);
}

/// Computes dq of a tile of queries (x) of a head (y).
template <typename T, int kParts, bool kStep>
__global__ void __launch_bounds__(kTileThreads) queryGradients(Backward<T, kStep> call) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float dsTile[kWeights];
  const AttentionShape &shape = call.shape;
  Tiles tiles(dynamic, shape);
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int64_t h = blockIdx.y, b = blockIdx.z;
  int64_t query = (int64_t(gridDim.x) - 1 - blockIdx.x) * kTileRows;
  float dq[kRowsOfWarp][kParts] = {};
  tiles.loadQueries(call, b, h, query);
  HeadBlocks blocks(shape, h);
  typename Backward<T, kStep>::Sees sight(shape, b);
  KeyRange range(sight, query);
  auto next = [&](int64_t key) { return nextKeys(blocks, sight, query, key, range.end); };
  for (int64_t key = next(range.first); key < range.end; key = next(key + kTileRows)) {
    __syncthreads(); // all threads are done with the last keys
    tiles.loadKeys(call, b, h / shape.groups, key);
    __syncthreads();
    float p[kRowsOfWarp], ds[kRowsOfWarp];
    tiles.scores(p, ds, call, b, h, query, key);
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i)
      dsTile[(warp * kRowsOfWarp + i) * (kTileRows + 1) + lane] = ds[i];
    __syncwarp(); // a warp reads its own rows
    addWeightedRows<kParts, false>(dq, dsTile, tiles.k, shape.headDim);
  }
  storeRows(headOf(call.dq, b, h), dq, query, shape.sequence, shape.headDim, shape.scale,
            kStep && call.addToQueries);
}

/// The dimensions in which dbias has elements of its own; along the others it repeats one.
struct BiasGradient {
  Scores scores;
  int64_t batches, heads, queryTiles, keyTiles; ///< blocks
};

/// Computes a tile of dbias per block: adds up dS over all that repeat it, in order. A step adds the tile to what
/// dbias holds.
template <typename T, bool kStep>
__global__ void __launch_bounds__(kTileThreads)
    biasGradients(Backward<T, kStep> call, BiasGradient gradient) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float columns[kTileWarps][kWarp];
  const AttentionShape &shape = call.shape;
  const Scores &to = gradient.scores;
  Tiles tiles(dynamic, shape);
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  int64_t queryTile = blockIdx.x % gradient.queryTiles, keyTile = blockIdx.x / gradient.queryTiles;
  bool ownRows = to.rowStride != 0, ownKeys = to.columnStride != 0;
  int64_t query0 = ownRows ? queryTile * kTileRows : 0, key0 = ownKeys ? keyTile * kTileRows : 0;
  int64_t queryEnd = ownRows ? least(query0 + 1, shape.sequence) : shape.sequence;
  int64_t keyEnd = ownKeys ? least(key0 + 1, shape.keySequence) : shape.keySequence;
  int64_t bEnd = gradient.batches > 1 ? int64_t(blockIdx.z) + 1 : shape.batch;
  int64_t hEnd = gradient.heads > 1 ? int64_t(blockIdx.y) + 1 : shape.heads;
  float sums[kRowsOfWarp] = {};
  for (int64_t b = blockIdx.z; b < bEnd; ++b) {
    typename Backward<T, kStep>::Sees sight(shape, b);
    for (int64_t h = blockIdx.y; h < hEnd; ++h)
      for (int64_t query = query0; query < queryEnd; query += kTileRows)
        for (int64_t key = key0; key < keyEnd; key += kTileRows) {
          if (!meet(shape, sight, h, query, key)) // for all of the block
            continue;
          __syncthreads();
          tiles.loadQueries(call, b, h, query);
          tiles.loadKeys(call, b, h / shape.groups, key);
          __syncthreads();
          float p[kRowsOfWarp], ds[kRowsOfWarp];
          tiles.scores(p, ds, call, b, h, query, key);
#pragma unroll
          for (int i = 0; i < kRowsOfWarp; ++i)
            sums[i] += ds[i];
        }
  }
  float *data = static_cast<float *>(to.data);
  data += int64_t(blockIdx.z) * to.batchStride + int64_t(blockIdx.y) * to.headStride;
  if constexpr (kStep)
    data += firstNumber(shape.keys) * to.columnStride;
  auto put = [](float &element, float sum) { element = kStep ? element + sum : sum; };
  if (!ownKeys)
#pragma unroll
    for (float &each : sums)
      each = overWarp<Sum>(each);
  bool mine = ownKeys ? key0 + lane < shape.keySequence : lane == 0;
  if (ownRows) {
    for (int i = 0; i < kRowsOfWarp; ++i)
      if (int64_t row = query0 + warp * kRowsOfWarp + i; mine && row < shape.sequence)
        put(data[row * to.rowStride + (key0 + lane) * to.columnStride], sums[i]);
    return;
  }
  float sum = 0.0f;
  for (float each : sums)
    sum += each;
  columns[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || !mine)
    return;
  sum = 0.0f;
  for (int w = 0; w < kTileWarps; ++w)
    sum += columns[w][lane];
  put(data[(key0 + lane) * to.columnStride], sum);
}

template <typename T, bool kStep>
void launchBiasGradients(const Stream &stream, const Backward<T, kStep> &call,
                         const Scores &dbias) {
  const AttentionShape &shape = call.shape;
  if (shape.batch * shape.heads * shape.sequence * shape.keySequence == 0)
    return;
  BiasGradient gradient{dbias, dbias.batchStride ? shape.batch : 1,
                        dbias.headStride ? shape.heads : 1,
                        dbias.rowStride ? ceilDiv(shape.sequence, kTileRows) : 1,
                        dbias.columnStride ? ceilDiv(shape.keySequence, kTileRows) : 1};
  PARTITA_RT_LAUNCH(
      (biasGradients<T, kStep>),
      attentionGrid(gradient.queryTiles * gradient.keyTiles, gradient.heads, gradient.batches),
      kTileThreads, Tiles::bytes(shape), stream, call, gradient);
}

template <typename T, bool kStep>
void launchPrepareRows(const Stream &stream, const Backward<T, kStep> &call) {
  const AttentionShape &shape = call.shape;
  if (shape.sequence * shape.heads * shape.batch > 0)
    PARTITA_RT_LAUNCH((prepareRows<T, kStep>),
                      attentionGrid(ceilDiv(shape.sequence, kTileWarps), shape.heads, shape.batch),
                      kTileThreads, 0, stream, call);
}

/// `prepares`: delta and base of these queries.
template <typename T, bool kStep>
void backwardInTiles(const Stream &stream, const Backward<T, kStep> &call, const Scores &dbias,
                     bool prepares) {
  const AttentionShape &shape = call.shape;
  int64_t batch = shape.batch, kvHeads = shape.heads / shape.groups;
  int64_t queryTiles = ceilDiv(shape.sequence, kTileRows);
  int64_t keyTiles = ceilDiv(shape.keySequence, kTileRows);
  withHeadParts(shape, [&](auto parts) {
    if (batch * shape.heads == 0)
      return;
    int shared = Tiles::bytes(shape);
    if (prepares)
      launchPrepareRows(stream, call);
    if (keyTiles > 0)
      PARTITA_RT_LAUNCH((keyGradients<T, parts(), kStep>), attentionGrid(keyTiles, kvHeads, batch),
                        kTileThreads, shared, stream, call);
    if (queryTiles > 0)
      PARTITA_RT_LAUNCH((queryGradients<T, parts(), kStep>),
                        attentionGrid(queryTiles, shape.heads, batch), kTileThreads, shared, stream,
                        call);
    if (dbias.data)
      launchBiasGradients(stream, call, dbias);
  });
}

/// The same on tensor cores, for calls that are onTensorCores. With a bias, delta and base are the portable kernels', and
/// so is dbias.
template <typename T, bool kStep>
void backwardOnTensorCores(const Stream &stream, const Backward<T, kStep> &call,
                           const Scores &dbias, bool prepares, const PartialSums &sums = {}) {
  MmaBackward<T, kStep> operands{
      call.dq,           call.dk,        call.dv, call.delta, call.dout,  call.out,
      call.logSumExp,    call.q,         call.k,  call.v,     call.shape, call.bias,
      call.addToQueries, call.addToKeys, sums};
  bool bias = call.bias.data.data;
  if (bias && prepares)
    launchPrepareRows(stream, call);
  if constexpr (kStep)
    attentionStepBackwardMma(stream, operands, prepares);
  else if (bias || !attentionBackwardWgmma(stream, operands))
    attentionBackwardMma(stream, operands);
  if (dbias.data)
    launchBiasGradients(stream, call, dbias);
}

/// Runs the library's kernel; returns false if it has none.
template <typename T>
bool backwardFused(const Stream &stream, const Backward<T, false> &operands, const Scores &dbias) {
  if (!stream.attention)
    return false;
  FusedCall call{};
  call.dtype = kDTypeOf<T>;
  call.backward = true;
  call.shape = operands.shape;
  call.bias = operands.bias.data.data || dbias.data;
  call.q = untyped(operands.q);
  call.k = untyped(operands.k);
  call.v = untyped(operands.v);
  call.logSumExp = const_cast<float *>(operands.logSumExp);
  call.dq = untyped(operands.dq);
  call.dk = untyped(operands.dk);
  call.dv = untyped(operands.dv);
  call.dout = untyped(operands.dout);
  call.forwardOut = untyped(operands.out);
  call.workspace = operands.delta;
  return stream.attention->run(stream, call);
}

template <typename T>
void backward(const Stream &stream, const Backward<T, false> &call, const Scores &dbias,
              const RowSumsOf<T> &sums) {
  auto *partials =
      sums ? scratchOf<float>(stream, sumsOf(call.shape).scratch(), "attentionBackward") : nullptr;
  bool isStored = backwardFused(stream, call, dbias);
  if constexpr (sizeof(T) == 2)
    if (!isStored && onTensorCores<T>(call.shape)) {
      backwardOnTensorCores(stream, call, dbias, /*prepares=*/true, {partials, sumsOf(call.shape)});
      if (sums)
        addPartialRowSums(stream, sums, partials, call.shape);
      return;
    }
  if (!isStored)
    backwardInTiles(stream, call, dbias, /*prepares=*/true);
  if (sums)
    sumStoredRows(stream, sums, partials, call.shape, call.dq, call.dk, call.dv);
}

/// `call`: of all runs. One launch of each kernel for each run of queries and each of keys.
template <typename T>
void backwardStep(const Stream &stream, const Backward<T, true> &call,
                  const ScoresOf<const T> &bias, const Scores &dbias) {
  forRuns(call.shape, [&](const AttentionShape &pair, int64_t query, int64_t key) {
    bool prepares = key == 0;
    Backward<T, true> step{fromRow(call.dq, query),
                           fromRow(call.dk, key),
                           fromRow(call.dv, key),
                           call.delta + query,
                           call.base + query,
                           fromRow(call.dout, query),
                           fromRow(call.out, query),
                           call.logSumExp + query,
                           fromRow(call.q, query),
                           fromRow(call.k, key),
                           fromRow(call.v, key),
                           pair,
                           Bias<T>(fromRow(bias, query)),
                           call.addToQueries || key > 0,
                           query > 0};
    if constexpr (sizeof(T) == 2)
      if (onTensorCores<T>(pair))
        return backwardOnTensorCores(stream, step, fromRow(dbias, query), prepares);
    backwardInTiles(stream, step, fromRow(dbias, query), prepares);
  });
}

} // namespace

#define ATTENTION_BACKWARD(T)                                                                      \
  void attentionBackward(const Stream &stream, HeadsOf<T> dq, HeadsOf<T> dk, HeadsOf<T> dv,        \
                         float *workspace, HeadsOf<const T> dout, HeadsOf<const T> out,            \
                         const float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,           \
                         HeadsOf<const T> v, const AttentionShape &shape, ScoresOf<const T> bias,  \
                         Scores dbias, RowSumsOf<T> sums) {                                        \
    float *base = workspace + shape.batch * shape.heads * shape.sequence;                          \
    backward<T>(                                                                                   \
        stream,                                                                                    \
        {dq, dk, dv, workspace, base, dout, out, logSumExp, q, k, v, shape, Bias<T>(bias)}, dbias, \
        sums);                                                                                     \
  }                                                                                                \
  void attentionStepBackward(const Stream &stream, HeadsOf<float> dq, HeadsOf<float> dk,           \
                             HeadsOf<float> dv, float *workspace, HeadsOf<const T> dout,           \
                             HeadsOf<const T> out, const float *logSumExp, HeadsOf<const T> q,     \
                             HeadsOf<const T> k, HeadsOf<const T> v, const AttentionShape &shape,  \
                             ScoresOf<const T> bias, Scores dbias, bool continues) {               \
    float *base = workspace + shape.batch * shape.heads * shape.sequence;                          \
    backwardStep<T>(stream,                                                                        \
                    {dq, dk, dv, workspace, base, dout, out, logSumExp, q, k, v, shape,            \
                     Bias<T>(bias), continues},                                                    \
                    bias, dbias);                                                                  \
  }
FOR_STORAGE(ATTENTION_BACKWARD)
#undef ATTENTION_BACKWARD

} // namespace partita_rt::cuda
