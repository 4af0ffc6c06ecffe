// Sums of the rows of attention's gradients (RowSumsOf), of partial sums that kernels on tensor cores
// leave, or of what other kernels have stored: dq [batch, sequence, heads, headDim], dk and dv likewise,
// wherever they lie, are read once. Two launches: partial sums of blocks of rows as in column_sum.cuh,
// of all three tensors at once; addPartials.

#include "cuda/attention/attention_sums.cuh"

#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

/// Rows of heads as a matrix. A layout in which all rows are equally far apart has one sequence, and one in
/// which heads lie side by side has one head.
template <typename T> struct SummedRows {
  HeadsOf<const T> heads;
  int64_t rows, positions, width, headDim, firstColumn;

  SummedRows(const HeadsOf<T> &x, int64_t batch, int64_t positions, int64_t count, int64_t dim,
             int64_t firstColumn)
      : heads{x.data, x.batchStride, x.rowStride, x.headStride}, rows(batch * positions),
        positions(positions), width(count * dim), headDim(dim), firstColumn(firstColumn) {
    if (x.batchStride == positions * x.rowStride)
      this->positions = rows;
    if (x.headStride == dim)
      headDim = width;
  }
  __device__ void load(float (&v)[kPack], int64_t row, int64_t first) const {
    int64_t b = positions == rows ? 0 : row / positions;
    const T *from = heads.data + b * heads.batchStride + (row - b * positions) * heads.rowStride;
    if (headDim == width)
      return cuda::load(v, from + first, width - first);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      int64_t column = first + i, head = column / headDim;
      v[i] = column < width ? float(from[head * heads.headStride + column - head * headDim]) : 0.0f;
    }
  }
};

/// partials[gridDim.y, columns] of dq, dk and dv, which are those of blockIdx.z.
template <typename T>
__global__ void partialRowSums(float *partials, int64_t columns, SummedRows<T> dq, SummedRows<T> dk,
                               SummedRows<T> dv) {
  SummedRows<T> x = blockIdx.z == 0 ? dq : blockIdx.z == 1 ? dk : dv;
  columnsOfBlock(
      x.rows, x.width,
      [&](int64_t row, int64_t first, float (&v)[kPack]) { x.load(v, row, first); },
      [&](int64_t first, const float (&sums)[kPack]) {
        store(partials + int64_t(blockIdx.y) * columns + x.firstColumn + first, sums,
              x.width - first);
      });
}

template <typename T> bool isBehind(FloatOrArray<T> y, FloatOrArray<T> x, int64_t elements) {
  int64_t bytes = elements * int64_t(x.isFloat ? sizeof(float) : sizeof(T));
  return x.data && x.isFloat == y.isFloat && static_cast<char *>(x.data) + bytes == y.data;
}

/// Adds partials [ofQueries, columns] to the sums of dq, and [ofKeys, columns] to those of dk and dv: in one
/// launch if these lie side by side.
template <typename T>
void addPartialRows(const Stream &stream, const RowSumsOf<T> &y, const float *partials,
                    const AttentionSums &sums, int64_t ofQueries, int64_t ofKeys) {
  FloatOrArray<T> dq(y.dq), dk(y.dk), dv(y.dv);
  int64_t columns = sums.columns(), key = sums.keyColumn(), value = sums.valueColumn();
  auto add = [&](FloatOrArray<T> to, int64_t first, int64_t width, int64_t parts) {
    if (to.data && width > 0)
      launchAddPartials<T, 1>(stream, {{to}}, partials + first, parts, width, Write::Set, 1.0f,
                              columns);
  };
  if (ofQueries == ofKeys && isBehind(dk, dq, key) && isBehind(dv, dk, value - key))
    return add(dq, 0, columns, ofQueries);
  add(dq, 0, key, ofQueries);
  add(dk, key, value - key, ofKeys);
  add(dv, value, columns - value, ofKeys);
}

} // namespace

template <typename T>
void addPartialRowSums(const Stream &stream, const RowSumsOf<T> &y, const float *partials,
                       const AttentionShape &shape) {
  AttentionSums sums = sumsOf(shape);
  addPartialRows(stream, y, partials, sums, sums.partials(sums.sequence),
                 sums.partials(sums.keySequence));
}

template <typename T>
void sumStoredRows(const Stream &stream, const RowSumsOf<T> &y, float *partials,
                   const AttentionShape &shape, const HeadsOf<T> &dq, const HeadsOf<T> &dk,
                   const HeadsOf<T> &dv) {
  AttentionSums sums = sumsOf(shape);
  int64_t key = sums.keyColumn(), value = sums.valueColumn(), columns = sums.columns();
  int64_t rows = sums.batch * most(sums.sequence, sums.keySequence);
  int64_t blocks = rows == 0 ? 0 : columnBlocks(rows, columns);
  int64_t keyHeads = sums.heads / sums.groups;
  SummedRows<T> ofQueries(dq, sums.batch, sums.sequence, sums.heads, sums.headDim, 0);
  SummedRows<T> ofKeys(dk, sums.batch, sums.keySequence, keyHeads, sums.headDim, key);
  SummedRows<T> ofValues(dv, sums.batch, sums.keySequence, keyHeads, sums.valueDim, value);
  int64_t widest = most(key, most(value - key, columns - value));
  if (blocks > 0 && widest > 0)
    PARTITA_RT_LAUNCH(partialRowSums<T>,
                      dim3(gridOf(ceilDiv(widest, kColumnPacks * kPack)).x, unsigned(blocks), 3),
                      dim3(kColumnPacks, kColumnRows), 0, stream, partials, columns, ofQueries,
                      ofKeys, ofValues);
  addPartialRows(stream, y, partials, sums, blocks, blocks);
}

#define ATTENTION_SUMS(T)                                                                          \
  template void addPartialRowSums(const Stream &, const RowSumsOf<T> &, const float *,             \
                                  const AttentionShape &);                                         \
  template void sumStoredRows(const Stream &, const RowSumsOf<T> &, float *,                       \
                              const AttentionShape &, const HeadsOf<T> &, const HeadsOf<T> &,      \
                              const HeadsOf<T> &);
FOR_STORAGE(ATTENTION_SUMS)
#undef ATTENTION_SUMS

} // namespace partita_rt::cuda
