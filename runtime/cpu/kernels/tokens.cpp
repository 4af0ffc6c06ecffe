// Embedding rows, forward and backward, and cross-entropy.

#include "partita_rt/kernels.h"

#include "cpu/kernels/rows.h"
#include "cpu/kernels/storage.h"

#include <cmath>
#include <vector>

namespace partita_rt {

//===-- Embedding ---------------------------------------------------------------------------===//

namespace {

template <typename Id> void checkId(Id id, int64_t position, const TokenRows &rows) {
  if (id < 0 || int64_t(id) >= rows.full)
    fail(
        "embedding: index %lld at position %lld (of this rank) is outside 0 .. %lld, the rows of the table",
        (long long)id, (long long)position, (long long)rows.full - 1);
}

/// Adds from[i], for n rows in the order of i, to row rowOf(i) of dst (-1: none).
template <typename T, typename RowOf>
void addRows(float *dst, const T *from, int64_t n, int64_t width, RowOf rowOf) {
  for (int64_t i = 0; i < n; ++i, from += width) {
    int64_t at = rowOf(i);
    if (at < 0)
      continue;
    float *__restrict row = dst + at * width;
    const T *__restrict added = from;
    for (int64_t d = 0; d < width; ++d)
      row[d] += added[d];
  }
}

/// Does the same, but completes the sum of a row before it is added, and rounded: sorting groups their
/// additions, which takes eight bytes per row added.
template <typename G, typename T, typename RowOf>
void addSortedRows(G *dst, const T *from, int64_t n, int64_t width, RowOf rowOf) {
  struct Addition {
    int32_t row, number;
    bool operator<(const Addition &b) const {
      return row != b.row ? row < b.row : number < b.number;
    }
  };
  if (n > INT32_MAX)
    fail("sums of %lld rows: at most %d are possible", (long long)n, INT32_MAX);
  std::vector<Addition> additions;
  additions.reserve(size_t(n));
  for (int64_t i = 0; i < n; ++i)
    if (int64_t row = rowOf(i); row > INT32_MAX)
      fail("sums into row %lld: at most %d are possible", (long long)row, INT32_MAX);
    else if (row >= 0)
      additions.push_back({int32_t(row), int32_t(i)});
  std::sort(additions.begin(), additions.end());
  for (auto first = additions.begin(); first != additions.end();) {
    auto end = std::find_if(first, additions.end(),
                            [&](const Addition &a) { return a.row != first->row; });
    for (int64_t begin = 0; begin < width; begin += kChunk) {
      int64_t count = std::min(kChunk, width - begin);
      alignas(64) float sum[kChunk] = {};
      for (auto addition = first; addition != end; ++addition) {
        const T *added = from + addition->number * width + begin;
        for (int64_t d = 0; d < count; ++d)
          sum[d] += added[d];
      }
      throughFloat(dst + first->row * width + begin, count, true,
                   [&](float *sums, int64_t, int64_t) {
                     for (int64_t d = 0; d < count; ++d)
                       sums[d] += sum[d];
                   });
    }
    first = end;
  }
}

/// Writes the sums to zeros, or adds them to what is there.
template <typename G, typename T, typename RowOf>
void sumRows(G *dst, const T *from, int64_t n, int64_t width, Write write, RowOf rowOf) {
  if constexpr (kIsFloat<G>)
    if (write == Write::Set)
      return addRows(dst, from, n, width, rowOf);
  addSortedRows(dst, from, n, width, rowOf);
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
FOR_STORAGE(FOR_IDS)
FOR_IDS(int64_t)
FOR_IDS(int32_t)
FOR_IDS(bool)
#undef FOR_IDS

template <typename T, typename Id>
void embeddingAdd(T *y, const Id *ids, const T *table, const T *addend, int64_t period, int64_t n,
                  int64_t width, TokenRows rows) {
  for (int64_t i = 0; i < n; ++i) {
    checkId(ids[i], i, rows);
    const T *row = rows.has(ids[i]) ? table + (int64_t(ids[i]) - rows.first) * width : nullptr;
    const T *added = addend + i % period * width;
    forLanes(width, [&](int64_t d, int64_t count) {
      Lanes x = row ? loadUpTo(row + d, count) : splat(0.0f);
      storeUpTo(y + i * width + d, x + loadUpTo(added + d, count), count);
    });
  }
}

#define FOR_IDS(T)                                                                                 \
  template void embeddingAdd(T *, const int64_t *, const T *, const T *, int64_t, int64_t,         \
                             int64_t, TokenRows);                                                  \
  template void embeddingAdd(T *, const int32_t *, const T *, const T *, int64_t, int64_t,         \
                             int64_t, TokenRows);
FOR_STORAGE(FOR_IDS)
#undef FOR_IDS

template <typename G, typename T, typename Id>
void embeddingBackward(G *dtable, const T *dy, const Id *ids, int64_t n, int64_t width,
                       TokenRows rows, Write write, int64_t padding) {
  if (write == Write::Set)
    fill(dtable, 0.0f, rows.count * width);
  sumRows(dtable, dy, n, width, write, [&](int64_t i) {
    checkId(ids[i], i, rows);
    return rows.has(ids[i]) && ids[i] != padding ? int64_t(ids[i]) - rows.first : -1;
  });
}

#define FOR_IDS(G, T)                                                                              \
  template void embeddingBackward(G *, const T *, const int64_t *, int64_t, int64_t, TokenRows,    \
                                  Write, int64_t);                                                 \
  template void embeddingBackward(G *, const T *, const int32_t *, int64_t, int64_t, TokenRows,    \
                                  Write, int64_t);
FOR_RESULTS(FOR_IDS)
#undef FOR_IDS

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

template <typename G, typename T, typename Id>
void takeBackward(G *dx, const T *dy, const Id *ids, int64_t tables, int64_t n, int64_t rows,
                  int64_t width) {
  fill(dx, 0.0f, tables * rows * width);
  sumRows(dx, dy, tables * n, width, Write::Set,
          [&](int64_t i) { return takenRow(ids[i], i / n, i % n, rows); });
}

#define TAKE(T)                                                                                    \
  template void takeForward(T *, const int64_t *, const T *, int64_t, int64_t, int64_t, int64_t);  \
  template void takeForward(T *, const int32_t *, const T *, int64_t, int64_t, int64_t, int64_t);
#define TAKE_BACKWARD(G, T)                                                                        \
  template void takeBackward(G *, const T *, const int64_t *, int64_t, int64_t, int64_t, int64_t); \
  template void takeBackward(G *, const T *, const int32_t *, int64_t, int64_t, int64_t, int64_t);
FOR_STORAGE(TAKE)
TAKE(int64_t)
TAKE(int32_t)
TAKE(bool)
FOR_RESULTS(TAKE_BACKWARD)
#undef TAKE
#undef TAKE_BACKWARD

//===-- Cross-entropy -----------------------------------------------------------------------===//

static void checkLabel(int64_t label, int64_t row, int64_t vocabulary) {
  if (label < 0 || label >= vocabulary)
    fail("cross-entropy: label %lld of row %lld is outside 0 .. %lld", (long long)label,
         (long long)row, (long long)vocabulary - 1);
}

template <typename T>
void crossEntropyForward(float *loss, float *logSumExp, const T *logits, const int64_t *labels,
                         int64_t rows, int64_t vocabulary, int64_t stride, int64_t ignoreIndex) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *x = logits + row * stride;
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

template <typename T> void logSumExp(float *y, const T *x, int64_t rows, TokenRows columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns.count) {
    float largest = rowMax(x, columns.inside());
    y[row] = largest + std::log(rowExpSum(x, largest, columns.inside()));
  }
}

template <typename T>
void tokenLoss(float *loss, const T *logits, const float *logSumExp, const int64_t *labels,
               int64_t rows, TokenRows vocabulary, int64_t ignoreIndex) {
  for (int64_t row = 0; row < rows; ++row) {
    loss[row] = 0.0f;
    if (labels[row] == ignoreIndex)
      continue;
    checkLabel(labels[row], row, vocabulary.full);
    if (vocabulary.has(labels[row]))
      loss[row] = logSumExp[row] - logits[row * vocabulary.count + labels[row] - vocabulary.first];
  }
}

template <typename T>
void crossEntropyBackward(T *dlogits, const float *dloss, int64_t dlossStride, const T *logits,
                          const float *logSumExp, const int64_t *labels, int64_t rows,
                          TokenRows vocabulary, int64_t stride, int64_t ignoreIndex) {
  int64_t inside = vocabulary.inside();
  for (int64_t row = 0; row < rows; ++row) {
    const T *x = logits + row * stride;
    T *dx = dlogits + row * stride;
    float seed = dloss[row * dlossStride];
    fill(dx + inside, 0.0f, stride - inside);
    if (labels[row] == ignoreIndex) {
      fill(dx, 0.0f, inside);
      continue;
    }
    checkLabel(labels[row], row, vocabulary.full);
    Lanes shift = splat(logSumExp[row]), factor = splat(seed);
    int64_t label = vocabulary.has(labels[row]) ? labels[row] - vocabulary.first : -1;
    if constexpr (kIsFloat<T>) {
      forLanes(inside, [&](int64_t i, int64_t n) {
        storeUpTo(dx + i, factor * expLanes(loadUpTo(x + i, n) - shift), n);
      });
      if (label >= 0)
        dx[label] -= seed;
    } else { // round the label's element after the subtraction
      alignas(64) float lanes[kLanes];
      forLanes(inside, [&](int64_t i, int64_t n) {
        store(lanes, factor * expLanes(loadUpTo(x + i, n) - shift));
        if (label >= i && label < i + n)
          lanes[label - i] -= seed;
        storeUpTo(dx + i, load(lanes), n);
      });
    }
  }
}

#define LOSS(T)                                                                                    \
  template void crossEntropyForward(float *, float *, const T *, const int64_t *, int64_t,         \
                                    int64_t, int64_t, int64_t);                                    \
  template void logSumExp(float *, const T *, int64_t, TokenRows);                                 \
  template void tokenLoss(float *, const T *, const float *, const int64_t *, int64_t, TokenRows,  \
                          int64_t);                                                                \
  template void crossEntropyBackward(T *, const float *, int64_t, const T *, const float *,        \
                                     const int64_t *, int64_t, TokenRows, int64_t, int64_t);
FOR_STORAGE(LOSS)
#undef LOSS

int64_t countLabels(const int64_t *labels, int64_t n, int64_t ignoreIndex) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i)
    count += labels[i] != ignoreIndex;
  return count;
}

} // namespace partita_rt
