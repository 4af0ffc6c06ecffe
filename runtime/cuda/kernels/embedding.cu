// Rows of a table by number, forward and backward: embeddings (vocab-parallel too) and take. ids
// [n], table [rows, width] in T, y and dy [n, width]; gradients in T or float.
//
// Forward: one read and one write of a row, 2 * sizeof(T) bytes per element. embeddingAdd also reads the
// addend, once per period as far as caches hold it.
//
// Backward: the gradient of a row is the sum of the dy rows that chose it. Atomic additions would
// make its order random, so the numbers are sorted by row (sort_rows.cuh); then every tile of
// kSumTile of them adds up its rows, in order. A sum that begins and ends in one tile goes to the
// table directly; if it crosses tiles, the partial sums go to scratch memory, and a second launch
// adds them, tile after tile. So a token that fills the batch takes no longer than others. Moves
// sizeof(T) bytes per element of dy and first writes the table once (Write::Set). Three launches list
// and add; the sort has three more for each 8 bits of a row's number, together some microseconds.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/row_copy.cuh"
#include "cuda/kernels/sort_rows.cuh"
#include "partita_rt/cuda/divisor.cuh"

namespace partita_rt::cuda {

namespace {

/// The map from ids to rows of an embedding's table: -1 if another rank has it, and for `padding`.
template <typename Id> struct TableRow {
  const Id *ids;
  TokenRowsAt rows;
  Fault *fault;
  int64_t padding = -1;
  __device__ int64_t operator()(int64_t i) const {
    TokenRows here = rows.read();
    auto id = int64_t(ids[i]);
    if (id < 0 || id >= here.full)
      report(fault, Fault::EmbeddingId, id, i, 0, here.full);
    return id >= 0 && id < here.full && here.has(id) && id != padding ? id - here.first : -1;
  }
};

/// The map from ids to rows, for `n` ids per table.
template <typename Id> struct TakenRow {
  const Id *ids;
  int64_t n, rows;
  Fault *fault;
  __device__ int64_t operator()(int64_t i) const {
    int64_t id = int64_t(ids[i]), table = i / n;
    if (id >= 0 && id < rows)
      return table * rows + id;
    report(fault, Fault::TakeIndex, id, i - table * n, table, rows);
    return -1;
  }
};

template <typename T, typename RowOf> struct ChosenRow {
  const T *table;
  int64_t width;
  RowOf rowOf;
  __device__ const T *operator()(int64_t i) const {
    int64_t row = rowOf(i); // by every lane, so the fault is reported once
    return row < 0 ? nullptr : table + row * width;
  }
};

/// y[row] = the chosen row + addend[row mod period]; a row of threads per row, each of which reads a few
/// packs before it writes the first.
template <typename T, typename RowOf>
__global__ void addToRows(T *y, ChosenRow<T, RowOf> chosen, const T *addend, Divisor period,
                          int64_t rows, int64_t width) {
  constexpr int kAtOnce = 4;
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  const T *from = chosen(row), *added = addend + (row - period.quotient(row) * period) * width;
  int64_t step = int64_t(blockDim.x) * kPack;
  for (int64_t first = int64_t(threadIdx.x) * kPack; first < width; first += kAtOnce * step) {
    Pack<T, kPack> x[kAtOnce], a[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      int64_t at = first + j * step, count = at < width ? width - at : 0;
      loadBits(x[j], from ? from + at : added + at, from ? count : 0);
      loadBits(a[j], added + at, count);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      int64_t at = first + j * step;
      float v[kPack], w[kPack];
      widen(v, x[j]);
      widen(w, a[j]);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        v[i] += w[i];
      if (at < width)
        store(y + row * width + at, v, width - at);
    }
  }
}

template <typename RowOf>
__global__ void listAdditions(Additions additions, RowOf rowOf, int64_t n, uint32_t nowhere) {
  int64_t i = globalThread();
  if (i >= n)
    return;
  int64_t row = rowOf(i);
  additions.rows[i] = row < 0 ? nowhere : uint32_t(row);
  additions.numbers[i] = int32_t(i);
}

/// A tile's position in the sorted list.
struct Tile {
  int64_t begin, end;
  bool goesOn;  ///< its first row begins in an earlier tile
  bool reaches; ///< its last row continues in the next one

  __device__ Tile(const uint32_t *rows, int64_t number, int64_t n)
      : begin(number * kSumTile), end(least(begin + kSumTile, n)),
        goesOn(begin > 0 && rows[begin - 1] == rows[begin]),
        reaches(end < n && rows[end - 1] == rows[end]) {}
};

/// parts[tiles, 2, width]: the sums of a tile's first row if it began earlier, and of its last row
/// if it continues. A block has a tile (x) and a range of columns (y).
template <typename G, typename T>
__global__ void __launch_bounds__(kSumThreads)
    sumTiles(G *table, float *parts, Additions sorted, const T *dy, int64_t n, int64_t width,
             uint32_t nowhere) {
  int64_t column = (int64_t(blockIdx.y) * kSumThreads + threadIdx.x) * kPack;
  if (column >= width)
    return;
  Tile tile(sorted.rows, blockIdx.x, n);
  float sums[kPack] = {};
  bool first = true;
  for (int64_t i = tile.begin; i < tile.end; ++i) {
    uint32_t row = sorted.rows[i];
    if (row == nowhere) // the last ones in the list
      return;
    float v[kPack];
    load(v, dy + int64_t(sorted.numbers[i]) * width + column, width - column);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      sums[j] += v[j];
    bool last = i + 1 == tile.end;
    if (!last && sorted.rows[i + 1] == row)
      continue;
    bool fromBefore = first && tile.goesOn, further = last && tile.reaches;
    if (fromBefore || further) {
      int64_t part = int64_t(blockIdx.x) * 2 + (fromBefore ? 0 : 1);
      store(parts + part * width + column, sums, width - column);
    } else {
      float before[kPack];
      load(before, table + int64_t(row) * width + column, width - column);
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        before[j] += sums[j];
      store(table + int64_t(row) * width + column, before, width - column);
    }
    first = false;
#pragma unroll
    for (float &each : sums)
      each = 0.0f;
  }
}

/// Adds up the partial sums of rows that begin in tile x and continue.
template <typename G>
__global__ void __launch_bounds__(kSumThreads)
    joinTiles(G *table, const float *parts, Additions sorted, int64_t n, int64_t width,
              uint32_t nowhere) {
  int64_t column = (int64_t(blockIdx.y) * kSumThreads + threadIdx.x) * kPack;
  Tile tile(sorted.rows, blockIdx.x, n);
  uint32_t row = sorted.rows[tile.end - 1];
  bool beginsHere = !tile.goesOn || sorted.rows[tile.begin] != row;
  if (column >= width || row == nowhere || !tile.reaches || !beginsHere)
    return;
  float sums[kPack];
  load(sums, parts + (int64_t(blockIdx.x) * 2 + 1) * width + column, width - column);
  for (int64_t number = int64_t(blockIdx.x) + 1;; ++number) {
    float v[kPack];
    load(v, parts + number * 2 * width + column, width - column);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      sums[j] += v[j];
    Tile next(sorted.rows, number, n);
    if (!next.reaches || sorted.rows[next.end - 1] != row)
      break;
  }
  G *to = table + int64_t(row) * width + column;
  float before[kPack];
  load(before, to, width - column);
#pragma unroll
  for (int j = 0; j < kPack; ++j)
    sums[j] += before[j];
  store(to, sums, width - column);
}

/// table[rows, width] += the dy rows that rowOf maps there.
template <typename G, typename T, typename RowOf>
void addRows(const Stream &stream, G *table, const T *dy, const RowOf &rowOf, int64_t n,
             int64_t rows, int64_t width) {
  if (n > INT32_MAX || rows >= INT32_MAX)
    fail("sums of %lld rows into %lld: at most %d are possible", (long long)n, (long long)rows,
         INT32_MAX);
  if (n == 0 || width == 0)
    return;
  auto *memory =
      scratchOf<unsigned char>(stream, rowSumScratch(n, width), "gradient of an embedding");
  int64_t list = aligned(n * 4), blocks = ceilDiv(n, kSortBlock), tiles = ceilDiv(n, kSumTile);
  auto at = [&](int64_t i) { return memory + i * list; };
  Additions additions{reinterpret_cast<uint32_t *>(at(0)), reinterpret_cast<int32_t *>(at(1))};
  Additions other{reinterpret_cast<uint32_t *>(at(2)), reinterpret_cast<int32_t *>(at(3))};
  auto *counts = reinterpret_cast<int32_t *>(at(4));
  auto *parts = reinterpret_cast<float *>(at(4) + blocks * kDigits * 4);
  auto nowhere = uint32_t(rows);
  PARTITA_RT_LAUNCH(listAdditions<RowOf>, gridOf(ceilDiv(n, 256)), 256, 0, stream, additions, rowOf,
                    n, nowhere);
  Additions sorted = sortByRow(stream, additions, other, counts, n, uint64_t(rows));
  dim3 grid(gridOf(tiles).x, unsigned(ceilDiv(width, kSumThreads * kPack)));
  PARTITA_RT_LAUNCH((sumTiles<G, T>), grid, kSumThreads, 0, stream, table, parts, sorted, dy, n,
                    width, nowhere);
  PARTITA_RT_LAUNCH(joinTiles<G>, grid, kSumThreads, 0, stream, table, parts, sorted, n, width,
                    nowhere);
}

} // namespace

template <typename T, typename Id>
void embeddingForward(const Stream &stream, T *y, const Id *ids, const T *table, int64_t n,
                      int64_t width, TokenRowsAt rows) {
  TableRow<Id> rowOf{ids, rows, stream.fault};
  launchCopyRows(stream, y, width, n, width, ChosenRow<T, TableRow<Id>>{table, width, rowOf});
}

template <typename T, typename Id>
void embeddingAdd(const Stream &stream, T *y, const Id *ids, const T *table, const T *addend,
                  int64_t period, int64_t n, int64_t width, TokenRowsAt rows) {
  if (n == 0 || width == 0)
    return;
  using RowOf = TableRow<Id>;
  ChosenRow<T, RowOf> chosen{table, width, {ids, rows, stream.fault}};
  dim3 block = rowCopyBlock<T>(width);
  PARTITA_RT_LAUNCH((addToRows<T, RowOf>), gridOf(ceilDiv(n, block.y)), block, 0, stream, y, chosen,
                    addend, period, n, width);
}

template <typename G, typename T, typename Id>
void embeddingBackward(const Stream &stream, G *dtable, const T *dy, const Id *ids, int64_t n,
                       int64_t width, TokenRowsAt rows, Write write, int64_t padding) {
  if (write == Write::Set)
    fill(stream, dtable, 0.0f, rows.count * width);
  TableRow<Id> rowOf{ids, rows, stream.fault, padding};
  addRows(stream, dtable, dy, rowOf, n, rows.count, width);
}

template <typename T, typename Id>
void takeForward(const Stream &stream, T *y, const Id *ids, const T *x, int64_t tables, int64_t n,
                 int64_t rows, int64_t width) {
  TakenRow<Id> rowOf{ids, n, rows, stream.fault};
  launchCopyRows(stream, y, width, tables * n, width, ChosenRow<T, TakenRow<Id>>{x, width, rowOf});
}

template <typename G, typename T, typename Id>
void takeBackward(const Stream &stream, G *dx, const T *dy, const Id *ids, int64_t tables,
                  int64_t n, int64_t rows, int64_t width) {
  fill(stream, dx, 0.0f, tables * rows * width);
  TakenRow<Id> rowOf{ids, n, rows, stream.fault};
  addRows(stream, dx, dy, rowOf, tables * n, tables * rows, width);
}

#define FORWARD(T, Id)                                                                             \
  template void embeddingForward(const Stream &, T *, const Id *, const T *, int64_t, int64_t,     \
                                 TokenRowsAt);                                                     \
  template void takeForward(const Stream &, T *, const Id *, const T *, int64_t, int64_t, int64_t, \
                            int64_t);
#define ADD(T, Id)                                                                                 \
  template void embeddingAdd(const Stream &, T *, const Id *, const T *, const T *, int64_t,       \
                             int64_t, int64_t, TokenRowsAt);
#define BACKWARD(G, T, Id)                                                                         \
  template void embeddingBackward(const Stream &, G *, const T *, const Id *, int64_t, int64_t,    \
                                  TokenRowsAt, Write, int64_t);                                    \
  template void takeBackward(const Stream &, G *, const T *, const Id *, int64_t, int64_t,         \
                             int64_t, int64_t);
#define FOR_TYPES(T) FORWARD(T, int64_t) FORWARD(T, int32_t)
#define FOR_SUMS(T) ADD(T, int64_t) ADD(T, int32_t)
#define FOR_GRADIENTS(G, T) BACKWARD(G, T, int64_t) BACKWARD(G, T, int32_t)
FOR_STORAGE(FOR_TYPES)
FOR_TYPES(int64_t)
FOR_TYPES(int32_t)
FOR_TYPES(bool)
FOR_STORAGE(FOR_SUMS)
FOR_RESULTS(FOR_GRADIENTS)
#undef FORWARD
#undef ADD
#undef BACKWARD
#undef FOR_TYPES
#undef FOR_SUMS
#undef FOR_GRADIENTS

} // namespace partita_rt::cuda
