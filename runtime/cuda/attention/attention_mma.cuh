// Attention of 16-bit heads on tensor cores: supported calls, tiles in shared memory, matmuls of
// fragments. The forward and backward passes are in attention_mma_*.cu, modeled on FlashAttention-2
// (Dao, arXiv 2307.08691). attention_wgmma_*.cu take precedence for the calls that they support.
//
// A tile's rows are D + 8 elements apart, an odd number of 16 bytes: the eight rows of an 8 x 8
// matrix hit all banks, and addresses are a base and constants.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_CUH

#include "cuda/attention/attention_sums.cuh"
#include "cuda/attention/mma.cuh"
#include "cuda/attention/packs.h"
#include "cuda/kernels/power_of_two.cuh"

namespace partita_rt::cuda {

/// The only rule for tensor cores: 16-bit heads of at most 128 elements, with a positive scale and
/// rows that an int can number; with dropout, rows of probabilities that begin at multiples of four.
/// attention_forward.cu and attention_backward.cu take the others, and compute every dbias. Of a step, `shape` is
/// of one run of queries and one of keys (SequenceRuns).
template <typename T> bool onTensorCores(const AttentionShape &shape) {
  int64_t queries = fullLength(shape.queries, shape.sequence),
          keys = fullLength(shape.keys, shape.keySequence);
  return sizeof(T) == 2 && shape.scale > 0.0f && shape.headDim <= 128 && shape.valueDim <= 128 &&
         shape.window >= 0 &&
         (shape.dropout.ratio == 0.0 || (shape.keySequence % 4 == 0 && keys % 4 == 0)) &&
         most(queries, keys) < int64_t(1) << 30;
}

constexpr float kLn2 = 0.693147180559945309f;

/// Every block has four warps.
constexpr int kMmaWarps = 4, kMmaThreads = kMmaWarps * kWarp;

/// Elements between rows of D elements in shared memory.
template <int D> constexpr int kMmaPitch = D + 8;
/// Bytes of this many rows; at most what every GPU since sm_80 has for a block (the limit is
/// sm_86's).
template <int D, int kRows> constexpr int mmaTileBytes() {
  static_assert(kRows * kMmaPitch<D> * 2 <= 98 * 1024);
  return kRows * kMmaPitch<D> * 2;
}

/// Starts copying rows [first, first + kRows) of a head of `count` rows and `width` elements into a
/// tile, padded with zeros. packs: inPacks of the head; if false the copy is complete on return.
template <int kRows, int D, typename T>
__device__ void copyTile(T *tile, const HeadRows<const T> &head, int first, int count, int width,
                         bool packs) {
  constexpr int kPacks = D / kPack, kTimes = (kRows * kPacks + kMmaThreads - 1) / kMmaThreads;
  if (packs) {
#pragma unroll
    for (int i = 0; i < kTimes; ++i) {
      int number = i * kMmaThreads + int(threadIdx.x), row = number / kPacks;
      int column = number % kPacks * kPack, elements = first + row < count ? width - column : 0;
      elements = elements < 0 ? 0 : elements > kPack ? kPack : elements;
      if (kRows * kPacks % kMmaThreads != 0 && row >= kRows)
        continue;
      copyAsync(tile + row * kMmaPitch<D> + column,
                elements > 0 ? head.row(first + row) + column : head.data, elements * 2);
    }
    return;
  }
#pragma unroll 1
  for (int i = int(threadIdx.x); i < kRows * D; i += kMmaThreads) {
    int row = i / D, column = i % D;
    T *to = tile + row * kMmaPitch<D> + column;
    if (first + row < count && column < width)
      *to = head.row(first + row)[column];
    else
      *to = 0.0f;
  }
}

// The position in a tile of a lane's row of four 8 x 8 matrices, for each role of a tile. Rows are
// those of A: 16 rows, 16 columns.
template <int D> __device__ inline int laneOfA(int lane) {
  return lane % 16 * kMmaPitch<D> + lane / 16 * 8;
}
/// Rows are B's columns (a matmul with the transposed tile): two times 8 rows, 16 columns.
template <int D> __device__ inline int laneOfRowsB(int lane) {
  return (lane / 16 * 8 + lane % 8) * kMmaPitch<D> + lane / 8 % 2 * 8;
}

/// sums[i][j] += A_i times the transposed tile b: A is rows 16 i of the tile a (kTilesA of them), b
/// has kRowsB rows; both have D columns. a, b: tile + the lane's position (laneOfA, laneOfRowsB).
template <int kTilesA, int kRowsB, int D, typename T>
__device__ inline void multiplyByRows(float (&sums)[kTilesA][kRowsB / 8][4], const T *a,
                                      const T *b) {
#pragma unroll
  for (int d = 0; d < D; d += 16) {
    uint32_t left[kTilesA][4];
#pragma unroll
    for (int i = 0; i < kTilesA; ++i)
      loadMatrices(left[i], a + i * 16 * kMmaPitch<D> + d);
#pragma unroll
    for (int j = 0; j < kRowsB; j += 16) {
      uint32_t right[4];
      loadMatrices(right, b + j * kMmaPitch<D> + d);
#pragma unroll
      for (int i = 0; i < kTilesA; ++i) {
        multiplyAdd<T>(sums[i][j / 8], left[i], right[0], right[1]);
        multiplyAdd<T>(sums[i][j / 8 + 1], left[i], right[2], right[3]);
      }
    }
  }
}

/// Returns a weight, 0 if dropout has marked it by a sign (markDropped).
template <bool kMarked> __device__ inline float kept(float weight) {
  return kMarked ? fmaxf(weight, 0.0f) : weight;
}

/// Rounds 16 columns of weights, laid out as C, to a left operand; those that are marked become 0.
template <typename T, bool kMarked = false>
__device__ inline void roundWeights(uint32_t (&rounded)[4], const float (&low)[4],
                                    const float (&high)[4]) {
  rounded[0] = roundPair<T>(kept<kMarked>(low[0]), kept<kMarked>(low[1]));
  rounded[1] = roundPair<T>(kept<kMarked>(low[2]), kept<kMarked>(low[3]));
  rounded[2] = roundPair<T>(kept<kMarked>(high[0]), kept<kMarked>(high[1]));
  rounded[3] = roundPair<T>(kept<kMarked>(high[2]), kept<kMarked>(high[3]));
}

/// sums[i] += left[i] times 16 rows of D elements of a tile. b: the first row + laneOfA.
template <int D, int kTilesA, typename T>
__device__ inline void addRounded(float (&sums)[kTilesA][D / 8][4],
                                  const uint32_t (&left)[kTilesA][4], const T *b) {
#pragma unroll
  for (int d = 0; d < D; d += 16) {
    uint32_t right[4];
    loadTransposed(right, b + d);
#pragma unroll
    for (int i = 0; i < kTilesA; ++i) {
      multiplyAdd<T>(sums[i][d / 8], left[i], right[0], right[1]);
      multiplyAdd<T>(sums[i][d / 8 + 1], left[i], right[2], right[3]);
    }
  }
}

/// sums[i][j] += W_i times the tile b: W is kRowsB columns of weights in registers, laid out as C
/// and rounded to T here, 0 if they are marked; b has kRowsB rows and D columns. b: tile + laneOfA.
template <int kTilesA, int kRowsB, int D, bool kMarked = false, typename T>
__device__ inline void addWeighted(float (&sums)[kTilesA][D / 8][4],
                                   const float (&weights)[kTilesA][kRowsB / 8][4], const T *b) {
#pragma unroll
  for (int j = 0; j < kRowsB; j += 16) {
    uint32_t left[kTilesA][4];
#pragma unroll
    for (int i = 0; i < kTilesA; ++i)
      roundWeights<T, kMarked>(left[i], weights[i][j / 8], weights[i][j / 8 + 1]);
    addRounded<D>(sums, left, b + j * kMmaPitch<D>);
  }
}

/// Hides the keys of a tile that the warp's queries do not see. query: the one of the lane's first
/// row.
template <int kTilesA, int kKeys, bool kDocuments, bool kRuns>
__device__ inline void hideKeys(float (&scores)[kTilesA][kKeys / 8][4],
                                const Sight<int, kDocuments, kRuns> &sight, int query, int key) {
  int column = int(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kTilesA; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int at = query + 16 * i + 8 * half;
      int end = sight.end(at) - key - column;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (8 * j + e >= end)
            scores[i][j][2 * half + e] = Largest::kNone;
      if (!sight.hidesBefore())
        continue;
      int first = sight.first(at) - key - column;
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (8 * j + e < first)
            scores[i][j][2 * half + e] = Largest::kNone;
    }
}

/// Reduces over the four lanes that share a row of C.
template <typename Op> __device__ inline float overRowOfC(float x) {
  x = Op::of(x, __shfl_xor_sync(kAllLanes, x, 1));
  return Op::of(x, __shfl_xor_sync(kAllLanes, x, 2));
}

/// The running softmax of a lane's rows of C: 16 i + 8 half + lane / 4.
template <int kTiles> struct Softmax {
  float largest[kTiles][2]; ///< factor * score
  float total[kTiles][2];   ///< over the lane's own columns

  __device__ Softmax() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[i][half] = Largest::kNone;
        total[i][half] = 0.0f;
      }
  }

  /// Turns scores into weights 2^(factor * score - largest). correction: the factor for earlier
  /// sums, exactly 1 if the maximum has not changed.
  template <int kColumns>
  __device__ void weigh(float (&scores)[kTiles][kColumns][4], float (&correction)[kTiles][2],
                        float factor) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float before = largest[i][half], now = Largest::kNone;
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
          now = fmaxf(now, fmaxf(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
        now = fmaxf(now, __shfl_xor_sync(kAllLanes, now, 1));
        now = fmaxf(now, __shfl_xor_sync(kAllLanes, now, 2));
        now = fmaxf(before, now * factor);
        largest[i][half] = now;
        float shift = now == Largest::kNone ? 0.0f : now;
        float sum[2] = {};
        correction[i][half] = powerOfTwo(before - shift);
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float &score = scores[i][j][2 * half + e];
            score = powerOfTwo(fmaf(score, factor, -shift));
            sum[e] += score;
          }
        total[i][half] = total[i][half] * correction[i][half] + (sum[0] + sum[1]);
      }
  }
};

/// The state of a warp's rows from the keys before: normalized sums, times `inverse`, and logSumExp. first: the
/// first of the rows.
template <int kTiles, int kColumns>
__device__ inline void loadState(float (&sums)[kTiles][kColumns][4], Softmax<kTiles> &softmax,
                                 const HeadRows<float> &out, const float *logSumExp, int first,
                                 int queries, int width, float inverse) {
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = first + 16 * i + 8 * half + lane / 4;
      float saved = row < queries ? logSumExp[row] : Largest::kNone;
      softmax.largest[i][half] = saved * kLog2E;
      softmax.total[i][half] = lane % 4 == 0 && saved != Largest::kNone ? 1.0f : 0.0f;
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int column = 8 * j + lane % 4 * 2 + e;
          bool inside = row < queries && column < width;
          sums[i][j][2 * half + e] = inside ? out.row(row)[column] * inverse : 0.0f;
        }
    }
}

template <int kTiles, int kColumns>
__device__ inline void correct(float (&sums)[kTiles][kColumns][4],
                               const float (&correction)[kTiles][2]) {
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[i][j][e] *= correction[i][e / 2];
}

/// Divides a warp's sums by the totals of their rows, times `factor`, and writes the rows' log-sum-exp for a head
/// with this many queries, unless it is not needed. A query that sees no key has `ofHidden`, and -inf plus this.
/// first: the first of the warp's rows.
template <int kTiles, int kColumns>
__device__ inline void normalize(float (&sums)[kTiles][kColumns][4], const Softmax<kTiles> &softmax,
                                 float *logSumExp, int first, int queries, float factor = 1.0f,
                                 float ofHidden = 0.0f) {
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = overRowOfC<Sum>(softmax.total[i][half]);
      bool hidden = total == 0.0f; // every score is -inf, or there are none
      float inverse = factor / total;
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          sums[i][j][e] = hidden ? ofHidden : sums[i][j][e] * inverse;
      int row = first + 16 * i + 8 * half + lane / 4;
      if (logSumExp && lane % 4 == 0 && row < queries)
        logSumExp[row] =
            hidden ? Largest::kNone + ofHidden : softmax.largest[i][half] * kLn2 + logf(total);
    }
}

/// Writes a warp's rows of C, rounded to T, to a head. They pass through rows of a tile that belong
/// to the warp, so that a row's elements are written side by side. first: the first of the warp's
/// rows.
template <int kTilesA, int D, typename T>
__device__ void storeRowsOfC(const HeadRows<T> &head, const float (&sums)[kTilesA][D / 8][4],
                             T *rows, int first, int count, int width, bool packs) {
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kTilesA; ++i)
#pragma unroll
    for (int j = 0; j < D / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        T *to = rows + (16 * i + 8 * half + lane / 4) * kMmaPitch<D> + 8 * j + lane % 4 * 2;
        *reinterpret_cast<uint32_t *>(to) =
            roundPair<T>(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
  __syncwarp();
  constexpr int kPacks = D / kPack;
#pragma unroll 4
  for (int i = lane; i < 16 * kTilesA * kPacks; i += kWarp) {
    int row = i / kPacks, column = i % kPacks * kPack;
    if (first + row >= count || column >= width)
      continue;
    const T *from = rows + row * kMmaPitch<D> + column;
    T *to = head.row(first + row) + column;
    if (packs && column + kPack <= width)
      *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
    else
      for (int j = 0; j < kPack && column + j < width; ++j)
        to[j] = from[j];
  }
}

/// Writes a warp's rows of C to a head of floats, or `adds` them. first: the first of the rows.
template <int kTilesA, int kColumns>
__device__ void storeFloatsOfC(const HeadRows<float> &head,
                               const float (&sums)[kTilesA][kColumns][4], int first, int count,
                               int width, bool adds) {
  int lane = int(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kTilesA; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = first + 16 * i + 8 * half + lane / 4;
      if (row >= count)
        continue;
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (int column = 8 * j + lane % 4 * 2 + e; column < width) {
            float &to = head.row(row)[column];
            to = adds ? to + sums[i][j][2 * half + e] : sums[i][j][2 * half + e];
          }
    }
}

/// Calls body(D) with the heads' elements in shared memory, as a constant; shorter heads are padded
/// with zeros.
template <typename Body> void withMmaHead(const AttentionShape &shape, Body body) {
  int64_t widest = most(shape.headDim, shape.valueDim);
  if (widest <= 64)
    body(std::integral_constant<int, 64>());
  else if (widest <= 80)
    body(std::integral_constant<int, 80>());
  else if (widest <= 96)
    body(std::integral_constant<int, 96>());
  else
    body(std::integral_constant<int, 128>());
}

/// What a kernel must be able to do besides the usual, as a constant. All: in one kernel whatever a call may have; what
/// it does not have costs a branch that all lanes take together.
enum class Extra : uint8_t { None, Documents, Dropout, Blocks, All };
template <Extra kExtra>
constexpr bool kHasFirstKeys = kExtra != Extra::None; // if the call has them
template <Extra kExtra> constexpr bool kMayDrop = kExtra == Extra::Dropout || kExtra == Extra::All;
template <Extra kExtra>
constexpr bool kHasBlocks = kExtra == Extra::Blocks || kExtra == Extra::All; // if the call has them
template <Extra kExtra> constexpr bool kMayBias = kExtra == Extra::All;
template <Extra kExtra> using ExtraOf = std::integral_constant<Extra, kExtra>;

/// Calls body(what the call needs) with a constant. kAll: false in kernels without layouts and biases. kFew: fewer
/// constants, for fewer kernels: what the call does not need is then not excluded.
template <bool kAll, bool kFew = false, typename Body>
void withExtra(const AttentionShape &shape, bool bias, Body body) {
  if constexpr (kAll)
    if (bias || (shape.blocks && (kFew || shape.dropout.ratio > 0.0)))
      return body(ExtraOf<Extra::All>());
  if constexpr (kAll && !kFew)
    if (shape.blocks)
      return body(ExtraOf<Extra::Blocks>());
  if (shape.dropout.ratio > 0.0)
    body(ExtraOf<Extra::Dropout>());
  else if (kFew || shape.firstKeys)
    body(ExtraOf<Extra::Documents>());
  else if constexpr (!kFew)
    body(ExtraOf<Extra::None>());
}

/// attentionForward for calls that are onTensorCores. T: Half, BFloat16.
template <typename T>
void attentionForwardMma(const Stream &stream, const HeadsOf<T> &out, float *logSumExp,
                         const HeadsOf<const T> &q, const HeadsOf<const T> &k,
                         const HeadsOf<const T> &v, const AttentionShape &shape,
                         const ScoresOf<const T> &bias = {});

/// One run of queries and one of keys of an attentionStep that is onTensorCores.
template <typename T>
void attentionStepMma(const Stream &stream, const Heads &out, float *logSumExp,
                      const HeadsOf<const T> &q, const HeadsOf<const T> &k,
                      const HeadsOf<const T> &v, const AttentionShape &shape,
                      const ScoresOf<const T> &bias, bool continues);

/// Does the same as attentionForwardMma without a bias by attention_wgmma_forward.cu. Returns false, without doing anything, if
/// onWarpGroups (attention_wgmma.cuh) does not support the call on this device.
template <typename T>
bool attentionForwardWgmma(const Stream &stream, const HeadsOf<T> &out, float *logSumExp,
                           const HeadsOf<const T> &q, const HeadsOf<const T> &k,
                           const HeadsOf<const T> &v, const AttentionShape &shape);

/// The operands of a call of attentionBackward that is onTensorCores; kStep: of one run of queries and one of
/// keys of an attentionStepBackward that is onTensorCores. With a bias, the workspace has delta and the bases
/// already (attention_backward.cu).
template <typename T, bool kStep = false> struct MmaBackward {
  HeadsOf<ResultOf<T, kStep>> dq, dk, dv;
  float *workspace;
  HeadsOf<const T> dout, out;
  const float *logSumExp;
  HeadsOf<const T> q, k, v;
  AttentionShape shape;
  Bias<T> bias = ScoresOf<const T>();
  bool addToQueries = false, addToKeys = false; ///< of a step: to dq; to dk and dv
  PartialSums sums = {};                        ///< of rows; not of a step
};
/// By mma.sync: jointly where attentionMmaSlots (workspaces.h) says so and attentionBackwardMmaJoint can, by tiles
/// elsewhere.
template <typename T>
void attentionBackwardMma(const Stream &stream, const MmaBackward<T> &operands);
/// In two launches (attention_mma_backward.cu).
template <typename T>
void attentionBackwardMmaByTiles(const Stream &stream, const MmaBackward<T> &operands);
/// In one launch of at most `blocks` blocks that take turns (attention_mma_joint_backward.cu). sums: attentionHeadSums
/// floats for each of `slots` slots, then attentionTurnCounters. Returns false, without doing anything, if
/// !isJointAttention (workspaces.h), with a bias, and if dq is not in packs.
template <typename T>
bool attentionBackwardMmaJoint(const Stream &stream, const MmaBackward<T> &operands, float *sums,
                               int64_t slots, int64_t blocks);
/// `prepares`: what the workspace has of these queries, before all other runs of keys.
template <typename T>
void attentionStepBackwardMma(const Stream &stream, const MmaBackward<T, true> &operands,
                              bool prepares);
/// Like attentionForwardWgmma, without a bias: jointly where attentionHeadBlocks or attentionTurnSlots
/// (workspaces.h) says so, by tiles elsewhere.
template <typename T>
bool attentionBackwardWgmma(const Stream &stream, const MmaBackward<T> &operands);
/// In two launches (attention_wgmma_backward.cu).
template <typename T>
bool attentionBackwardWgmmaByTiles(const Stream &stream, const MmaBackward<T> &operands);
/// In one launch of at most `blocks` blocks (attention_wgmma_joint_backward.cu), by turns, with `slots` slots of
/// attentionHeadSums floats and attentionTurnCounters behind them; with none by heads, with a slot for each block.
/// Also returns false where !isJointAttention (workspaces.h).
template <typename T>
bool attentionBackwardWgmmaJoint(const Stream &stream, const MmaBackward<T> &operands, float *sums,
                                 int64_t slots, int64_t blocks);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_MMA_CUH
