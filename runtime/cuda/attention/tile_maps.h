// How bulk copies find the tiles of a call's heads: tensor maps, which the host makes for each launch.

#ifndef PARTITA_RT_CUDA_ATTENTION_TILE_MAPS_H
#define PARTITA_RT_CUDA_ATTENTION_TILE_MAPS_H

#include "partita_rt/attention.h"
#include "partita_rt/half.h"

#include <cuda.h>

namespace partita_rt::cuda {

/// The rows of a copied box: every tile consists of boxes of 64 rows of 64 elements, and rows after the
/// last one are zeros.
constexpr int kBoxRows = 64, kBoxColumns = 64;

struct TensorSize {
  int64_t rows, heads, batch;
};

/// Returns the map of [batch, heads, rows, headDim] 16-bit elements: data and strides are multiples of 16
/// bytes. Throws Error if the driver refuses it.
CUtensorMap tileMap(const void *data, DType dtype, int64_t headDim, const TensorSize &size,
                    int64_t rowStride, int64_t headStride, int64_t batchStride);

template <typename T>
CUtensorMap tileMap(const HeadsOf<const T> &heads, int64_t headDim, const TensorSize &size) {
  return tileMap(heads.data, kDTypeOf<T>, headDim, size, heads.rowStride, heads.headStride,
                 heads.batchStride);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_TILE_MAPS_H
