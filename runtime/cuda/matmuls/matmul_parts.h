// Operations around cuBLASLt that it cannot do itself, on rows of matrices at any stride.

#ifndef PARTITA_RT_CUDA_MATMULS_MATMUL_PARTS_H
#define PARTITA_RT_CUDA_MATMULS_MATMUL_PARTS_H

#include "partita_rt/cuda/stream.h"
#include "partita_rt/half.h"

namespace partita_rt::cuda {

/// dst[rows, width] = src; a srcStride of 0 repeats one row.
template <typename D, typename S>
void convertRows(const Stream &stream, D *dst, int64_t dstStride, const S *src, int64_t srcStride,
                 int64_t rows, int64_t width);
/// x[rows, width] *= factor; 0 does not read x.
template <typename T>
void scaleRows(const Stream &stream, T *x, int64_t stride, float factor, int64_t rows,
               int64_t width);
/// x[rows, width] += row[width].
template <typename T>
void addRow(const Stream &stream, T *x, int64_t stride, const T *row, int64_t rows, int64_t width);
/// y[rows, width] = gelu(x), the tanh form.
template <typename T>
void geluRows(const Stream &stream, T *y, int64_t yStride, const T *x, int64_t xStride,
              int64_t rows, int64_t width);
/// dx[rows, width] *= gelu'(x).
template <typename T>
void geluGradRows(const Stream &stream, T *dx, int64_t dxStride, const T *x, int64_t xStride,
                  int64_t rows, int64_t width);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_MATMULS_MATMUL_PARTS_H
