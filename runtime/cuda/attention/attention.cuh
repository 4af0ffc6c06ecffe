// Shared by the passes of attention: tiles of rows in shared memory, a tile of scores.
//
// A block handles kTileRows queries and kTileRows keys at a time. For scores, each warp has
// kRowsOfWarp rows and lanes are keys; for matmuls with rows of V, K, Q and dO, lanes are elements
// of a head.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_CUH

#include "cuda/attention/attention_blocks.cuh"
#include "cuda/kernels/row.cuh"
#include "partita_rt/attention_base.h"
#include "partita_rt/attention_drops.h"
#include "partita_rt/attention_sight.h"

namespace partita_rt::cuda {

constexpr int kTileRows = 32, kTileWarps = 8, kRowsOfWarp = kTileRows / kTileWarps;
constexpr int kTileThreads = kTileWarps * kWarp;
constexpr int64_t kLargestHead = 256;

/// One head of one sequence.
template <typename T> struct HeadRows {
  T *data;
  int64_t stride;
  __device__ T *row(int64_t i) const { return data + i * stride; }
};

template <typename T>
__device__ HeadRows<T> headOf(const HeadsOf<T> &tensor, int64_t batch, int64_t head) {
  return {tensor.data + batch * tensor.batchStride + head * tensor.headStride, tensor.rowStride};
}

/// The elements of results: T, or, of a step of attention whose keys come in parts, float.
template <typename T, bool kStep> using ResultOf = std::conditional_t<kStep, float, T>;

/// The tiles of keys that queries [query, query + kTileRows) see in part: first and end, in keys.
struct KeyRange {
  int64_t first, end;
  template <bool kRuns>
  __device__ KeyRange(const Sight<int64_t, true, kRuns> &sight, int64_t query)
      : first(sight.first(query) / kTileRows * kTileRows),
        end(sight.end(least(query + kTileRows, sight.queries) - 1)) {}
};

/// The first tile of keys at `key` or after it, of those before `end`, of which a tile of queries computes some; or
/// one that is not before `end`.
template <bool kRuns>
__device__ int64_t nextKeys(const HeadBlocks &blocks, const Sight<int64_t, true, kRuns> &sight,
                            int64_t query, int64_t key, int64_t end) {
  int64_t first = sight.queryNumber + query, number = sight.keyNumber;
  int64_t last = least(first + kTileRows, sight.queryNumber + sight.queries) - 1;
  int64_t next =
      blocks.next(/*transposed=*/false, first, last, number + key, number + end) - number;
  return next < end ? next / kTileRows * kTileRows : end;
}

/// A bias as a kernel receives it.
template <typename T> struct Bias {
  FloatOrArray<const T> data;
  int64_t batchStride = 0, headStride = 0, rowStride = 0, columnStride = 0;
  Bias(const ScoresOf<const T> &scores)
      : data(scores.data), batchStride(scores.batchStride), headStride(scores.headStride),
        rowStride(scores.rowStride), columnStride(scores.columnStride) {}
  __device__ explicit operator bool() const { return bool(data); }
  __device__ float at(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    int64_t i = batch * batchStride + head * headStride + query * rowStride + key * columnStride;
    return data.isFloat ? data.floats()[i] : float(data.others()[i]);
  }
};

/// The base of a query (attention_base.h), for all lanes of a warp. They look at keys until one has a bias that is not
/// low: the first 32 ones, unless a mask hides these.
template <typename T, bool kRuns>
__device__ float baseOf(const Bias<T> &bias, const Sight<int64_t, true, kRuns> &sight,
                        const HeadBlocks &blocks, int64_t b, int64_t h, int64_t query) {
  if (!bias || query >= sight.queries)
    return 0.0f;
  int lane = int(threadIdx.x) % kWarp;
  int64_t number = sight.queryNumber + query, end = sight.keyNumber + sight.endOfAll(query);
  float largest = Largest::kNone;
  for (int64_t first = sight.keyNumber + sight.firstOfAll(query);
       first < end && !(largest >= float(kLowBias)); first += kWarp) {
    int64_t key = first + lane;
    bool seen = key < end && blocks.meet(number, number, key, key + 1);
    float own = seen ? bias.at(b, h, query, key) : Largest::kNone;
    largest = Largest::of(largest, overWarp<Largest>(own));
  }
  return partita_rt::baseOf(largest);
}

/// The probabilities of one head that dropout drops. `factor` of the others, unless there is no
/// dropout.
class HeadDrops {
  bool has;
  Drops drops;
  int64_t first, keys;

public:
  float scale;
  __device__ HeadDrops(const AttentionShape &shape, int64_t batch, int64_t head)
      : has(shape.dropout.ratio > 0.0), drops(0.0, 0, 0), first(0), keys(0), scale(1.0f) {
    if (!has)
      return;
    AttentionDrops all(shape);
    drops = all.drops;
    first = all.row(batch, head, 0);
    keys = all.keys;
    scale = all.scale;
  }
  __device__ bool operator()(int64_t query, int64_t key) const {
    return has && drops(first + query * keys + key);
  }
};

/// Elements between rows of a tile: odd, so that lanes that read one column of 32 rows hit 32
/// banks.
__device__ __host__ constexpr int pitchOf(int64_t width) { return int(width) | 1; }

/// tile[kTileRows, pitch] = rows [first, first + kTileRows) of a head of `count`, followed by
/// zeros.
template <typename T>
__device__ void loadTile(float *tile, const HeadRows<const T> &head, int64_t first, int64_t count,
                         int64_t width) {
  int pitch = pitchOf(width), packs = int(ceilDiv(width, kPack));
  for (int i = int(threadIdx.x); i < kTileRows * packs; i += kTileThreads) {
    int row = i / packs, column = (i - row * packs) * kPack;
    float v[kPack] = {};
    if (first + row < count)
      load(v, head.row(first + row) + column, width - column);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      if (column + j < width)
        tile[row * pitch + column + j] = v[j];
  }
}

/// products[i] = row kRowsOfWarp * warp + i of tile a times row `lane` of tile b.
__device__ inline void multiplyTiles(float (&dots)[kRowsOfWarp], const float *a, const float *b,
                                     int64_t width) {
  int pitch = pitchOf(width), lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  const float *rows = a + warp * kRowsOfWarp * pitch, *column = b + lane * pitch;
#pragma unroll
  for (float &each : dots)
    each = 0.0f;
  for (int d = 0; d < int(width); ++d)
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i)
      dots[i] += rows[i * pitch + d] * column[d];
}

/// sums[i][c] += the products of weights[row, j] and rows j of a tile, at element lane + 32 c, for
/// the warp's rows i. byColumn: weights are [j, row].
template <int kParts, bool byColumn>
__device__ void addWeightedRows(float (&sums)[kRowsOfWarp][kParts], const float *weights,
                                const float *tile, int64_t width) {
  int pitch = pitchOf(width), lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  for (int j = 0; j < kTileRows; ++j) {
    float weight[kRowsOfWarp];
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i) {
      int row = warp * kRowsOfWarp + i;
      weight[i] =
          byColumn ? weights[j * (kTileRows + 1) + row] : weights[row * (kTileRows + 1) + j];
    }
#pragma unroll
    for (int c = 0; c < kParts; ++c)
      if (lane + kWarp * c < int(width)) {
        float x = tile[j * pitch + lane + kWarp * c];
#pragma unroll
        for (int i = 0; i < kRowsOfWarp; ++i)
          sums[i][c] += weight[i] * x;
      }
  }
}

/// Writes factor * sums to the warp's rows, each element once, or `adds` them.
template <int kParts, typename T>
__device__ void storeRows(const HeadRows<T> &head, const float (&sums)[kRowsOfWarp][kParts],
                          int64_t first, int64_t count, int64_t width, float factor, bool adds) {
  int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) {
    int64_t row = first + warp * kRowsOfWarp + i;
#pragma unroll
    for (int c = 0; c < kParts; ++c)
      if (row < count && lane + kWarp * c < int(width)) {
        T &to = head.row(row)[lane + kWarp * c];
        to = adds ? float(to) + factor * sums[i][c] : factor * sums[i][c];
      }
  }
}

/// Calls body(parts) with the number of a head's elements per lane, as a constant.
template <typename Body> void withHeadParts(const AttentionShape &shape, Body body) {
  int64_t widest = most(shape.headDim, shape.valueDim);
  if (widest > kLargestHead)
    fail("attention: heads of %lld elements, at most %lld are possible", (long long)widest,
         (long long)kLargestHead);
  if (widest <= 128)
    body(std::integral_constant<int, 4>());
  else
    body(std::integral_constant<int, 8>());
}

inline dim3 attentionGrid(int64_t tiles, int64_t heads, int64_t batch) {
  if (heads > 65535 || batch > 65535)
    fail("attention: %lld heads of %lld sequences on a rank, at most 65535 of each are possible; "
         "compile with a smaller batch and more micro-batches (--accumulate)",
         (long long)heads, (long long)batch);
  return dim3(gridOf(tiles).x, unsigned(heads), unsigned(batch));
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_CUH
