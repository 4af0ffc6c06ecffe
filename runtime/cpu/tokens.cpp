// Embedding rows, forward and backward, and cross-entropy.

#include "partita_rt/kernels.h"

#include "cpu/rows.h"

#include <cmath>

namespace partita_rt {

//===-- Embedding ---------------------------------------------------------------------------===//

namespace {

template <typename Id> void checkId(Id id, int64_t position, const TokenRows &rows) {
  if (id < 0 || int64_t(id) >= rows.whole)
    fail("embedding: id %lld at position %lld is outside 0 .. %lld", (long long)id,
         (long long)position, (long long)rows.whole - 1);
}

template <typename Id>
void scatterRows(float *dtable, const float *dy, const Id *ids, int64_t n, int64_t width,
                 const TokenRows &rows, Write write) {
  if (write == Write::Set)
    fill(dtable, 0.0f, rows.count * width);
  for (int64_t i = 0; i < n; ++i) {
    checkId(ids[i], i, rows);
    if (!rows.has(ids[i]))
      continue;
    float *__restrict row = dtable + (int64_t(ids[i]) - rows.first) * width;
    const float *__restrict from = dy + i * width;
    for (int64_t d = 0; d < width; ++d)
      row[d] += from[d];
  }
}

} // namespace

template <typename T, typename Id>
void embeddingForward(T *y, const Id *ids, const T *table, int64_t n, int64_t width,
                      TokenRows rows) {
  for (int64_t i = 0; i < n; ++i) {
    checkId(ids[i], i, rows);
    if (rows.has(ids[i]))
      std::copy_n(table + (int64_t(ids[i]) - rows.first) * width, width, y + i * width);
    else
      fill(y + i * width, T(0), width);
  }
}

#define FOR_IDS(T)                                                                                 \
  template void embeddingForward(T *, const int64_t *, const T *, int64_t, int64_t, TokenRows);    \
  template void embeddingForward(T *, const int32_t *, const T *, int64_t, int64_t, TokenRows);
FOR_IDS(float)
FOR_IDS(int64_t)
FOR_IDS(int32_t)
FOR_IDS(bool)
#undef FOR_IDS

void embeddingBackward(float *dtable, const float *dy, const int64_t *ids, int64_t n, int64_t width,
                       TokenRows rows, Write write) {
  scatterRows(dtable, dy, ids, n, width, rows, write);
}
void embeddingBackward(float *dtable, const float *dy, const int32_t *ids, int64_t n, int64_t width,
                       TokenRows rows, Write write) {
  scatterRows(dtable, dy, ids, n, width, rows, write);
}

template <typename Id>
static int64_t takenRow(Id id, int64_t table, int64_t position, int64_t rows) {
  if (id < 0 || int64_t(id) >= rows)
    fail("take: index %lld at position %lld of table %lld is outside 0 .. %lld", (long long)id,
         (long long)position, (long long)table, (long long)rows - 1);
  return table * rows + int64_t(id);
}

template <typename T, typename Id>
void takeForward(T *y, const Id *ids, const T *x, int64_t tables, int64_t n, int64_t rows,
                 int64_t width) {
  for (int64_t table = 0; table < tables; ++table)
    for (int64_t i = 0; i < n; ++i, ++ids, y += width)
      std::copy_n(x + takenRow(*ids, table, i, rows) * width, width, y);
}

template <typename Id>
void takeBackward(float *dx, const float *dy, const Id *ids, int64_t tables, int64_t n,
                  int64_t rows, int64_t width) {
  fill(dx, 0.0f, tables * rows * width);
  for (int64_t table = 0; table < tables; ++table)
    for (int64_t i = 0; i < n; ++i, ++ids, dy += width) {
      float *__restrict row = dx + takenRow(*ids, table, i, rows) * width;
      for (int64_t d = 0; d < width; ++d)
        row[d] += dy[d];
    }
}

#define TAKE(T, Id)                                                                                \
  template void takeForward(T *, const Id *, const T *, int64_t, int64_t, int64_t, int64_t);
#define FOR_IDS(Id)                                                                                \
  TAKE(float, Id)                                                                                  \
  TAKE(int64_t, Id)                                                                                \
  TAKE(int32_t, Id)                                                                                \
  TAKE(bool, Id)                                                                                   \
  template void takeBackward(float *, const float *, const Id *, int64_t, int64_t, int64_t,        \
                             int64_t);
FOR_IDS(int64_t)
FOR_IDS(int32_t)
#undef FOR_IDS
#undef TAKE

//===-- Cross-entropy -----------------------------------------------------------------------===//

static void checkLabel(int64_t label, int64_t row, int64_t vocabulary) {
  if (label < 0 || label >= vocabulary)
    fail("cross-entropy: label %lld of row %lld is outside 0 .. %lld", (long long)label,
         (long long)row, (long long)vocabulary - 1);
}

void crossEntropyForward(float *loss, float *logSumExp, const float *logits, const int64_t *labels,
                         int64_t rows, int64_t vocabulary, int64_t stride, int64_t ignoreIndex) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = logits + row * stride;
    loss[row] = 0.0f;
    logSumExp[row] = 0.0f;
    if (labels[row] == ignoreIndex)
      continue;
    checkLabel(labels[row], row, vocabulary);
    float largest = rowMax(x, vocabulary);
    logSumExp[row] = largest + std::log(rowExpSum(x, largest, vocabulary));
    loss[row] = logSumExp[row] - x[labels[row]];
  }
}

void logSumExp(float *y, const float *x, int64_t rows, TokenRows columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns.count) {
    float largest = rowMax(x, columns.inside());
    y[row] = largest + std::log(rowExpSum(x, largest, columns.inside()));
  }
}

void tokenLoss(float *loss, const float *logits, const float *logSumExp, const int64_t *labels,
               int64_t rows, TokenRows vocabulary, int64_t ignoreIndex) {
  for (int64_t row = 0; row < rows; ++row) {
    loss[row] = 0.0f;
    if (labels[row] == ignoreIndex)
      continue;
    checkLabel(labels[row], row, vocabulary.whole);
    if (vocabulary.has(labels[row]))
      loss[row] = logSumExp[row] - logits[row * vocabulary.count + labels[row] - vocabulary.first];
  }
}

void crossEntropyBackward(float *dlogits, const float *dloss, int64_t dlossStride,
                          const float *logits, const float *logSumExp, const int64_t *labels,
                          int64_t rows, TokenRows vocabulary, int64_t stride, int64_t ignoreIndex) {
  int64_t inside = vocabulary.inside();
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = logits + row * stride;
    float *dx = dlogits + row * stride;
    float seed = dloss[row * dlossStride];
    fill(dx + inside, 0.0f, stride - inside);
    if (labels[row] == ignoreIndex) {
      fill(dx, 0.0f, inside);
      continue;
    }
    checkLabel(labels[row], row, vocabulary.whole);
    Lanes shift = splat(logSumExp[row]), factor = splat(seed);
    forLanes(inside, [&](int64_t i, int64_t n) {
      storeUpTo(dx + i, factor * expLanes(loadUpTo(x + i, n) - shift), n);
    });
    if (vocabulary.has(labels[row]))
      dx[labels[row] - vocabulary.first] -= seed;
  }
}

int64_t countLabels(const int64_t *labels, int64_t n, int64_t ignoreIndex) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i)
    count += labels[i] != ignoreIndex;
  return count;
}

} // namespace partita_rt
