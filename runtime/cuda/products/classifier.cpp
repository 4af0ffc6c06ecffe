// A classifier's loss without the logits of all tokens (kernels.h): as many rows as scratch memory
// has room for get their logits by one product, x w^T, rounded to T as a tensor of logits would be;
// cross_entropy.cu makes the loss and, in place, the logits' gradient of them; two more products
// make dx of it and add to dw. Per row 2 * vocabulary * sizeof(T) bytes are written and read,
// thrice with gradients. A 16-bit dw is the only product's result where all rows fit, else it is
// added up in float: rounded block by block, sums lose what is small beside them.

#include "partita_rt/cuda/kernels.h"

#include <algorithm>

namespace partita_rt::cuda {

namespace {

/// Rows of logits that so many floats have room for.
template <typename T> int64_t rowsAtOnce(int64_t floats, int64_t rows, int64_t vocabulary) {
  int64_t fit = floats * 4 / (classifierStride(vocabulary) * int64_t(sizeof(T)));
  if (fit == 0)
    fail("a classifier's loss: %lld floats of scratch memory have no room for a row of %lld logits",
         (long long)floats, (long long)vocabulary);
  // Rows in multiples of 8 keep the columns of the transposed logits' products even.
  fit = std::min(fit, rows);
  return fit >= rows || fit < 8 ? fit : fit / 8 * 8;
}

} // namespace

template <typename T>
void classifierLoss(const Stream &stream, float *loss, const T *x, const T *w,
                    const int64_t *labels, int64_t rows, int64_t width, int64_t vocabulary,
                    int64_t ignoreIndex, float *scratch, ClassifierBlock block) {
  if (rows == 0)
    return;
  int64_t stride = classifierStride(vocabulary);
  int64_t most = rowsAtOnce<T>(block.rows * block.columns, rows, vocabulary);
  auto *logits = reinterpret_cast<T *>(scratch);
  for (int64_t first = 0; first < rows; first += most) {
    int64_t count = std::min(most, rows - first);
    gemm(stream, Trans::No, Trans::Yes, count, vocabulary, width, 1.0f, x + first * width, width, w,
         width, 0.0f, logits, stride);
    crossEntropyForward(stream, loss + first, static_cast<float *>(nullptr),
                        static_cast<const T *>(logits), labels + first, count, vocabulary, stride,
                        ignoreIndex, first);
  }
}

template <typename T, typename G>
void classifierLossGrad(const Stream &stream, float *loss, T *dx, G *dw, const float *dloss,
                        int64_t dlossStride, const T *x, const T *w, const int64_t *labels,
                        int64_t rows, int64_t width, int64_t vocabulary, int64_t ignoreIndex,
                        float *scratch, ClassifierBlock block) {
  if (rows == 0)
    return fill(stream, dw, 0.0f, vocabulary * width);
  int64_t stride = classifierStride(vocabulary), blocks = ceilDiv(vocabulary, block.columns);
  int64_t most = rowsAtOnce<T>(block.rows * block.columns * (blocks + 1), rows, vocabulary);
  auto *logits = reinterpret_cast<T *>(scratch);
  float *sums = scratch + block.rows * block.columns * (blocks + 1);
  const bool sumsUp = !std::is_same_v<G, float> && most < rows;
  for (int64_t first = 0; first < rows; first += most) {
    int64_t count = std::min(most, rows - first);
    gemm(stream, Trans::No, Trans::Yes, count, vocabulary, width, 1.0f, x + first * width, width, w,
         width, 0.0f, logits, stride);
    crossEntropyLossGrad(stream, loss + first, logits, dloss + first * dlossStride, dlossStride,
                         labels + first, count, vocabulary, stride, ignoreIndex, first);
    gemm(stream, Trans::No, Trans::No, count, width, vocabulary, 1.0f, logits, stride, w, width,
         0.0f, dx + first * width, width);
    auto addTo = [&](auto *of) {
      gemm(stream, Trans::Yes, Trans::No, vocabulary, width, count, 1.0f, logits, stride,
           x + first * width, width, first > 0 ? 1.0f : 0.0f, of, width);
    };
    sumsUp ? addTo(sums) : addTo(dw);
  }
  if (sumsUp)
    convert(stream, dw, sums, vocabulary * width);
}

#define CLASSIFIER(T)                                                                              \
  template void classifierLoss(const Stream &, float *, const T *, const T *, const int64_t *,     \
                               int64_t, int64_t, int64_t, int64_t, float *, ClassifierBlock);
#define CLASSIFIER_GRAD(G, T)                                                                      \
  CLASSIFIER(T)                                                                                    \
  template void classifierLossGrad(const Stream &, float *, T *, G *, const float *, int64_t,      \
                                   const T *, const T *, const int64_t *, int64_t, int64_t,        \
                                   int64_t, int64_t, float *, ClassifierBlock);
CLASSIFIER_GRAD(float, float)
CLASSIFIER_GRAD(Half, Half)
CLASSIFIER_GRAD(BFloat16, BFloat16)
#undef CLASSIFIER
#define CLASSIFIER(T)
CLASSIFIER_GRAD(float, Half)
CLASSIFIER_GRAD(float, BFloat16)
#undef CLASSIFIER
#undef CLASSIFIER_GRAD

} // namespace partita_rt::cuda
