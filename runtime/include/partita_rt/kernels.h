// Kernels on one rank's tensors (CPU).
//
// Types. A tensor of activations, parameters or gradients is stored in T: float, Half or BFloat16
// (half.h), one type per call except where another letter or FloatOr is used. Statistics, losses,
// the gradient of attention's bias and workspace are float. Arithmetic is float: a kernel computes
// on 16-bit operands exactly what it computes on the same numbers in float, in the same order, and
// rounds each element of its results once, to nearest. The same holds for sums over rows, blocks,
// keys or tokens. With Write::Add a 16-bit element is read, added to in float and rounded.
// (Comments name the exceptions.)
//
// Conventions. Tensors are dense and row-major unless a stride is passed; shapes are in brackets.
// Outputs come first. An output may be the same pointer as an input only where it says "in place".
// Gradients of parameters take `Write`: Set overwrites, Add accumulates (micro-batches, tied
// weights). Every kernel is deterministic: its result depends only on its arguments, not on thread
// counts or alignment. Workspace is on the stack, below 1 MiB; attention also keeps two floats
// per query (for a 16-bit result 256 KiB more), and matmuls have packing buffers of a fixed
// size per thread (for 16-bit operands 6 MiB more). Elementwise operations are not here: the compiler
// emits them as loops (math.h).

#ifndef PARTITA_RT_KERNELS_H
#define PARTITA_RT_KERNELS_H

#include "partita_rt/attention.h"
#include "partita_rt/float_or.h"
#include "partita_rt/fp8.h"
#include "partita_rt/frozen_ratio.h"
#include "partita_rt/half.h"
#include "partita_rt/loss_scaler.h"
#include "partita_rt/tensors.h"
#include "partita_rt/types.h"
#include "partita_rt/workspaces.h"

#include <initializer_list>
#include <vector>

namespace partita_rt {

struct Rank;

enum class Write : uint8_t { Set, Add };

//===-- Matmuls -----------------------------------------------------------------------------===//

enum class Trans : uint8_t { No, Yes };

/// C[m, n] = alpha * op(A)[m, k] * op(B)[k, n] + beta * C. lda, ldb, ldc: elements between
/// consecutive rows of the *stored* matrix (A is stored [m, k], or [k, m] under Trans::Yes).
/// beta == 0 does not read C. One row or one column goes to sgemv. A, B, C: float or one 16-bit
/// type, in any combination. 16-bit operands are widened panel by panel (gemm.cpp).
template <typename A, typename B, typename C>
void gemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, float alpha, const A *a,
          int64_t lda, const B *b, int64_t ldb, float beta, C *c, int64_t ldc);

/// C[m, n] = op(A) * op(B) + bias[n], the bias added to every row. V: float or the 16-bit type.
template <typename A, typename B, typename V, typename C>
void gemmBias(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const A *a, int64_t lda,
              const B *b, int64_t ldb, const V *bias, C *c, int64_t ldc);

/// Computes `batch` matmuls; matrix i of A starts strideA elements after matrix i - 1 (0: shared).
template <typename A, typename B, typename C>
void gemmBatched(Trans transA, Trans transB, int64_t batch, int64_t m, int64_t n, int64_t k,
                 float alpha, const A *a, int64_t lda, int64_t strideA, const B *b, int64_t ldb,
                 int64_t strideB, float beta, C *c, int64_t ldc, int64_t strideC);

//===-- 8 bits and a scale per block (int8_blocks.h) ----------------------------------------===//

/// values[n] and scales[n / block] of x[n], in blocks of consecutive elements, which divide n.
template <typename X>
void quantizeBlocks(int8_t *values, float *scales, const X *x, int64_t block, int64_t n);
/// x[n] = values times their blocks' scales.
template <typename X>
void dequantizeBlocks(X *x, const int8_t *values, const float *scales, int64_t block, int64_t n);
/// y[n]: what both leave of x[n], bit for bit. y may be x.
template <typename X> void roundBlocks(X *y, const X *x, int64_t block, int64_t n);

//===-- Chunks of 4 bits and a scale per block (int4_chunks.h) ------------------------------===//

/// x[n] in a chunk of `chunk` elements for each rank, the last ones padded with zeros: that of rank r at chunks + offset + r * stride, both of
/// which are multiples of 4, as `block` is one of 8.
template <typename X>
void quantizeChunks(int8_t *chunks, int64_t offset, int64_t stride, const X *x, int64_t n,
                    int64_t chunk, int64_t ranks, int64_t block);
/// sum[chunk] = the chunks of all ranks, which lie like that, added up in their order.
template <typename X>
void sumChunks(X *sum, const int8_t *chunks, int64_t offset, int64_t stride, int64_t chunk,
               int64_t ranks, int64_t block);

//===-- Matmuls in 8 bits -------------------------------------------------------------------===//

/// y[n] = x / *scale, rounded to F (Float8E4M3 or Float8E5M2). *scale is a power of two. max: raised
/// to the max of |x| over finite elements, or null.
template <typename F, typename X>
void quantize(F *y, const X *x, const float *scale, float *max, int64_t n);

enum class Fp8 : uint8_t { E4M3, E5M2 };
/// y[n] = x rounded as by quantize, times *scale: what a matmul of 8-bit operands reads.
template <typename X>
void throughFp8(Fp8 format, X *y, const X *x, const float *scale, float *max, int64_t n);

/// C[m, n] = *scaleA * *scaleB * op(A) * op(B), plus bias[n] in every row or plus addend[m, n] unless
/// it is null, all dense, sums in float; the bits are those of gemm of the scaled numbers. C may be
/// the addend.
template <typename A, typename B, typename C>
void scaledGemm(Trans transA, Trans transB, int64_t m, int64_t n, int64_t k, const A *a,
                const float *scaleA, const B *b, const float *scaleB, C *c,
                std::common_type_t<const C *> bias = nullptr,
                std::common_type_t<const C *> addend = nullptr);

//===-- Layer norm --------------------------------------------------------------------------===//

/// y[rows, width] = (x - mean) * rstd * weight + bias with rstd = 1 / sqrt(variance + epsilon), the
/// biased variance. weight and bias [width] may be null (1 and 0). mean and rstd [rows] are saved
/// for the backward pass; null: not saved. In place (y == x) is allowed.
template <typename T>
void layerNormForward(T *y, float *mean, float *rstd, const T *x, FloatOr<const T> weight,
                      FloatOr<const T> bias, int64_t rows, int64_t width, float epsilon);

/// dx[rows, width] from dy, x and the saved statistics; dweight, dbias and the sums of dx's columns
/// [width] by `write` (null: not computed). weight may be null. In place (dx == dy) is allowed.
/// dxWrite Add: dx += ..., and the sums are those of the new dx.
template <typename T>
void layerNormBackward(T *dx, FloatOr<T> dweight, FloatOr<T> dbias, FloatOr<T> sums, const T *dy,
                       const T *x, FloatOr<const T> weight, const float *mean, const float *rstd,
                       int64_t rows, int64_t width, Write write = Write::Set,
                       Write dxWrite = Write::Set);

//===-- Root-mean-square norm ---------------------------------------------------------------===//

/// y[rows, width] = x * rstd * weight with rstd = 1 / sqrt(mean of x^2 + epsilon). weight [width]
/// may be null (1). rstd [rows] is saved for the backward pass; null: not saved. In place (y == x)
/// is allowed.
template <typename T>
void rmsNormForward(T *y, float *rstd, const T *x, FloatOr<const T> weight, int64_t rows,
                    int64_t width, float epsilon);

/// Like layerNormBackward.
template <typename T>
void rmsNormBackward(T *dx, FloatOr<T> dweight, const T *dy, const T *x, FloatOr<const T> weight,
                     const float *rstd, int64_t rows, int64_t width, Write write = Write::Set,
                     Write dxWrite = Write::Set);

//===-- Softmax -----------------------------------------------------------------------------===//

/// y[rows, width] = softmax of each row. A row with only -inf gives zeros. In place is allowed.
template <typename T> void softmaxForward(T *y, const T *x, int64_t rows, int64_t width);

/// dx = y * (dy - sum(y * dy)) per row. In place (dx == dy) is allowed.
template <typename T>
void softmaxBackward(T *dx, const T *dy, const T *y, int64_t rows, int64_t width);

//===-- Rotary position embedding -----------------------------------------------------------===//

/// The pairs of elements in a row of n: i and i + n / 2, or 2i and 2i + 1.
enum class Pairs : uint8_t { Halves, Interleaved };

/// Turns every pair (a, b) of every row by a quarter: (-b, a). Not in place.
template <typename T> void rotateHalf(T *y, const T *x, int64_t rows, int64_t width, Pairs pairs);

/// Rotary position embedding (Su et al., arXiv 2104.09864) of the rows of x, which rotates their
/// pairs (a, b): y = x cos + turned(x) sin, turned(a, b) = (-b, a). With Turn::Back it applies the
/// transpose, y = x cos - turned(x sin), which maps y's cotangent to x's. In float, rounded once.
///
/// All have `shape`, whose last dimension is a row, and strides in elements: 1 for the last, 0 where
/// angles repeat. In place if y and x have the same strides.
enum class Turn : uint8_t { Forth, Back };
template <typename T>
void rotary(T *y, const Shape &yStrides, const T *x, const Shape &xStrides, const float *cos,
            const Shape &cosStrides, const float *sin, const Shape &sinStrides, const Shape &shape,
            Pairs pairs, Turn turn);

//===-- Dropout -----------------------------------------------------------------------------===//

/// Returns the key of a step's random numbers (random.h: keyOfStep).
uint64_t stepKey(uint64_t seed, int64_t step);

struct Dropout {
  double ratio;
  int64_t id; ///< of the op as imported
  int64_t key;
};

/// y[i...] = 0 if the element is dropped (random.h: Drops), else x / (1 - ratio). Its number is
/// `first` plus its row-major index in a tensor of shape `full`. In place is allowed.
template <typename T>
void dropout(T *y, const T *x, const Shape &shape, const Shape &full, const Dropout &dropout,
             int64_t first);

//===-- Embedding ---------------------------------------------------------------------------===//

/// The tokens of a vocabulary of `full` for which a rank has rows: first .. first + count - 1. A
/// plain number means all of them. Other ranks have the other tokens; tokens outside the vocabulary
/// are errors.
struct TokenRows {
  int64_t full, first, count;
  PARTITA_RT_HOST_DEVICE TokenRows(int64_t vocabulary)
      : full(vocabulary), first(0), count(vocabulary) {}
  PARTITA_RT_HOST_DEVICE TokenRows(int64_t full, int64_t first, int64_t count)
      : full(full), first(first), count(count) {}
  PARTITA_RT_HOST_DEVICE bool has(int64_t token) const {
    return token >= first && token < first + count;
  }
  /// The number of rows that are tokens: the last rank's rows may go beyond the vocabulary.
  PARTITA_RT_HOST_DEVICE int64_t inside() const {
    return full - first < count ? full - first : count;
  }
};

/// y[n, width] = table[ids[n] - rows.first, :] of table [rows.count, width]; 0 for another rank's
/// id. Throws Error on an id outside 0 .. rows.full-1. Negative ids do not count from the end. T:
/// float, Half, BFloat16, int64_t, int32_t or bool; Id: int64_t or int32_t.
template <typename T, typename Id>
void embeddingForward(T *y, const Id *ids, const T *table, int64_t n, int64_t width,
                      TokenRows rows);

/// y[n, width] = embeddingForward's row + addend[n mod period, :] of addend [period, width] (positions
/// of tokens), in float, rounded once. n is a multiple of the period. In place if that is n. T: float, Half or
/// BFloat16.
template <typename T, typename Id>
void embeddingAdd(T *y, const Id *ids, const T *table, const T *addend, int64_t period, int64_t n,
                  int64_t width, TokenRows rows);

/// dtable[rows.count, width]: row v gets the sum of the dy rows whose id is rows.first + v, added
/// in the order of n; the id `padding` adds nothing. Write::Set zeroes the table first; Write::Add adds
/// complete sums. G: float or T; the sums of a 16-bit table, and Write::Add, take another eight bytes of
/// memory per id.
template <typename G, typename T, typename Id>
void embeddingBackward(G *dtable, const T *dy, const Id *ids, int64_t n, int64_t width,
                       TokenRows rows, Write write = Write::Set, int64_t padding = -1);

/// y[t, i, :] = x[t, ids[t, i], :]: n rows of each table [rows, width]. Throws Error on an
/// id outside 0 .. rows-1. T and Id as in embeddingForward.
template <typename T, typename Id>
void takeForward(T *y, const Id *ids, const T *x, int64_t tables, int64_t n, int64_t rows,
                 int64_t width);

/// dx[t, r, :]: the sum of the dy[t, i, :] whose id is r, added in the order of i. G and memory as
/// in embeddingBackward.
template <typename G, typename T, typename Id>
void takeBackward(G *dx, const T *dy, const Id *ids, int64_t tables, int64_t n, int64_t rows,
                  int64_t width);

//===-- Cross-entropy -----------------------------------------------------------------------===//

/// Per row: loss[n] = logSumExp[n] - logits[n, labels[n]]; rows whose label is ignoreIndex get
/// loss 0. Consecutive rows are `stride` elements apart (>= vocabulary). logSumExp is saved
/// for the backward pass. Throws Error on another label outside 0 .. vocabulary-1.
template <typename T>
void crossEntropyForward(float *loss, float *logSumExp, const T *logits, const int64_t *labels,
                         int64_t rows, int64_t vocabulary, int64_t stride, int64_t ignoreIndex);

/// y[n] = log(sum(exp(x[n, :]))) of x [rows, columns.count], over the first columns.inside() columns.
template <typename T> void logSumExp(float *y, const T *x, int64_t rows, TokenRows columns);

/// loss[n] = logSumExp[n] - logits[n, labels[n] - vocabulary.first] if this rank has the label's
/// column, else 0; 0 for ignored rows. logits [rows, vocabulary.count]; logSumExp covers the full
/// row.
template <typename T>
void tokenLoss(float *loss, const T *logits, const float *logSumExp, const int64_t *labels,
               int64_t rows, TokenRows vocabulary, int64_t ignoreIndex);

/// dlogits[n, :] = dloss[n] * (softmax(logits[n, :]) - onehot(labels[n])), 0 for ignored rows, and
/// 0 for the padding columns vocabulary.inside() .. stride-1. In place (dlogits == logits) is
/// allowed. dloss is [rows], or one value for all rows when dlossStride is 0.
template <typename T>
void crossEntropyBackward(T *dlogits, const float *dloss, int64_t dlossStride, const T *logits,
                          const float *logSumExp, const int64_t *labels, int64_t rows,
                          TokenRows vocabulary, int64_t stride, int64_t ignoreIndex);

/// Rows of a matrix, and how many it has in memory: those behind them are zeros.
struct PaddedRows {
  PaddedRows(int64_t rows) : rows(rows), inMemory(rows) {}
  PaddedRows(int64_t rows, int64_t inMemory) : rows(rows), inMemory(inMemory) {}
  int64_t rows, inMemory;
};

/// The numbers of rows and columns of logits that exist at a time.
struct ClassifierBlock {
  int64_t rows, columns;
};

/// loss[n] as crossEntropyForward of the logits x w^T, which are computed block by block: x [rows,
/// width], w [vocabulary, width]. scratch: block.rows * block.columns floats.
template <typename T>
void classifierLoss(float *loss, const T *x, const T *w, const int64_t *labels, int64_t rows,
                    int64_t width, PaddedRows vocabulary, int64_t ignoreIndex, float *scratch,
                    ClassifierBlock block);

/// Like classifierLoss, and also computes the gradients dx [rows, width] and dw [vocabulary, width]
/// for the cotangent dloss (as in crossEntropyBackward). The logits of block.rows rows exist at a
/// time; scratch: block.rows * (vocabulary rounded up to full blocks + block.columns), then for
/// 16-bit x another block.rows * width. G: float or T. If there are more than block.rows rows, the
/// sums of a 16-bit dw take another vocabulary * width.
template <typename T, typename G>
void classifierLossGrad(float *loss, T *dx, G *dw, const float *dloss, int64_t dlossStride,
                        const T *x, const T *w, const int64_t *labels, int64_t rows, int64_t width,
                        PaddedRows vocabulary, int64_t ignoreIndex, float *scratch,
                        ClassifierBlock block);

/// Returns the number of labels different from ignoreIndex.
int64_t countLabels(const int64_t *labels, int64_t n, int64_t ignoreIndex);

//===-- Copies ------------------------------------------------------------------------------===//

/// dst[i...] = src[i...] for every index of `shape`, strides in elements (a stride may be 0 in src:
/// broadcast). Covers transpose, slice, concat, expand. Elements of 1, 2, 4 or 8 bytes.
void stridedCopy(void *dst, const Shape &dstStrides, const void *src, const Shape &srcStrides,
                 const Shape &shape, int64_t elementBytes = 4);

/// Copies `rows` rows of `width` elements between tensors of different row strides.
template <typename T>
void copyRows(T *dst, int64_t dstStride, const T *src, int64_t srcStride, int64_t rows,
              int64_t width);

/// dst[i] = src[i]: a cast, exact or rounding once. D, S: float, Half, BFloat16.
template <typename D, typename S> void convert(D *dst, const S *src, int64_t n);

/// dst[i] = src[i] rounded stochastically (roundStochastically), by the upper sixteen bits of
/// mix64(key + first + i), so element number first + i is the same in every layout.
void convertStochastically(BFloat16 *dst, const float *src, int64_t n, uint64_t key, int64_t first);

/// A rank's shard of a dimension: `count` of its indices, from `first` on.
struct Indices {
  int64_t first, count;
};

/// y[outer, shard.count, inner] of x[outer, indices, inner]: index i is (shard.first + i) / times.
template <typename T>
void repeat(T *y, const T *x, int64_t outer, int64_t indices, int64_t times, Indices shard,
            int64_t inner);
/// Its transpose: dx[outer, indices, inner] gets the sums, in the order of the indices of dy.
template <typename T>
void repeatSum(T *dx, const T *dy, int64_t outer, int64_t indices, int64_t times, Indices shard,
               int64_t inner);

void fill(float *dst, float value, int64_t n);
template <typename T, typename V> void fill(T *dst, V value, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dst[i] = T(value);
}

/// sum[i] += x[i]: one micro-batch's term of a gradient. G: float or T.
template <typename G, typename T> void accumulate(G *sum, const T *x, int64_t n);

//===-- Reductions --------------------------------------------------------------------------===//

/// y[outer, inner] = sum of x[outer, n, inner] over n: inner == 1 reduces trailing dimensions,
/// outer == 1 leading ones. The order of additions is fixed by (outer, n, inner). Y: float or T.
template <typename Y, typename T>
void reduceSum(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner, Write write = Write::Set);
template <typename Y, typename T>
void reduceMean(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner);
template <typename Y, typename T>
void reduceMax(Y *y, const T *x, int64_t outer, int64_t n, int64_t inner);

/// y[width] = column sums of x[rows, width], rows `stride` elements apart: a bias gradient. Y:
/// float or T.
template <typename Y, typename T>
void columnSum(Y *y, const T *x, int64_t rows, int64_t width, int64_t stride,
               Write write = Write::Set);

/// Sum of squares in double over blocks of 4096 elements, the blocks added in order.
template <typename T> double sumOfSquares(const T *x, int64_t n);

//===-- Norms -------------------------------------------------------------------------------===//

/// An array with `count` elements.
struct Elements {
  const void *data;
  int64_t count;
  DType dtype; ///< Float32, Float16, BFloat16
  template <typename T>
  Elements(const T *data, int64_t count) : data(data), count(count), dtype(kDTypeOf<T>) {}
};

/// The tensors of a column of a table.
template <int kColumns, typename T>
std::vector<Elements> elementsOf(const TensorRows<kColumns> &rows, int column, const T *base) {
  std::vector<Elements> arrays;
  for (const TensorRow<kColumns> &row : rows)
    arrays.emplace_back(moved(base, row.offsets[column]), row.elements);
  return arrays;
}

/// sums[i] = sumOfSquares of array i.
void squareSum(double *sums, const Elements *arrays, size_t count);
inline void squareSum(double *sums, std::initializer_list<Elements> arrays) {
  squareSum(sums, arrays.begin(), arrays.size());
}
template <int kColumns, typename T>
void squareSum(double *sums, const TensorRows<kColumns> &rows, int column, const T *base) {
  std::vector<Elements> arrays = elementsOf(rows, column, base);
  squareSum(sums, arrays.data(), arrays.size());
}

/// An array of sums of squares.
struct Squares {
  const double *sums;
  int64_t count;
};

/// *norm = sqrt(sum of all), in double.
void rootOfSum(float *norm, std::initializer_list<Squares> squares);

/// Reports the first parameter whose sum of squares is not finite, if there is one: its gradient has an
/// element, on some rank, that is infinite or NaN. `parameters` has the parameter's number in the
/// program for each of the sums, in order.
void firstNonfinite(Rank &rank, const Squares *squares, size_t count, const int *parameters);
inline void firstNonfinite(Rank &rank, std::initializer_list<Squares> squares,
                           std::initializer_list<int> parameters) {
  firstNonfinite(rank, squares.begin(), squares.size(), parameters.begin());
}
/// The parameters of a table's rows, with a sum for each.
template <int kColumns> std::vector<int> parametersOf(const TensorRows<kColumns> &rows) {
  std::vector<int> parameters;
  for (const TensorRow<kColumns> &row : rows)
    parameters.push_back(row.parameter);
  return parameters;
}
template <int kColumns>
void firstNonfinite(Rank &rank, const double *sums, const TensorRows<kColumns> &rows) {
  Squares squares{sums, rows.count};
  firstNonfinite(rank, &squares, 1, parametersOf(rows).data());
}

/// *scale: the factor that brings gradients with this norm to at most maxNorm:
/// 1 / max(1, (norm + 1e-6) / maxNorm), PyTorch's and DeepSpeed's formula; 1 if maxNorm is 0.
/// NaN if the norm is infinite or NaN: no multiple of such gradients is finite.
void clipScale(float *scale, const float *norm, double maxNorm);

/// *ratio = sqrt(squares[0]) / sqrt(squares[1]) within [least, most]; 1 if one of them is 0
/// (LAMB's trust ratio, arXiv 1904.00962).
void trustRatio(float *ratio, const double *squares, double least, double most);

/// 1-bit LAMB's ratio (frozen_ratio.h) of step *t; *coefficient and *factor are updated, unless there is an *apply and it is 0. squares[3], largest[1].
void frozenRatio(float *ratio, float *coefficient, float *factor, const double *squares,
                 const double *largest, const float *t, const float *apply,
                 const FrozenRatioOptions &options);

//===-- Loss scaling ------------------------------------------------------------------------===//

/// *to = *value / *scale.
inline void unscale(float *to, const float *value, const float *scale) { *to = *value / *scale; }

/// *finite: 1 if the norm is finite, else 0.
void allFinite(float *finite, const float *norm);

/// Updates the states of a loss scale after a step (loss_scaler.h), and the number of skipped steps, in
/// place. The rank reports the scale of the step, and whether the run must end.
void updateScale(Rank &rank, float *scale, int64_t *steps, int64_t *lastOverflow,
                 int64_t *hysteresis, int64_t *skipped, const float *finite,
                 const LossScalerOptions &options);

} // namespace partita_rt

#endif // PARTITA_RT_KERNELS_H
