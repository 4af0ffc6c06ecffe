// Kernels on one rank's tensors (CUDA): those of partita_rt/kernels.h, which says what each one
// computes, with the stream as first argument. Names, order of arguments, what may be null and what
// may be in place are the same; kernels that only CUDA has are described here.
//
// Differences:
//   * A call returns when the kernels are launched. Numbers that a CPU kernel returns (sums,
//     counts) are written to device memory: a pointer comes first among the results.
//   * Scalars that a step computes (rate, loss scale, whether it applies) are device pointers.
//   * Indices out of range are reported through Stream::fault.
//   * Workspace that is not an argument is the stream's scratch memory (shapes.h).
//   * Sums, but those with one bit per element, have another order than the CPU's, but the same one
//     on every device and for every storage type: as on the CPU, a kernel with 16-bit operands is
//     the float kernel on the same numbers, rounded once, bit for bit. Exceptions: "Laws" in
//     runtime/cuda/README.md.

#ifndef PARTITA_RT_CUDA_KERNELS_H
#define PARTITA_RT_CUDA_KERNELS_H

#include "partita_rt/cuda/scalar.h"
#include "partita_rt/cuda/shapes.h"
#include "partita_rt/cuda/stream.h"
#include "partita_rt/kernels.h"

namespace partita_rt::cuda {

//===-- Matmuls -----------------------------------------------------------------------------===//

/// Uses cuBLASLt (runtime/cuda/matmuls/matmuls.h); sums in float, float operands without TF32.
/// Stored matrices whose rows begin at multiples of 16 bytes go to the tensor cores. Types as on
/// the CPU; those that are not isDirect (shapes.h) are first widened into scratch memory,
/// gemmScratch.
template <typename A, typename B, typename C>
void gemm(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
          float alpha, const A *a, int64_t lda, const B *b, int64_t ldb, float beta, C *c,
          int64_t ldc);
/// Scratch: gemmBiasScratch. A float bias of a 16-bit result is rounded to its type first.
template <typename A, typename B, typename V, typename C>
void gemmBias(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
              const A *a, int64_t lda, const B *b, int64_t ldb, const V *bias, C *c, int64_t ldc);
template <typename A, typename B, typename C>
void gemmBatched(const Stream &stream, Trans transA, Trans transB, int64_t batch, int64_t m,
                 int64_t n, int64_t k, float alpha, const A *a, int64_t lda, int64_t strideA,
                 const B *b, int64_t ldb, int64_t strideB, float beta, C *c, int64_t ldc,
                 int64_t strideC);

/// Matmuls with epilogues: one kernel if cuBLASLt has it (for a GELU, ldAux must be a multiple of 8
/// and aux 16-byte aligned); two if it does not, or if tuning found two faster, and then the value
/// stored in between is rounded. All of one type T, and gradients of parameters (gemmBiasGrad) in T
/// or float.
///
/// A pointer that may be nullptr: its type is not deduced.
template <typename Pointer> using OrNull = std::common_type_t<Pointer>;
/// aux[m, n] = op(A) op(B) + bias[n]; c = gelu(aux) in the tanh form. Without aux only c is written.
/// In one kernel, the GELU is that of the sum before it is rounded.
template <typename T>
void gemmBiasGelu(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
                  const T *a, int64_t lda, const T *b, int64_t ldb, const T *bias, T *c,
                  int64_t ldc, OrNull<T *> aux = nullptr, int64_t ldAux = 0);
/// c[m, n] = op(A) op(B) gelu'(aux[m, n]), and the sums of its columns unless null. Scratch with
/// sums: columnSumScratch(m, n).
template <typename T>
void gemmGeluGrad(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
                  const T *a, int64_t lda, const T *b, int64_t ldb, const T *aux, int64_t ldAux,
                  T *c, int64_t ldc, OrNull<T *> sums = nullptr);
/// c[m, n] = op(A) op(B) + addend[m, n], plus bias[n] unless it is null. c may be the addend, with
/// the same stride between rows.
template <typename T>
void gemmAdd(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
             const T *a, int64_t lda, const T *b, int64_t ldb, OrNull<const T *> bias,
             const T *addend, int64_t ldAddend, T *c, int64_t ldc);
/// The gradients of a weight and its bias: c[m, n] and sums by `write`, c = op(A) op(B), and the
/// sums over k of the operand that is the cotangent, dense in k: rows of A stored [k, m]
/// (Trans::Yes) into sums[m], or rows of B stored [k, n] (Trans::No) into sums[n]. Scratch:
/// gemmBiasGradScratch.
enum class Cotangent : uint8_t { A, B };
template <typename T, typename G>
void gemmBiasGrad(const Stream &stream, Cotangent cotangent, int64_t m, int64_t n, int64_t k,
                  const T *a, int64_t lda, const T *b, int64_t ldb, G *c, int64_t ldc, G *sums,
                  Write write = Write::Set);

//===-- 8 bits and a scale per block --------------------------------------------------------===//

template <typename X>
void quantizeBlocks(const Stream &stream, int8_t *values, float *scales, const X *x, int64_t block,
                    int64_t n);
template <typename X>
void dequantizeBlocks(const Stream &stream, X *x, const int8_t *values, const float *scales,
                      int64_t block, int64_t n);
template <typename X>
void roundBlocks(const Stream &stream, X *y, const X *x, int64_t block, int64_t n);

//===-- Chunks of 4 bits and a scale per block ----------------------------------------------===//

template <typename X>
void quantizeChunks(const Stream &stream, int8_t *chunks, int64_t offset, int64_t stride,
                    const X *x, int64_t n, int64_t chunk, int64_t ranks, int64_t block);
template <typename X>
void sumChunks(const Stream &stream, X *sum, const int8_t *chunks, int64_t offset, int64_t stride,
               int64_t chunk, int64_t ranks, int64_t block);

//===-- Matmuls in 8 bits -------------------------------------------------------------------===//

template <typename F, typename X>
void quantize(const Stream &stream, F *y, const X *x, const float *scale, float *max, int64_t n);
/// Also, or only if y is null, stores the transpose of x[rows, width] in 8 bits: columns[width, rows].
/// sums[width], unless null: of x's columns, with scratch quantizeSumsScratch(rows, width).
template <typename F, typename X>
void quantizeTransposed(const Stream &stream, OrNull<F *> y, F *columns, const X *x,
                        const float *scale, float *max, OrNull<X *> sums, int64_t rows,
                        int64_t width);
template <typename X>
void throughFp8(const Stream &stream, Fp8 format, X *y, const X *x, const float *scale, float *max,
                int64_t n);
/// For GPUs from compute capability 8.9 on. The matrix instructions read both operands along k: only
/// A is not transposed, and only B is. m, n and k are multiples of 16, addresses 16-byte aligned.
/// With two e4m3 operands, the instructions add in fewer bits than a float has (cuBLASLt's fast
/// accumulation, as in NVIDIA's recipe for forward passes). There may be a bias and an addend.
template <typename A, typename B, typename C>
void scaledGemm(const Stream &stream, Trans transA, Trans transB, int64_t m, int64_t n, int64_t k,
                const A *a, const float *scaleA, const B *b, const float *scaleB, C *c,
                OrNull<const C *> bias = nullptr, OrNull<const C *> addend = nullptr);

//===-- Norms of rows and softmax -----------------------------------------------------------===//

template <typename T>
void layerNormForward(const Stream &stream, T *y, float *mean, float *rstd, const T *x,
                      FloatOr<const T> weight, FloatOr<const T> bias, int64_t rows, int64_t width,
                      float epsilon);
/// Scratch: normBackwardScratch(rows, width, N), where N is 3 if sums are computed, else 2 if dbias
/// is, else 1 if dweight is, else 0.
template <typename T>
void layerNormBackward(const Stream &stream, T *dx, FloatOr<T> dweight, FloatOr<T> dbias,
                       FloatOr<T> sums, const T *dy, const T *x, FloatOr<const T> weight,
                       const float *mean, const float *rstd, int64_t rows, int64_t width,
                       Write write = Write::Set, Write dxWrite = Write::Set);

template <typename T>
void rmsNormForward(const Stream &stream, T *y, float *rstd, const T *x, FloatOr<const T> weight,
                    int64_t rows, int64_t width, float epsilon);
/// Scratch: normBackwardScratch(rows, width, 1), if dweight is computed.
template <typename T>
void rmsNormBackward(const Stream &stream, T *dx, FloatOr<T> dweight, const T *dy, const T *x,
                     FloatOr<const T> weight, const float *rstd, int64_t rows, int64_t width,
                     Write write = Write::Set, Write dxWrite = Write::Set);

template <typename T>
void softmaxForward(const Stream &stream, T *y, const T *x, int64_t rows, int64_t width);
template <typename T>
void softmaxBackward(const Stream &stream, T *dx, const T *dy, const T *y, int64_t rows,
                     int64_t width);

//===-- Attention ---------------------------------------------------------------------------===//

/// Heads of at most 256 elements. 16-bit heads of at most 128 are multiplied on tensor cores if the
/// scale is positive, with float sums: probabilities, and in the backward pass gradients of scores,
/// are rounded to T, each once, before they are multiplied with rows.
/// Scratch of attentionBackward with `sums`: AttentionSums::scratch.
#define PARTITA_RT_ATTENTION(T)                                                                    \
  void attentionForward(const Stream &stream, HeadsOf<T> out, float *logSumExp,                    \
                        HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,                \
                        const AttentionShape &shape, ScoresOf<const T> bias = {});                 \
  void attentionBackward(const Stream &stream, HeadsOf<T> dq, HeadsOf<T> dk, HeadsOf<T> dv,        \
                         float *workspace, HeadsOf<const T> dout, HeadsOf<const T> out,            \
                         const float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,           \
                         HeadsOf<const T> v, const AttentionShape &shape,                          \
                         ScoresOf<const T> bias = {}, Scores dbias = {}, RowSumsOf<T> sums = {});  \
  void attentionStep(const Stream &stream, HeadsOf<float> out, float *logSumExp,                   \
                     HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,                   \
                     const AttentionShape &shape, ScoresOf<const T> bias, bool continues);         \
  void attentionStepBackward(const Stream &stream, HeadsOf<float> dq, HeadsOf<float> dk,           \
                             HeadsOf<float> dv, float *workspace, HeadsOf<const T> dout,           \
                             HeadsOf<const T> out, const float *logSumExp, HeadsOf<const T> q,     \
                             HeadsOf<const T> k, HeadsOf<const T> v, const AttentionShape &shape,  \
                             ScoresOf<const T> bias, Scores dbias, bool continues);
PARTITA_RT_ATTENTION(float)
PARTITA_RT_ATTENTION(Half)
PARTITA_RT_ATTENTION(BFloat16)
#undef PARTITA_RT_ATTENTION

template <typename Id>
void documentStarts(const Stream &stream, int32_t *starts, const Id *ids, int64_t rows,
                    int64_t width);
template <typename Id>
void documentStartsAfter(const Stream &stream, int64_t token, int32_t *starts, const Id *ids,
                         int64_t rows, int64_t width);

/// Floats of attentionBackward's workspace on a GPU, enough for every type and with a bias.
constexpr int64_t attentionBackwardWorkspace(const AttentionShape &shape) {
  return attentionWorkspaceOnCuda(attentionWork(shape, DType::BFloat16));
}

//===-- Cross-entropy -----------------------------------------------------------------------===//

/// firstRow: the first row's number, for reports of invalid labels.
template <typename T>
void crossEntropyForward(const Stream &stream, float *loss, float *logSumExp, const T *logits,
                         const int64_t *labels, int64_t rows, int64_t vocabulary, int64_t stride,
                         int64_t ignoreIndex, int64_t firstRow = 0);
template <typename T>
void logSumExp(const Stream &stream, float *y, const T *x, int64_t rows, TokenRowsAt columns);
template <typename T>
void tokenLoss(const Stream &stream, float *loss, const T *logits, const float *logSumExp,
               const int64_t *labels, int64_t rows, TokenRowsAt vocabulary, int64_t ignoreIndex);
template <typename T>
void crossEntropyBackward(const Stream &stream, T *dlogits, const float *dloss, int64_t dlossStride,
                          const T *logits, const float *logSumExp, const int64_t *labels,
                          int64_t rows, TokenRowsAt vocabulary, int64_t stride,
                          int64_t ignoreIndex);
/// crossEntropyForward and crossEntropyBackward at once: the logits become their gradient, the
/// columns vocabulary .. stride-1 zeros.
template <typename T>
void crossEntropyLossGrad(const Stream &stream, float *loss, T *logits, const float *dloss,
                          int64_t dlossStride, const int64_t *labels, int64_t rows,
                          int64_t vocabulary, int64_t stride, int64_t ignoreIndex,
                          int64_t firstRow = 0);

/// A block has all logits of block.rows rows, rounded to T as if they were a tensor; block.columns:
/// classifierStride(vocabulary.inMemory) (shapes.h), the elements between rows. scratch, 16-byte
/// aligned: the block's logits, which classifierLossGrad makes their gradient in place, in full
/// floats; if there are several blocks, then the sums of a 16-bit dw, vocabulary.inMemory * width
/// floats. dw has no padding.
template <typename T>
void classifierLoss(const Stream &stream, float *loss, const T *x, const T *w,
                    const int64_t *labels, int64_t rows, int64_t width, PaddedRows vocabulary,
                    int64_t ignoreIndex, float *scratch, ClassifierBlock block);
template <typename T, typename G>
void classifierLossGrad(const Stream &stream, float *loss, T *dx, G *dw, const float *dloss,
                        int64_t dlossStride, const T *x, const T *w, const int64_t *labels,
                        int64_t rows, int64_t width, PaddedRows vocabulary, int64_t ignoreIndex,
                        float *scratch, ClassifierBlock block);
/// Writes the number of labels different from ignoreIndex to *count, as a float.
void countLabels(const Stream &stream, float *count, const int64_t *labels, int64_t n,
                 int64_t ignoreIndex);

//===-- Rows by number ----------------------------------------------------------------------===//

template <typename T, typename Id>
void embeddingForward(const Stream &stream, T *y, const Id *ids, const T *table, int64_t n,
                      int64_t width, TokenRowsAt rows);
template <typename T, typename Id>
void embeddingAdd(const Stream &stream, T *y, const Id *ids, const T *table, const T *addend,
                  int64_t period, int64_t n, int64_t width, TokenRowsAt rows);
/// Scratch: rowSumScratch(n, width).
template <typename G, typename T, typename Id>
void embeddingBackward(const Stream &stream, G *dtable, const T *dy, const Id *ids, int64_t n,
                       int64_t width, TokenRowsAt rows, Write write = Write::Set,
                       int64_t padding = -1);
template <typename T, typename Id>
void takeForward(const Stream &stream, T *y, const Id *ids, const T *x, int64_t tables, int64_t n,
                 int64_t rows, int64_t width);
/// Scratch: rowSumScratch(tables * n, width).
template <typename G, typename T, typename Id>
void takeBackward(const Stream &stream, G *dx, const T *dy, const Id *ids, int64_t tables,
                  int64_t n, int64_t rows, int64_t width);

//===-- Copies ------------------------------------------------------------------------------===//

void stridedCopy(const Stream &stream, void *dst, const Shape &dstStrides, const void *src,
                 const Shape &srcStrides, const Shape &shape, int64_t elementBytes = 4);
template <typename T>
void copyRows(const Stream &stream, T *dst, int64_t dstStride, const T *src, int64_t srcStride,
              int64_t rows, int64_t width);
template <typename T>
void repeat(const Stream &stream, T *y, const T *x, int64_t outer, int64_t indices, int64_t times,
            IndicesAt shard, int64_t inner);
template <typename T>
void repeatSum(const Stream &stream, T *dx, const T *dy, int64_t outer, int64_t indices,
               int64_t times, IndicesAt shard, int64_t inner);

//===-- Elements ----------------------------------------------------------------------------===//

template <typename T>
void dropout(const Stream &stream, T *y, const T *x, const Shape &shape, const Shape &full,
             const DropoutAt &dropout, ElementAt first);
template <typename T>
void rotateHalf(const Stream &stream, T *y, const T *x, int64_t rows, int64_t width, Pairs pairs);
template <typename T>
void rotary(const Stream &stream, T *y, const Shape &yStrides, const T *x, const Shape &xStrides,
            const float *cos, const Shape &cosStrides, const float *sin, const Shape &sinStrides,
            const Shape &shape, Pairs pairs, Turn turn);
/// Writes numbers first, first + 1, ... of the normal sequence of `key` (random.h), times std, plus
/// mean; rounded to float, and to T.
template <typename T>
void drawNormal(const Stream &stream, T *values, int64_t n, uint64_t key, uint64_t first,
                double mean, double std);
template <typename D, typename S>
void convert(const Stream &stream, D *dst, const S *src, int64_t n);
void convertStochastically(const Stream &stream, BFloat16 *dst, const float *src, int64_t n,
                           uint64_t key, int64_t first);
/// The type of the value that fills a T: a wider one where float cannot represent T's numbers.
template <typename T>
using FillValue = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;
/// T: also double, int64_t, int32_t and bool.
template <typename T> void fill(const Stream &stream, T *dst, FillValue<T> value, int64_t n);
/// dst[i] = start + step * i, in double.
template <typename T> void iota(const Stream &stream, T *dst, double start, double step, int64_t n);
template <typename G, typename T>
void accumulate(const Stream &stream, G *sum, const T *x, int64_t n);

//===-- Reductions --------------------------------------------------------------------------===//

/// Scratch of columnSum: columnSumScratch(rows, width); of reduceSum and reduceMean with inner != 1
/// columnSumScratch(n, outer * inner).
template <typename Y, typename T>
void columnSum(const Stream &stream, Y *y, const T *x, int64_t rows, int64_t width, int64_t stride,
               Write write = Write::Set);
template <typename Y, typename T>
void reduceSum(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner,
               Write write = Write::Set);
template <typename Y, typename T>
void reduceMean(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner);
template <typename Y, typename T>
void reduceMax(const Stream &stream, Y *y, const T *x, int64_t outer, int64_t n, int64_t inner);

//===-- Scalars of a step -------------------------------------------------------------------===//

/// Scratch: the sum of squareSumScratch(count) over the arrays.
void squareSum(const Stream &stream, double *sums, const Elements *arrays, size_t count);
inline void squareSum(const Stream &stream, double *sums, std::initializer_list<Elements> arrays) {
  squareSum(stream, sums, arrays.begin(), arrays.size());
}
template <int kColumns, typename T>
void squareSum(const Stream &stream, double *sums, const TensorRows<kColumns> &rows, int column,
               const T *base) {
  std::vector<Elements> arrays = elementsOf(rows, column, base);
  squareSum(stream, sums, arrays.data(), arrays.size());
}
/// Scratch: 8 bytes.
void rootOfSum(const Stream &stream, float *norm, std::initializer_list<Squares> squares);
/// Writes the first parameter whose sum of squares is not finite to *report, which host and device
/// share; -1: none.
void firstNonfinite(const Stream &stream, int32_t *report, const Squares *squares, size_t count,
                    const int *parameters);
inline void firstNonfinite(const Stream &stream, int32_t *report,
                           std::initializer_list<Squares> squares,
                           std::initializer_list<int> parameters) {
  firstNonfinite(stream, report, squares.begin(), squares.size(), parameters.begin());
}
template <int kColumns>
void firstNonfinite(const Stream &stream, int32_t *report, const double *sums,
                    const TensorRows<kColumns> &rows) {
  Squares squares{sums, rows.count};
  firstNonfinite(stream, report, &squares, 1, parametersOf(rows).data());
}
void clipScale(const Stream &stream, float *scale, const float *norm, Scalar maxNorm);
void trustRatio(const Stream &stream, float *ratio, const double *squares, double least,
                double most);
void frozenRatio(const Stream &stream, float *ratio, float *coefficient, float *factor,
                 const double *squares, const double *largest, const float *t, const float *apply,
                 const FrozenRatioOptions &options);
void unscale(const Stream &stream, float *to, const float *value, const float *scale);
void allFinite(const Stream &stream, float *finite, const float *norm);

/// *sum += replicaHash(data, bytes, firstWord), of replica_hash.h.
void addReplicaHash(const Stream &stream, uint64_t *sum, const void *data, int64_t bytes,
                    uint64_t firstWord);

/// *number = value.
void setScalar(const Stream &stream, int64_t *number, int64_t value);
/// Sets *field = *value, divided by *divisor unless that is null: a number that a step reports
/// (device.h).
void report(const Stream &stream, float *field, const float *value, const float *divisor = nullptr);
void report(const Stream &stream, int64_t *field, const float *value);

/// What updateScale reports, in memory that host and device share.
struct LossScaleReport {
  float lossScale;     ///< that of the step
  bool scaleExhausted; ///< the run must end
  int64_t skippedSteps;
};
void updateScale(const Stream &stream, LossScaleReport *report, float *scale, int64_t *steps,
                 int64_t *lastOverflow, int64_t *hysteresis, int64_t *skipped, const float *finite,
                 const LossScalerOptions &options);

//===-- Sums with one bit per element (partita_rt/one_bit.h) ----------------------------------===//

/// The CPU's bits. `exact` is what the host knows of the step (stepIsExact in device.h).
void oneBitTerm(const Stream &stream, float *x, const float *g, const float *m, int64_t n,
                int ranks, Scalar beta, Scalar scale, bool exact);
void oneBitMean(const Stream &stream, float *m, const float *sum, int64_t n, Scalar beta,
                Scalar scale, bool exact);
/// Reads which step it is on the GPU: a graph serves many steps.
void oneBitClip(const Stream &stream, float *ofSums, float *ofGradients, float *typical,
                const float *factor, const float *t, Scalar beta, ExactSteps exact);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_H
