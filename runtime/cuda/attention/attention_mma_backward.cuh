// Shared by the backward passes on tensor cores, through mma.sync and wgmma: scalars per query, the
// tiles of queries streamed past a tile of keys, tiles of scores whose rows are keys.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_BACKWARD_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_BACKWARD_CUH

#include "cuda/attention/attention_mma_bias.cuh"
#include "cuda/attention/attention_mma_drops.cuh"
#include "cuda/attention/attention_sums.cuh"

namespace partita_rt::cuda {

/// Returns the logSumExp2 of a row from its saved log-sum-exp: +inf for a query that sees no key, so
/// all its weights are 0.
__device__ inline float inBase2(float logSumExp) {
  return logSumExp == Largest::kNone ? -Largest::kNone : logSumExp * kLog2E;
}

/// Adds the terms of a pack of columns to the delta of a row. outs, douts: aligned, in global or
/// shared memory.
template <typename T>
__device__ inline void addToDelta(float &delta, const T *outs, const T *douts) {
  Pack<T, kPack> packs[2];
  float out[kPack], dout[kPack];
  loadAligned(packs[0], outs);
  loadAligned(packs[1], douts);
  widen(out, packs[0]);
  widen(dout, packs[1]);
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    delta += out[i] * dout[i];
}

/// The operands, and the results of prepareBackward.
template <typename T, bool kStep = false> struct PreparedBackward : MmaBackward<T, kStep> {
  bool qPacks, kPacks, vPacks, doutPacks, dqPacks, dkPacks, dvPacks;
  float *delta, *logSumExp2; ///< [batch, heads, sequence]
  float *base;               ///< with a bias, in place of logSumExp2
  explicit PreparedBackward(const MmaBackward<T, kStep> &call)
      : MmaBackward<T, kStep>(call), qPacks(inPacks(call.q)), kPacks(inPacks(call.k)),
        vPacks(inPacks(call.v)), doutPacks(inPacks(call.dout)), dqPacks(inPacks(call.dq)),
        dkPacks(inPacks(call.dk)), dvPacks(inPacks(call.dv)), delta(call.workspace),
        logSumExp2(delta + call.shape.batch * call.shape.heads * queryPitch(call.shape)),
        base(logSumExp2) {}
  __device__ int64_t rowOf(int64_t b, int64_t h, int64_t query) const {
    return (b * this->shape.heads + h) * queryPitch(this->shape) + query;
  }
  /// The logSumExp2 of a row. kBias: the call may have a bias.
  template <bool kBias> __device__ float shiftOf(int64_t row) const {
    if (!kBias || !this->bias)
      return logSumExp2[row];
    return inBase2(this->logSumExp[row]);
  }
};

/// Computes delta and logSumExp2. For calls without a bias.
template <typename T, bool kStep>
void prepareBackward(const Stream &stream, const PreparedBackward<T, kStep> &call);

/// The tiles of queries streamed past a tile of keys: those that see some of the keys [key, key +
/// count). Per head queries [first, end), `tiles` in all.
struct QueryTiles {
  int first, end, tiles;
  template <bool kDocuments, bool kRuns>
  __device__ QueryTiles(const Sight<int, kDocuments, kRuns> &sight, int groups, int key, int count,
                        int rows)
      : first(sight.firstQuery(key) / rows * rows), end(sight.endQuery(key + count)) {
    tiles = end > first ? (end - first + rows - 1) / rows * groups : 0;
  }
};
struct QueryTile {
  int head, query;
  /// The next one of `rows` queries, for all heads of a group, one after another.
  __device__ QueryTile after(const QueryTiles &range, int rows) const {
    return query + rows < range.end ? QueryTile{head, query + rows}
                                    : QueryTile{head + 1, range.first};
  }
};

// Tiles whose rows are the warp's keys and whose columns are queries.

/// Hides keys from the queries before them, and keys after the last one: two instructions a score, because
/// columns are constants. For calls that hide no key before those that a query sees.
template <int kTiles, int kQueries, bool kDocuments, bool kRuns>
__device__ inline void hideLaterKeys(float (&scores)[kTiles][kQueries / 8][4],
                                     const Sight<int, kDocuments, kRuns> &sight, int query,
                                     int key) {
  int lane = int(threadIdx.x) % kWarp, row = key + lane / 4, column = query + lane % 4 * 2;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int at = row + 16 * t + 8 * half;
      // The first column of the lane's that sees the key.
      int first = at >= sight.keys ? kQueries : sight.causal ? at - sight.diagonal() - column : 0;
#pragma unroll
      for (int j = 0; j < kQueries / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (8 * j + e < first)
            scores[t][j][2 * half + e] = Largest::kNone;
    }
}

/// Hides keys from queries that do not see them. key: the first of the warp's keys.
template <int kTiles, int kQueries, bool kDocuments, bool kRuns>
__device__ inline void hideFromQueries(float (&scores)[kTiles][kQueries / 8][4],
                                       const Sight<int, kDocuments, kRuns> &sight, int query,
                                       int key) {
  if (!sight.hidesBefore())
    return hideLaterKeys<kTiles, kQueries>(scores, sight, query, key);
  int lane = int(threadIdx.x) % kWarp, row = lane / 4;
#pragma unroll
  for (int j = 0; j < kQueries / 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int at = query + 8 * j + lane % 4 * 2 + e;
      int first = sight.first(at) - key - row;
      int end = sight.end(at) - key - row;
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (16 * t + 8 * half < first || 16 * t + 8 * half >= end)
            scores[t][j][2 * half + e] = Largest::kNone;
    }
}

/// Turns scores into probabilities, 2^(factor * score - logSumExp2 of the query).
template <int kTiles, int kQueries>
__device__ inline void weigh(float (&scores)[kTiles][kQueries / 8][4], const float *logSumExp2,
                             float factor) {
#pragma unroll
  for (int j = 0; j < kQueries / 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float shift = logSumExp2[8 * j + int(threadIdx.x) % 4 * 2 + e];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float &score = scores[t][j][2 * half + e];
          score = powerOfTwo(fmaf(score, factor, -shift));
        }
    }
}

/// Turns dP into dS = P (dP - delta of the query); with kMarked, of P that markDropped has marked.
template <bool kMarked, int kTiles, int kColumns>
__device__ inline void differentiate(float (&ds)[kTiles][kColumns][4],
                                     const float (&p)[kTiles][kColumns][4], const float *delta,
                                     float factor) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float each = delta[8 * j + int(threadIdx.x) % 4 * 2 + e];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float &gradient = ds[t][j][2 * half + e];
          float weight = p[t][j][2 * half + e];
          if (kMarked)
            gradient = fabsf(weight) * ((weight < 0.0f ? 0.0f : gradient * factor) - each);
          else
            gradient = weight * (gradient - each);
        }
    }
}

/// Calls visit(element) for all of a thread's fragments.
template <typename E, int kTiles, int kColumns, typename Visit>
__device__ inline void forFragments(E (&fragments)[kTiles][kColumns][4], Visit visit) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (E &each : fragments[t][j])
        visit(each);
}
template <int kTiles, int kColumns>
__device__ inline void scaleBy(float (&sums)[kTiles][kColumns][4], float factor) {
  forFragments(sums, [factor](float &each) { each *= factor; });
}
template <typename E, int kTiles, int kColumns>
__device__ inline void clear(E (&fragments)[kTiles][kColumns][4]) {
  forFragments(fragments, [](E &each) { each = E(0); });
}

// Tiles of keys of a block of mma.sync.

/// Fragments of 16 keys per warp, and queries at a time: the sums for 32 keys of wider heads do not
/// fit into registers.
template <int D> constexpr int kKeyTiles = D <= 64 ? 2 : 1;
template <int D> constexpr int kKeysOfBlock = kMmaWarps * 16 * kKeyTiles<D>;
template <int D> constexpr int kPassingQueries = D <= 64 ? 32 : 64;

/// A thread's scalars of a tile of queries, on their way into shared memory: logSumExp2 of row threadIdx.x, or delta
/// of row threadIdx.x - kRows; kBias: and the row's base. After the sequence logSumExp2 is +inf.
template <int kRows, bool kBias> struct QueryNumbers {
  float number = 0.0f, base = 0.0f;

  template <typename T, bool kStep>
  __device__ void load(const PreparedBackward<T, kStep> &call, int64_t b, const QueryTile &tile) {
    int thread = int(threadIdx.x), at = tile.query + thread % kRows;
    bool inside = thread < 2 * kRows && at < call.shape.sequence;
    int64_t row = inside ? call.rowOf(b, tile.head, at) : 0;
    if (thread < kRows)
      number = inside ? call.template shiftOf<kBias>(row) : -Largest::kNone;
    else
      number = inside ? call.delta[row] : 0.0f;
    if constexpr (kBias)
      base = inside && call.bias ? call.base[row] : 0.0f;
  }
  __device__ void keep(float (&numbers)[2 + kBias][kRows]) const {
    int thread = int(threadIdx.x);
    if (thread < 2 * kRows)
      numbers[thread / kRows][thread % kRows] = number;
    if (kBias && thread < kRows)
      numbers[1 + kBias][thread] = base;
  }
};

/// Starts the copies of a tile of keys and values.
template <int kKeys, int D, typename T, bool kStep>
__device__ inline void startKeysAndValues(const PreparedBackward<T, kStep> &call, T *keys,
                                          T *values, int64_t b, int64_t kv, int key) {
  const AttentionShape &shape = call.shape;
  copyTile<kKeys, D>(keys, headOf(call.k, b, kv), key, int(shape.keySequence), int(shape.headDim),
                     call.kPacks);
  copyTile<kKeys, D>(values, headOf(call.v, b, kv), key, int(shape.keySequence),
                     int(shape.valueDim), call.vPacks);
}

/// Scales and stores the rows of dk and dv of a warp's keys, from `first` on. `dropScale`: of dv, for dropout;
/// `ownKeys`, `ownValues`: room for them.
template <int D, typename T, bool kStep, int kTiles>
__device__ inline void storeKeyGradients(const PreparedBackward<T, kStep> &call,
                                         float (&dk)[kTiles][D / 8][4],
                                         float (&dv)[kTiles][D / 8][4], float dropScale, T *ownKeys,
                                         T *ownValues, int64_t b, int64_t kv, int first) {
  scaleBy(dk, call.shape.scale);
  if (dropScale != 1.0f)
    scaleBy(dv, dropScale);
  int keys = int(call.shape.keySequence);
  int headDim = int(call.shape.headDim), valueDim = int(call.shape.valueDim);
  if constexpr (kStep) {
    storeFloatsOfC(headOf(call.dk, b, kv), dk, first, keys, headDim, call.addToKeys);
    storeFloatsOfC(headOf(call.dv, b, kv), dv, first, keys, valueDim, call.addToKeys);
  } else {
    storeRowsOfC<kTiles, D>(headOf(call.dk, b, kv), dk, ownKeys, first, keys, headDim,
                            call.dkPacks);
    storeRowsOfC<kTiles, D>(headOf(call.dv, b, kv), dv, ownValues, first, keys, valueDim,
                            call.dvPacks);
  }
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_BACKWARD_CUH
