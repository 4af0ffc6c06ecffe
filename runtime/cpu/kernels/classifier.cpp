// A classifier's loss without its logits (kernels.h): cross-entropy of x w^T.
//
// Works on a few hundred rows at a time. A first sweep over the vocabulary computes their logits
// block by block, [rows, block.columns] each, and keeps every row's running maximum and sum while
// the block is in the cache. A second sweep turns each block into the logits' cotangent and
// multiplies it into dx and dw at once: only the logits of the current rows ever exist, and their
// cotangents never leave the cache. Sums over blocks are float; 16-bit results are rounded when
// they are complete.

#include "partita_rt/kernels.h"
#include "partita_rt/workspaces.h"

#include "cpu/kernels/rows.h"
#include "cpu/kernels/storage.h"

#include <cmath>

namespace partita_rt {

namespace {

template <typename T> struct Classifier {
  const T *x, *w;
  const int64_t *labels;
  int64_t width, vocabulary, ignoreIndex;
  int64_t stride; ///< between rows of a block of logits: its columns

  int64_t columnsAt(int64_t first) const { return std::min(stride, vocabulary - first); }
};

struct RowStatistics {
  float largest[kMostClassifierRows], sum[kMostClassifierRows], ofLabel[kMostClassifierRows];
};

template <typename T> void checkLabels(const Classifier<T> &c, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row)
    if (int64_t label = c.labels[row];
        label != c.ignoreIndex && (label < 0 || label >= c.vocabulary))
      fail("cross-entropy: label %lld of row %lld is outside 0 .. %lld", (long long)label,
           (long long)row, (long long)c.vocabulary - 1);
}

/// Adds one block of a row's logits to its maximum, sum of exponentials and label's logit.
void addBlock(RowStatistics &s, int64_t row, const float *logits, int64_t columns, int64_t label) {
  constexpr float low = -std::numeric_limits<float>::infinity();
  float largest = std::max(s.largest[row], rowMax(logits, columns));
  if (largest != low) { // else all columns so far are masked
    float kept = s.largest[row] == low ? 0.0f : s.sum[row] * std::exp(s.largest[row] - largest);
    s.sum[row] = kept + rowExpSum(logits, largest, columns);
  }
  s.largest[row] = largest;
  if (label >= 0 && label < columns)
    s.ofLabel[row] = logits[label];
}

/// Runs the first sweep over rows [first, first + rows). Blocks are `blockStride` apart (0: none is
/// kept). Leaves the logarithm of the softmax's denominator in s.sum.
template <typename T>
void forwardSweep(const Classifier<T> &c, RowStatistics &s, float *loss, float *logits,
                  int64_t blockStride, int64_t first, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    s.largest[row] = -std::numeric_limits<float>::infinity();
    s.sum[row] = s.ofLabel[row] = 0.0f;
  }
  for (int64_t column = 0; column < c.vocabulary; column += c.stride, logits += blockStride) {
    int64_t columns = c.columnsAt(column);
    gemm(Trans::No, Trans::Yes, rows, columns, c.width, 1.0f, c.x + first * c.width, c.width,
         c.w + column * c.width, c.width, 0.0f, logits, c.stride);
    for (int64_t row = 0; row < rows; ++row)
      if (c.labels[first + row] != c.ignoreIndex)
        addBlock(s, row, logits + row * c.stride, columns, c.labels[first + row] - column);
  }
  for (int64_t row = 0; row < rows; ++row) {
    s.sum[row] = s.largest[row] + std::log(s.sum[row]);
    loss[first + row] = c.labels[first + row] == c.ignoreIndex ? 0.0f : s.sum[row] - s.ofLabel[row];
  }
}

/// Computes one row of a block of the logits' cotangent: seed (softmax - onehot).
void cotangentRow(float *d, const float *logits, int64_t columns, float logSumExp, float seed,
                  int64_t label) {
  Lanes shift = splat(logSumExp), factor = splat(seed);
  forLanes(columns, [&](int64_t i, int64_t n) {
    storeUpTo(d + i, factor * expLanes(loadUpTo(logits + i, n) - shift), n);
  });
  if (label >= 0 && label < columns)
    d[label] -= seed;
}

} // namespace

template <typename T>
void classifierLoss(float *loss, const T *x, const T *w, const int64_t *labels, int64_t rows,
                    int64_t width, PaddedRows vocabulary, int64_t ignoreIndex, float *scratch,
                    ClassifierBlock block) {
  Classifier<T> c{x, w, labels, width, vocabulary.rows, ignoreIndex, block.columns};
  checkLabels(c, rows);
  block.rows = std::min(block.rows, kMostClassifierRows);
  RowStatistics statistics;
  for (int64_t first = 0; first < rows; first += block.rows)
    forwardSweep(c, statistics, loss, scratch, 0, first, std::min(block.rows, rows - first));
}

template <typename T, typename G>
void classifierLossGrad(float *loss, T *dx, G *dw, const float *dloss, int64_t dlossStride,
                        const T *x, const T *w, const int64_t *labels, int64_t rows, int64_t width,
                        PaddedRows padded, int64_t ignoreIndex, float *scratch,
                        ClassifierBlock block) {
  const int64_t vocabulary = padded.rows;
  Classifier<T> c{x, w, labels, width, vocabulary, ignoreIndex, block.columns};
  checkLabels(c, rows);
  const int64_t blocks = (vocabulary + block.columns - 1) / block.columns;
  float *sums = scratch + block.rows * block.columns * (blocks + 1); // of a 16-bit dx
  float *dwSums = sums + (kIsFloat<T> ? 0 : block.rows * width);
  block.rows = std::min(block.rows, kMostClassifierRows);
  RowStatistics statistics;
  const bool sumsUp = !kIsFloat<G> && rows > block.rows;
  const int64_t size = block.rows * block.columns;
  float *d = scratch, *kept = scratch + size;
  for (int64_t first = 0; first < rows; first += block.rows) {
    int64_t count = std::min(block.rows, rows - first);
    forwardSweep(c, statistics, loss, kept, size, first, count);
    if constexpr (kIsFloat<T>)
      sums = dx + first * width;
    const float *logits = kept;
    for (int64_t column = 0; column < vocabulary; column += block.columns, logits += size) {
      int64_t columns = c.columnsAt(column);
      for (int64_t row = 0; row < count; ++row)
        if (labels[first + row] == ignoreIndex)
          fill(d + row * block.columns, 0.0f, columns);
        else
          cotangentRow(d + row * block.columns, logits + row * block.columns, columns,
                       statistics.sum[row], dloss[(first + row) * dlossStride],
                       labels[first + row] - column);
      gemm(Trans::No, Trans::No, count, width, columns, 1.0f, d, block.columns, w + column * width,
           width, column > 0 ? 1.0f : 0.0f, sums, width);
      auto addTo = [&](auto *of) {
        gemm(Trans::Yes, Trans::No, columns, width, count, 1.0f, d, block.columns,
             x + first * width, width, first > 0 ? 1.0f : 0.0f, of + column * width, width);
      };
      sumsUp ? addTo(dwSums) : addTo(dw);
    }
    if constexpr (!kIsFloat<T>)
      convert(dx + first * width, sums, count * width);
  }
  if (sumsUp)
    convert(dw, dwSums, vocabulary * width);
}

#define CLASSIFIER(T)                                                                              \
  template void classifierLoss(float *, const T *, const T *, const int64_t *, int64_t, int64_t,   \
                               PaddedRows, int64_t, float *, ClassifierBlock);
#define CLASSIFIER_GRAD(G, T)                                                                      \
  template void classifierLossGrad(float *, T *, G *, const float *, int64_t, const T *,           \
                                   const T *, const int64_t *, int64_t, int64_t, PaddedRows,       \
                                   int64_t, float *, ClassifierBlock);
FOR_STORAGE(CLASSIFIER)
FOR_RESULTS(CLASSIFIER_GRAD)
#undef CLASSIFIER
#undef CLASSIFIER_GRAD

} // namespace partita_rt
