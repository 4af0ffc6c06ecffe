// Kernels on one rank's float32 tensors (CPU).
//
// Conventions. Tensors are dense and row-major unless a stride is passed; shapes stand in brackets.
// Outputs come first. An output may be the same pointer as an input only where it says "in place".
// Gradients of parameters take `Write`: Set overwrites, Add accumulates (micro-batches, tied
// weights). Every kernel is deterministic: its result depends on its arguments alone, on no thread
// count and no alignment. Workspace is on the stack, below 1 MiB; attention also keeps two floats
// per query, and matrix products have packing buffers of a fixed size per thread. Elementwise
// operations are emitted as loops by the compiler (math.h), not found here.

#ifndef PARTITA_RT_KERNELS_H
#define PARTITA_RT_KERNELS_H

#include "partita_rt/types.h"

namespace partita_rt {

enum class Write : uint8_t { Set, Add };

//===-- Matrix products ---------------------------------------------------------------------===//

enum class Trans : uint8_t { No, Yes };

/// C[m, n] = alpha * op(A)[m, k] * op(B)[k, n] + beta * C. lda, ldb, ldc: elements between
/// consecutive rows of the *stored* matrix (A is stored [m, k], or [k, m] under Trans::Yes).
/// beta == 0 does not read C. One row or one column goes to sgemv.
void gemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
          int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/// C[m, n] = op(A) * op(B) + bias[n], the bias added to every row.
void gemmBias(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const float *a,
              int64_t lda, const float *b, int64_t ldb, const float *bias, float *c, int64_t ldc);

/// `batch` products; matrix i of A starts strideA elements after matrix i - 1 (0: shared).
void gemmBatched(Trans transA, Trans transB, int64_t batch, int64_t m, int64_t n, int64_t k,
                 float alpha, const float *a, int64_t lda, int64_t strideA, const float *b,
                 int64_t ldb, int64_t strideB, float beta, float *c, int64_t ldc, int64_t strideC);

//===-- Layer norm --------------------------------------------------------------------------===//

/// y[rows, width] = (x - mean) * rstd * weight + bias with rstd = 1 / sqrt(variance + epsilon), the
/// biased variance. weight and bias [width] may be null (1 and 0). mean and rstd [rows] are saved
/// for the backward pass; null: not saved. In place (y == x) is allowed.
void layerNormForward(float *y, float *mean, float *rstd, const float *x, const float *weight,
                      const float *bias, int64_t rows, int64_t width, float epsilon);

/// dx[rows, width] from dy, x and the saved statistics; dweight and dbias [width] by `write` (null:
/// not wanted). weight may be null. In place (dx == dy) is allowed. dxWrite Add: dx += ...
void layerNormBackward(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                       const float *weight, const float *mean, const float *rstd, int64_t rows,
                       int64_t width, Write write = Write::Set, Write dxWrite = Write::Set);

//===-- Root-mean-square norm ---------------------------------------------------------------===//

/// y[rows, width] = x * rstd * weight with rstd = 1 / sqrt(mean of x^2 + epsilon). weight [width]
/// may be null (1). rstd [rows] is saved for the backward pass; null: not saved. In place (y == x)
/// is allowed.
void rmsNormForward(float *y, float *rstd, const float *x, const float *weight, int64_t rows,
                    int64_t width, float epsilon);

/// As layerNormBackward.
void rmsNormBackward(float *dx, float *dweight, const float *dy, const float *x,
                     const float *weight, const float *rstd, int64_t rows, int64_t width,
                     Write write = Write::Set, Write dxWrite = Write::Set);

//===-- Softmax -----------------------------------------------------------------------------===//

/// y[rows, width] = softmax of each row. A row of -inf alone gives zeros. In place is allowed.
void softmaxForward(float *y, const float *x, int64_t rows, int64_t width);

/// dx = y * (dy - sum(y * dy)) per row. In place (dx == dy) is allowed.
void softmaxBackward(float *dx, const float *dy, const float *y, int64_t rows, int64_t width);

//===-- Attention ---------------------------------------------------------------------------===//

/// A [batch, sequence, heads, headDim] tensor in any layout (heads of at most 1024 elements):
/// element (b, s, h, d) stands at data[b * batchStride + s * rowStride + h * headStride + d].
/// Inside a packed [b, s, 3 * heads * d] projection, v is {qkv + 2 * heads * d, s * 3 * heads * d,
/// 3 * heads * d, d}.
template <typename T> struct HeadsOf {
  T *data;
  int64_t batchStride;
  int64_t rowStride;
  int64_t headStride;
};
using Heads = HeadsOf<float>;
using ConstHeads = HeadsOf<const float>;

struct AttentionShape {
  int64_t batch;
  int64_t heads;
  int64_t sequence;        ///< of queries
  int64_t keySequence;     ///< of keys and values
  int64_t headDim;         ///< of q and k
  int64_t valueDim;        ///< of v and out
  int64_t groups = 1;      ///< query heads per key/value head: k, v have heads / groups heads
  bool causal = true;      ///< query i sees keys j <= i + keySequence - sequence
  float scale = 1.0f;      ///< scores = scale * q.k, usually 1 / sqrt(headDim)
  int64_t window = 0;      ///< if not 0: of the keys up to its last, a query sees this many alone
  bool zeroHidden = false; ///< a query all of whose biased scores are -inf gets zeros, not NaN
};

/// What is added to the scores: element (b, h, i, j) stands at data[b * batchStride + h *
/// headStride + i * rowStride + j * columnStride]; a stride of 0 repeats, columnStride is 0 or 1.
template <typename T> struct ScoresOf {
  T *data = nullptr;
  int64_t batchStride = 0;
  int64_t headStride = 0;
  int64_t rowStride = 0;
  int64_t columnStride = 0;
};
using Scores = ScoresOf<float>;
using ConstScores = ScoresOf<const float>;

/// out = softmax(scale * q k^T + bias, masked) v, in tiles: the [sequence, keySequence] scores are
/// never stored. logSumExp [batch, heads, sequence] is saved for the backward pass; null: not
/// saved. A query that sees no key gets zeros.
void attentionForward(Heads out, float *logSumExp, ConstHeads q, ConstHeads k, ConstHeads v,
                      const AttentionShape &shape, ConstScores bias = {});

/// Overwrites dq, dk and dv (which may lie in one packed tensor, laid out as q, k and v or not),
/// and dbias, laid out as the bias, if it has data. Needs out and logSumExp of the forward pass.
/// delta [batch, heads, sequence] is workspace: sum over d of dout * out.
void attentionBackward(Heads dq, Heads dk, Heads dv, float *delta, ConstHeads dout, ConstHeads out,
                       const float *logSumExp, ConstHeads q, ConstHeads k, ConstHeads v,
                       const AttentionShape &shape, ConstScores bias = {}, Scores dbias = {});

//===-- Rotary position embedding -----------------------------------------------------------===//

/// Which elements of a row of n are a pair: i and i + n / 2, or 2i and 2i + 1.
enum class Pairs : uint8_t { Halves, Interleaved };

/// A quarter turn of every pair (a, b) of every row: (-b, a). Not in place.
void rotateHalf(float *y, const float *x, int64_t rows, int64_t width, Pairs pairs);

//===-- Dropout -----------------------------------------------------------------------------===//

/// The key of a step's random numbers: mix64(mix64(seed) + step).
uint64_t stepKey(uint64_t seed, int64_t step);

struct Dropout {
  double ratio;
  int64_t id; ///< of the op as imported
  int64_t key;
};

/// y[i...] = 0 where the element is dropped, else x / (1 - ratio). Element number n is dropped when
/// mix64(mix64(key + id) + n) >> 32 is below ratio * 2^32; its number is `first` plus its row-major
/// index in a tensor of shape `whole`. In place is allowed.
void dropout(float *y, const float *x, const Shape &shape, const Shape &whole,
             const Dropout &dropout, int64_t first);

//===-- Embedding ---------------------------------------------------------------------------===//

/// The tokens of a vocabulary of `whole` that a rank has rows for: first .. first + count - 1. A
/// number stands for all of them. Other tokens are other ranks'; those outside the whole are
/// errors.
struct TokenRows {
  int64_t whole, first, count;
  TokenRows(int64_t vocabulary) : whole(vocabulary), first(0), count(vocabulary) {}
  TokenRows(int64_t whole, int64_t first, int64_t count)
      : whole(whole), first(first), count(count) {}
  bool has(int64_t token) const { return token >= first && token < first + count; }
  /// How many of them are tokens: the last rank's rows may go beyond the whole.
  int64_t inside() const { return whole - first < count ? whole - first : count; }
};

/// y[n, width] = table[ids[n] - rows.first, :] of table [rows.count, width]; 0 for another rank's
/// id. Throws Error on an id outside 0 .. rows.whole-1. Negative ids are not counted from the end.
/// T: float, int64_t, int32_t or bool; Id: int64_t or int32_t.
template <typename T, typename Id>
void embeddingForward(T *y, const Id *ids, const T *table, int64_t n, int64_t width,
                      TokenRows rows);

/// dtable[rows.count, width]: row v gets the sum of the dy rows whose id is rows.first + v, added
/// in the order of n. Write::Set zeroes the table first.
void embeddingBackward(float *dtable, const float *dy, const int64_t *ids, int64_t n, int64_t width,
                       TokenRows rows, Write write = Write::Set);
void embeddingBackward(float *dtable, const float *dy, const int32_t *ids, int64_t n, int64_t width,
                       TokenRows rows, Write write = Write::Set);

/// y[t, i, :] = x[t, ids[t, i], :]: of each of the tables [rows, width] n rows. Throws Error on an
/// id outside 0 .. rows-1. T: float, int64_t, int32_t or bool; Id: int64_t or int32_t.
template <typename T, typename Id>
void takeForward(T *y, const Id *ids, const T *x, int64_t tables, int64_t n, int64_t rows,
                 int64_t width);

/// dx[t, r, :]: the sum of the dy[t, i, :] whose id is r, added in the order of i.
template <typename Id>
void takeBackward(float *dx, const float *dy, const Id *ids, int64_t tables, int64_t n,
                  int64_t rows, int64_t width);

//===-- Cross-entropy -----------------------------------------------------------------------===//

/// Per row: loss[n] = logSumExp[n] - logits[n, labels[n]]; rows whose label is ignoreIndex get
/// loss 0. Consecutive rows are `stride` elements apart (>= vocabulary). logSumExp is saved
/// for the backward pass. Throws Error on another label outside 0 .. vocabulary-1.
void crossEntropyForward(float *loss, float *logSumExp, const float *logits, const int64_t *labels,
                         int64_t rows, int64_t vocabulary, int64_t stride, int64_t ignoreIndex);

/// y[n] = log(sum(exp(x[n, :]))) of x [rows, columns.count], over the columns that are there.
void logSumExp(float *y, const float *x, int64_t rows, TokenRows columns);

/// loss[n] = logSumExp[n] - logits[n, labels[n] - vocabulary.first] where this rank has the label's
/// column, else 0; 0 for ignored rows. logits [rows, vocabulary.count]; logSumExp is the whole
/// row's.
void tokenLoss(float *loss, const float *logits, const float *logSumExp, const int64_t *labels,
               int64_t rows, TokenRows vocabulary, int64_t ignoreIndex);

/// dlogits[n, :] = dloss[n] * (softmax(logits[n, :]) - onehot(labels[n])), 0 for ignored rows, and
/// 0 for the padding columns vocabulary.inside() .. stride-1. In place (dlogits == logits) is
/// allowed. dloss is [rows], or one value for all rows when dlossStride is 0.
void crossEntropyBackward(float *dlogits, const float *dloss, int64_t dlossStride,
                          const float *logits, const float *logSumExp, const int64_t *labels,
                          int64_t rows, TokenRows vocabulary, int64_t stride, int64_t ignoreIndex);

/// How many rows and columns of logits exist at a time.
struct ClassifierBlock {
  int64_t rows, columns;
};

/// loss[n] as crossEntropyForward of the logits x w^T, which are made block by block:
/// x [rows, width], w [vocabulary, width]. scratch: block.rows * block.columns.
void classifierLoss(float *loss, const float *x, const float *w, const int64_t *labels,
                    int64_t rows, int64_t width, int64_t vocabulary, int64_t ignoreIndex,
                    float *scratch, ClassifierBlock block);

/// The same with the gradients dx [rows, width] and dw [vocabulary, width] for the cotangent dloss
/// (as in crossEntropyBackward). The logits of block.rows rows exist at a time; scratch:
/// block.rows * (vocabulary rounded up to whole blocks + block.columns).
void classifierLossGrad(float *loss, float *dx, float *dw, const float *dloss, int64_t dlossStride,
                        const float *x, const float *w, const int64_t *labels, int64_t rows,
                        int64_t width, int64_t vocabulary, int64_t ignoreIndex, float *scratch,
                        ClassifierBlock block);

/// Labels different from ignoreIndex.
int64_t countLabels(const int64_t *labels, int64_t n, int64_t ignoreIndex);

//===-- Copies ------------------------------------------------------------------------------===//

/// dst[i...] = src[i...] for every index of `shape`, strides in elements (a stride may be 0 in src:
/// broadcast). Covers transpose, slice, concat, expand. Elements of 1, 2, 4 or 8 bytes.
void stridedCopy(void *dst, const Shape &dstStrides, const void *src, const Shape &srcStrides,
                 const Shape &shape, int64_t elementBytes = 4);

/// `rows` rows of `width` floats between tensors of different row strides.
void copyRows(float *dst, int64_t dstStride, const float *src, int64_t srcStride, int64_t rows,
              int64_t width);

/// What a rank has of a dimension: `count` of its indices, from `first` on.
struct Indices {
  int64_t first, count;
};

/// y[outer, piece.count, inner] of x[outer, indices, inner]: index i is (piece.first + i) / times.
void repeat(float *y, const float *x, int64_t outer, int64_t indices, int64_t times, Indices piece,
            int64_t inner);
/// Its transpose: dx[outer, indices, inner] gets the sums, in the order of the indices of dy.
void repeatSum(float *dx, const float *dy, int64_t outer, int64_t indices, int64_t times,
               Indices piece, int64_t inner);

void fill(float *dst, float value, int64_t n);
template <typename T, typename V> void fill(T *dst, V value, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dst[i] = T(value);
}

/// sum[i] += x[i]: one micro-batch's share of a gradient.
void accumulate(float *sum, const float *x, int64_t n);

//===-- Reductions --------------------------------------------------------------------------===//

/// y[outer, inner] = sum of x[outer, n, inner] over n: inner == 1 reduces trailing dimensions,
/// outer == 1 leading ones. The order of additions is fixed by (outer, n, inner).
void reduceSum(float *y, const float *x, int64_t outer, int64_t n, int64_t inner,
               Write write = Write::Set);
void reduceMean(float *y, const float *x, int64_t outer, int64_t n, int64_t inner);
void reduceMax(float *y, const float *x, int64_t outer, int64_t n, int64_t inner);

/// y[width] = column sums of x[rows, width], rows `stride` elements apart: a bias gradient.
void columnSum(float *y, const float *x, int64_t rows, int64_t width, int64_t stride,
               Write write = Write::Set);

/// Sum of squares in double over blocks of 4096 elements, the blocks added in order.
double sumOfSquares(const float *x, int64_t n);

/// Sum of all elements, in double, by the same blocks.
double sumAll(const float *x, int64_t n);

//===-- Norms -------------------------------------------------------------------------------===//

/// An array with so many elements.
struct Elements {
  const float *data;
  int64_t count;
};

/// *sum: the squares of all arrays' elements, added up in double, array after array, each by
/// sumOfSquares.
void squareSum(float *sum, std::initializer_list<Elements> arrays);

/// *norm = sqrt(sum of *squares), in double.
void rootOfSum(float *norm, std::initializer_list<const float *> squares);

/// *scale: what gradients of this norm are multiplied by so that it is at most maxNorm:
/// 1 / max(1, (norm + 1e-6) / maxNorm), as PyTorch and DeepSpeed have it; 1 where maxNorm is 0.
/// Not-a-number where the norm is infinite or none: no multiple of such gradients is finite.
void clipScale(float *scale, const float *norm, double maxNorm);

/// *ratio = sqrt(squares[0]) / sqrt(squares[1]) within [least, most]; 1 where one of them is 0
/// (LAMB's trust ratio, arXiv 1904.00962).
void trustRatio(float *ratio, const float *squares, double least, double most);

} // namespace partita_rt

#endif // PARTITA_RT_KERNELS_H
