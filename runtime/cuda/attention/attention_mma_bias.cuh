// Biases of tiles of scores that are laid out as C of a matmul. They are read where they lie, in float or T: a warp's
// load is of 8 keys of 8 queries.
//
// Scores become (scale * q.k + bias) - base (attention_base.h), so that what follows multiplies them by kLog2E alone.
// This precedes whatever hides scores: hidden ones get any number here.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_BIAS_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_BIAS_CUH

#include "cuda/attention/attention_mma.cuh"

namespace partita_rt::cuda {

/// The base of query `first` + lane, for all lanes of a warp. Most queries see a key at either end of their keys whose
/// bias is not low; the warp looks for the others together.
template <typename T, bool kRuns>
__device__ inline float baseOfLane(const Bias<T> &bias, const Sight<int64_t, true, kRuns> &sight,
                                   const HeadBlocks &blocks, int64_t b, int64_t h, int64_t first) {
  int lane = int(threadIdx.x) % kWarp;
  int64_t query = first + lane, number = sight.queryNumber + query;
  bool open = query < sight.queries;
  if (open) {
    int64_t ends[] = {sight.endOfAll(query) - 1, sight.firstOfAll(query)};
    for (int64_t end : ends) {
      int64_t key = sight.keyNumber + end;
      bool seen = ends[1] <= ends[0] && blocks.meet(number, number, key, key + 1);
      open = open && !(seen && bias.at(b, h, query, key) >= float(kLowBias));
    }
  }
  float base = 0.0f;
  for (unsigned left = __ballot_sync(kAllLanes, open); left != 0; left &= left - 1) {
    int with = __ffs(int(left)) - 1;
    float each = baseOf(bias, sight, blocks, b, h, first + with);
    base = lane == with ? each : base;
  }
  return base;
}

/// The bias of one head, as a kernel keeps it. Empty in kernels for calls without one.
template <bool kBias, typename T> struct TileBias {
  float factor; ///< of scores, before 2^x

  __device__ TileBias(const Bias<T> &, float scale) : factor(scale * kLog2E) {}
  __device__ explicit operator bool() const { return false; }
  __device__ void atHead(int64_t, int64_t) {}
  template <bool kStep>
  __device__ const float *keepBases(float *bases, const AttentionShape &, const HeadBlocks &,
                                    int64_t, int64_t, int64_t, int) const {
    return bases;
  }
  template <typename Scores, typename Sees>
  __device__ void addToQueries(Scores &, const Sees &, const float *, int, int) const {}
  template <typename Scores, typename Sees>
  __device__ void addToKeys(Scores &, const Sees &, const float *, int, int) const {}
};

template <typename T> struct TileBias<true, T> {
  const Bias<T> &bias;
  float scale, factor;
  int64_t head; ///< where it begins

  __device__ TileBias(const Bias<T> &bias, float scale)
      : bias(bias), scale(scale), factor(bias ? kLog2E : scale * kLog2E), head(0) {}
  __device__ explicit operator bool() const { return bool(bias); }
  __device__ void atHead(int64_t batch, int64_t head_) {
    head = batch * bias.batchStride + head_ * bias.headStride;
  }

  /// Writes the bases of a head's queries first .. first + 31, a warp's, to bases[at ..] and returns where they are.
  template <bool kStep>
  __device__ const float *keepBases(float *bases, const AttentionShape &shape,
                                    const HeadBlocks &blocks, int64_t b, int64_t h, int64_t first,
                                    int at) const {
    if (bias) {
      Sight<int64_t, true, kStep> sight(shape, b);
      bases[at + int(threadIdx.x) % kWarp] = baseOfLane(bias, sight, blocks, b, h, first);
      __syncwarp();
    }
    return bases + at;
  }

  /// To a tile whose rows are queries. bases: of the queries from the warp's first one on; first: its number; key: the
  /// first of the tile.
  template <int kTiles, int kColumns, typename Sees>
  __device__ void addToQueries(float (&scores)[kTiles][kColumns][4], const Sees &sight,
                               const float *bases, int first, int key) const {
    if (!bias)
      return;
    withElements([&](auto *data) {
      int lane = int(threadIdx.x) % kWarp, column = key + lane % 4 * 2;
      const auto *keys = data + head + int64_t(sight.keyNumber + column) * bias.columnStride;
#pragma unroll
      for (int i = 0; i < kTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = 16 * i + 8 * half + lane / 4;
          if (first + row >= sight.queries)
            continue;
          const auto *from = keys + int64_t(first + row) * bias.rowStride;
          float base = bases[row];
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e, from += bias.columnStride)
              if (column + 8 * j + e < sight.keys)
                add(scores[i][j][2 * half + e], *from, base);
            from += 6 * bias.columnStride;
          }
        }
    });
  }

  /// To a tile whose rows are keys. bases: of the tile's queries; key: the warp's first one.
  template <int kTiles, int kColumns, typename Sees>
  __device__ void addToKeys(float (&scores)[kTiles][kColumns][4], const Sees &sight,
                            const float *bases, int query, int key) const {
    if (!bias)
      return;
    withElements([&](auto *data) {
      int lane = int(threadIdx.x) % kWarp, row = key + lane / 4;
      const auto *keys = data + head + int64_t(sight.keyNumber + row) * bias.columnStride;
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int column = 8 * j + lane % 4 * 2 + e;
          if (query + column >= sight.queries)
            continue;
          const auto *from = keys + int64_t(query + column) * bias.rowStride;
          float base = bases[column];
#pragma unroll
          for (int t = 0; t < kTiles; ++t)
#pragma unroll
            for (int half = 0; half < 2; ++half)
              if (row + 16 * t + 8 * half < sight.keys)
                add(scores[t][j][2 * half + e], from[(16 * t + 8 * half) * bias.columnStride],
                    base);
        }
    });
  }

private:
  template <typename Body> __device__ void withElements(Body body) const {
    if (bias.data.isFloat)
      body(static_cast<const float *>(bias.data.floats()));
    else
      body(static_cast<const T *>(bias.data.others()));
  }
  template <typename Element>
  __device__ void add(float &score, const Element &element, float base) const {
    score = score * scale + float(element);
    score -= base; // of the rounded sum
  }
};

/// Adds the bias to a tile of scores whose rows are a warp's queries [first, last], and hides what these do not see.
template <int kTiles, int kColumns, bool kBias, typename T, typename Sees, typename Bits>
__device__ inline void
maskQueries(float (&scores)[kTiles][kColumns][4], const TileBias<kBias, T> &bias,
            const float *bases, const Sees &sight, const Bits &bits, int first, int last, int key) {
  constexpr int kKeys = 8 * kColumns;
  int row = first + int(threadIdx.x) % kWarp / 4;
  bias.addToQueries(scores, sight, bases, first, key);
  if (sight.hides(first, last, key, key + kKeys))
    hideKeys<kTiles, kKeys>(scores, sight, row, key);
  bits.hide(scores, sight.queryNumber + row);
}

/// What a query without any key gets: not a number if a bias hides them all and the call wants no zeros.
template <bool kBias, typename T>
__device__ inline float ofHiddenQuery(const TileBias<kBias, T> &bias, const AttentionShape &shape) {
  return bias && !shape.zeroHidden ? __int_as_float(0x7fc00000) : 0.0f;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_BIAS_CUH
