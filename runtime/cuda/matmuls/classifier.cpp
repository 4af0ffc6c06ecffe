// A classifier's loss without the logits of all tokens (kernels.h). Of a block's rows a matmul, x
// w^T, computes the logits, rounded to T as a tensor of logits would be; cross_entropy.cu computes the loss and, in place, the logits' gradient; two more
// matmuls compute dx from it and add to dw. Per row, 2 * vocabulary * sizeof(T) bytes are written
// and read, three times with gradients. A 16-bit dw is the result of a single matmul if one block
// has all rows, else it is summed in float: sums rounded block by block lose small terms.
//
// Rows of zeros behind w's (PaddedRows) are multiplied like the others: their logits take no part
// in the loss, and the logits' gradient has zeros for them. They are in the float sums, and not in
// dw.

#include "partita_rt/cuda/kernels.h"

#include <algorithm>
#include <vector>

namespace partita_rt::cuda {

namespace {

void check(ClassifierBlock block, PaddedRows vocabulary) {
  if (block.rows < 1 || block.columns < vocabulary.inMemory)
    fail("a classifier's loss: a block of %lld x %lld logits, rows have %lld",
         (long long)block.rows, (long long)block.columns, (long long)vocabulary.inMemory);
}

/// The columns of the vocabulary that one matmul takes.
struct Columns {
  int64_t first, count;
};

/// Splits off columns beyond a multiple of 16 bytes. Tensor cores are fastest if rows have full 16
/// bytes (cuBLAS documentation, "Tensor Core Usage"), which a stride alone does not achieve for
/// GPT-2's 50,257. The excess is the first matmul, so that sums of both are rounded when the large
/// one is added.
template <typename T> std::vector<Columns> columnsOf(int64_t vocabulary) {
  constexpr int64_t kEven = 16 / int64_t(sizeof(T));
  int64_t even = std::is_same_v<T, float> ? 0 : vocabulary / kEven * kEven;
  std::vector<Columns> parts;
  if (vocabulary > even)
    parts.push_back({even, vocabulary - even});
  if (even > 0)
    parts.push_back({0, even});
  return parts;
}

/// logits[rows, vocabulary] = x w^T.
template <typename T>
void makeLogits(const Stream &stream, T *logits, int64_t stride, const T *x, const T *w,
                int64_t rows, int64_t width, int64_t vocabulary) {
  for (Columns part : columnsOf<T>(vocabulary))
    gemm(stream, Trans::No, Trans::Yes, rows, part.count, width, 1.0f, x, width,
         w + part.first * width, width, 0.0f, logits + part.first, stride);
}

/// dx[rows, width] = logits w, and dw[vocabulary, width] = logits^T x, or added to dw.
template <typename T>
void multiplyIntoX(const Stream &stream, T *dx, const T *logits, int64_t stride, const T *w,
                   int64_t rows, int64_t width, int64_t vocabulary) {
  float beta = 0.0f;
  for (Columns part : columnsOf<T>(vocabulary)) {
    gemm(stream, Trans::No, Trans::No, rows, width, part.count, 1.0f, logits + part.first, stride,
         w + part.first * width, width, beta, dx, width);
    beta = 1.0f;
  }
}
template <typename T, typename G>
void multiplyIntoW(const Stream &stream, G *dw, bool adds, const T *logits, int64_t stride,
                   const T *x, int64_t rows, int64_t width, int64_t vocabulary) {
  for (Columns part : columnsOf<T>(vocabulary))
    gemm(stream, Trans::Yes, Trans::No, part.count, width, rows, 1.0f, logits + part.first, stride,
         x, width, adds ? 1.0f : 0.0f, dw + part.first * width, width);
}

} // namespace

template <typename T>
void classifierLoss(const Stream &stream, float *loss, const T *x, const T *w,
                    const int64_t *labels, int64_t rows, int64_t width, PaddedRows vocabulary,
                    int64_t ignoreIndex, float *scratch, ClassifierBlock block) {
  if (rows == 0)
    return;
  check(block, vocabulary);
  auto *logits = reinterpret_cast<T *>(scratch);
  for (int64_t first = 0; first < rows; first += block.rows) {
    int64_t count = std::min(block.rows, rows - first);
    makeLogits(stream, logits, block.columns, x + first * width, w, count, width,
               vocabulary.inMemory);
    crossEntropyForward(stream, loss + first, static_cast<float *>(nullptr),
                        static_cast<const T *>(logits), labels + first, count, vocabulary.rows,
                        block.columns, ignoreIndex, first);
  }
}

template <typename T, typename G>
void classifierLossGrad(const Stream &stream, float *loss, T *dx, G *dw, const float *dloss,
                        int64_t dlossStride, const T *x, const T *w, const int64_t *labels,
                        int64_t rows, int64_t width, PaddedRows vocabulary, int64_t ignoreIndex,
                        float *scratch, ClassifierBlock block) {
  if (rows == 0)
    return fill(stream, dw, 0.0f, vocabulary.rows * width);
  check(block, vocabulary);
  auto *logits = reinterpret_cast<T *>(scratch);
  float *sums = scratch + ceilDiv(block.rows * block.columns * int64_t(sizeof(T)), 4);
  const bool sumsUp = !std::is_same_v<G, float> && block.rows < rows;
  for (int64_t first = 0; first < rows; first += block.rows) {
    int64_t count = std::min(block.rows, rows - first);
    makeLogits(stream, logits, block.columns, x + first * width, w, count, width,
               vocabulary.inMemory);
    crossEntropyLossGrad(stream, loss + first, logits, dloss + first * dlossStride, dlossStride,
                         labels + first, count, vocabulary.rows, block.columns, ignoreIndex, first);
    multiplyIntoX(stream, dx + first * width, logits, block.columns, w, count, width,
                  vocabulary.inMemory);
    auto addTo = [&](auto *of, int64_t rowsOfW) {
      multiplyIntoW(stream, of, first > 0, logits, block.columns, x + first * width, count, width,
                    rowsOfW);
    };
    sumsUp ? addTo(sums, vocabulary.inMemory) : addTo(dw, vocabulary.rows);
  }
  if (sumsUp)
    convert(stream, dw, sums, vocabulary.rows * width);
}

#define CLASSIFIER(T)                                                                              \
  template void classifierLoss(const Stream &, float *, const T *, const T *, const int64_t *,     \
                               int64_t, int64_t, PaddedRows, int64_t, float *, ClassifierBlock);
#define CLASSIFIER_GRAD(G, T)                                                                      \
  CLASSIFIER(T)                                                                                    \
  template void classifierLossGrad(const Stream &, float *, T *, G *, const float *, int64_t,      \
                                   const T *, const T *, const int64_t *, int64_t, int64_t,        \
                                   PaddedRows, int64_t, float *, ClassifierBlock);
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
