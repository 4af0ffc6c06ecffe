// Cross-entropy of rows of logits: loss = logSumExp - logits[label], and its gradient, dlogits =
// dloss * (softmax(logits) - onehot(label)), in place or not. logits [rows, stride] in T, of which
// `vocabulary` columns count; loss, logSumExp, dloss [rows] float.
//
// A block has a row. The largest logit and the sum of exponentials are found in one read ("online":
// Milakov and Gimelshein, arXiv 1805.02867). Loss alone: one read. Gradient: one read, one write.
// Both at once (crossEntropyLossGrad): the second read comes from the L2 cache, so memory sees one
// read and one write, 2 * sizeof(T) bytes per logit. The backward pass begins with the rows that
// the forward pass, or the matrix product, has written last.
//
// Vocab-parallel: logSumExp of each rank's columns, combined by the program, then tokenLoss and
// crossEntropyBackward of each rank's columns.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

namespace {

/// log(sum(exp(x[0 .. width)))), in every thread of the block.
template <typename T> __device__ float rowLogSumExp(const T *x, int64_t width, float *space) {
  float largest = Largest::kNone, sum = 0.0f;
  forPacks<0>(width, [&](int, int64_t first, int count) {
    float v[kPack], before = largest;
    load(v, x + first, count, Largest::kNone);
#pragma unroll
    for (float each : v)
      largest = Largest::of(each, largest);
    float shift = largest == Largest::kNone ? 0.0f : largest;
    sum *= expf(before - shift); // 0 at first
#pragma unroll
    for (float each : v)
      sum += expf(each - shift);
  });
  float all = overRow<Largest>(largest, space);
  float shift = all == Largest::kNone ? 0.0f : all;
  return all + logf(overRow<Sum>(sum * expf(largest - shift), space));
}

/// dx = seed * (exp(x - logSumExp) - onehot(label)) of columns [0, inside), 0 behind. A label that
/// is not here: -1. Ignored rows: seed 0 and no label, written without reading.
template <typename T>
__device__ void rowGradient(T *dx, const T *x, float seed, float logSumExp, int64_t label,
                            bool ignored, int64_t inside, int64_t stride) {
  forPacks<0>(stride, [&](int, int64_t first, int count) {
    float v[kPack] = {};
    if (!ignored)
      load(v, x + first, count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      bool here = !ignored && first + i < inside;
      v[i] = here ? seed * expf(v[i] - logSumExp) : 0.0f;
      if (here && first + i == label)
        v[i] -= seed;
    }
    store(dx + first, v, count);
  });
}

/// Is this row without a loss? A label that is none is reported and makes it so.
__device__ bool ignores(int64_t label, int64_t row, int64_t whole, int64_t ignoreIndex,
                        Fault *fault) {
  if (label == ignoreIndex)
    return true;
  bool wrong = label < 0 || label >= whole;
  if (wrong && threadIdx.x == 0)
    report(fault, Fault::Label, label, row, 0, whole);
  return wrong;
}

/// logSumExp and loss; null dloss: no gradient, else logits become theirs.
template <typename T, bool kGradient>
__global__ void __launch_bounds__(kMostRowThreads)
    crossEntropyRows(float *loss, float *logSumExp,
                     std::conditional_t<kGradient, T, const T> *logits, const float *dloss,
                     int64_t dlossStride, const int64_t *labels, int64_t vocabulary, int64_t stride,
                     int64_t ignoreIndex, Fault *fault, int64_t firstRow) {
  __shared__ float space[kWarp];
  int64_t row = blockIdx.x, label = labels[row];
  auto *x = logits + row * stride;
  bool ignored = ignores(label, firstRow + row, vocabulary, ignoreIndex, fault);
  float all = 0.0f, mine = 0.0f;
  if (!ignored) { // the whole block
    all = rowLogSumExp(x, vocabulary, space);
    mine = x[label];
  }
  if (threadIdx.x == 0) {
    loss[row] = all - mine;
    if (logSumExp)
      logSumExp[row] = all;
  }
  if constexpr (kGradient) {
    __syncthreads(); // everybody has read the label's logit
    rowGradient(x, x, dloss[row * dlossStride], all, ignored ? -1 : label, ignored, vocabulary,
                stride);
  }
}

template <typename T>
__global__ void __launch_bounds__(kMostRowThreads)
    logSumExpRows(float *y, const T *x, TokenRowsAt columns) {
  __shared__ float space[kWarp];
  float all = rowLogSumExp(x + int64_t(blockIdx.x) * columns.count, columns.read().inside(), space);
  if (threadIdx.x == 0)
    y[blockIdx.x] = all;
}

template <typename T>
__global__ void crossEntropyGradients(T *dlogits, const float *dloss, int64_t dlossStride,
                                      const T *logits, const float *logSumExp,
                                      const int64_t *labels, TokenRowsAt columns, int64_t stride,
                                      int64_t ignoreIndex, Fault *fault) {
  TokenRows vocabulary = columns.read();
  int64_t row = int64_t(gridDim.x) - 1 - blockIdx.x, label = labels[row];
  bool ignored = ignores(label, row, vocabulary.whole, ignoreIndex, fault);
  int64_t column = label - vocabulary.first;
  rowGradient(dlogits + row * stride, logits + row * stride, dloss[row * dlossStride],
              logSumExp[row], column >= 0 && column < vocabulary.count ? column : -1, ignored,
              vocabulary.inside(), stride);
}

template <typename T>
__global__ void tokenLosses(float *loss, const T *logits, const float *logSumExp,
                            const int64_t *labels, int64_t rows, TokenRowsAt columns,
                            int64_t ignoreIndex, Fault *fault) {
  TokenRows vocabulary = columns.read();
  int64_t row = globalThread();
  if (row >= rows)
    return;
  int64_t label = labels[row], column = label - vocabulary.first;
  float value = 0.0f;
  if (label != ignoreIndex && (label < 0 || label >= vocabulary.whole))
    report(fault, Fault::Label, label, row, 0, vocabulary.whole);
  else if (label != ignoreIndex && column >= 0 && column < vocabulary.count)
    value = logSumExp[row] - float(logits[row * vocabulary.count + column]);
  loss[row] = value;
}

} // namespace

template <typename T>
void crossEntropyForward(const Stream &stream, float *loss, float *logSumExp, const T *logits,
                         const int64_t *labels, int64_t rows, int64_t vocabulary, int64_t stride,
                         int64_t ignoreIndex, int64_t firstRow) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH((crossEntropyRows<T, false>), gridOf(rows), rowThreads(vocabulary), 0, stream,
                    loss, logSumExp, logits, nullptr, 0, labels, vocabulary, stride, ignoreIndex,
                    stream.fault, firstRow);
}

template <typename T>
void crossEntropyLossGrad(const Stream &stream, float *loss, T *logits, const float *dloss,
                          int64_t dlossStride, const int64_t *labels, int64_t rows,
                          int64_t vocabulary, int64_t stride, int64_t ignoreIndex,
                          int64_t firstRow) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH((crossEntropyRows<T, true>), gridOf(rows), rowThreads(vocabulary), 0, stream,
                    loss, nullptr, logits, dloss, dlossStride, labels, vocabulary, stride,
                    ignoreIndex, stream.fault, firstRow);
}

template <typename T>
void logSumExp(const Stream &stream, float *y, const T *x, int64_t rows, TokenRowsAt columns) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH(logSumExpRows<T>, gridOf(rows), rowThreads(columns.count), 0, stream, y, x,
                    columns);
}

template <typename T>
void tokenLoss(const Stream &stream, float *loss, const T *logits, const float *logSumExp,
               const int64_t *labels, int64_t rows, TokenRowsAt vocabulary, int64_t ignoreIndex) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH(tokenLosses<T>, gridOf(ceilDiv(rows, 128)), 128, 0, stream, loss, logits,
                    logSumExp, labels, rows, vocabulary, ignoreIndex, stream.fault);
}

template <typename T>
void crossEntropyBackward(const Stream &stream, T *dlogits, const float *dloss, int64_t dlossStride,
                          const T *logits, const float *logSumExp, const int64_t *labels,
                          int64_t rows, TokenRowsAt vocabulary, int64_t stride,
                          int64_t ignoreIndex) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH(crossEntropyGradients<T>, gridOf(rows), rowThreads(stride), 0, stream, dlogits,
                    dloss, dlossStride, logits, logSumExp, labels, vocabulary, stride, ignoreIndex,
                    stream.fault);
}

#define LOSS(T)                                                                                    \
  template void crossEntropyForward(const Stream &, float *, float *, const T *, const int64_t *,  \
                                    int64_t, int64_t, int64_t, int64_t, int64_t);                  \
  template void crossEntropyLossGrad(const Stream &, float *, T *, const float *, int64_t,         \
                                     const int64_t *, int64_t, int64_t, int64_t, int64_t,          \
                                     int64_t);                                                     \
  template void logSumExp(const Stream &, float *, const T *, int64_t, TokenRowsAt);               \
  template void tokenLoss(const Stream &, float *, const T *, const float *, const int64_t *,      \
                          int64_t, TokenRowsAt, int64_t);                                          \
  template void crossEntropyBackward(const Stream &, T *, const float *, int64_t, const T *,       \
                                     const float *, const int64_t *, int64_t, TokenRowsAt,         \
                                     int64_t, int64_t);
FOR_STORAGE(LOSS)
#undef LOSS

} // namespace partita_rt::cuda
