// Constant arrays of an emitted program:
//
//     static __device__ const float table0[] = {1.0f, 2.0f};
//     stridedCopy(stream, to, Shape{1}, deviceTable(table0), Shape{1}, Shape{2}, 4);

#ifndef PARTITA_RT_CUDA_TABLE_CUH
#define PARTITA_RT_CUDA_TABLE_CUH

#include "partita_rt/cuda/launch.cuh"
#include "partita_rt/tensors.h"

namespace partita_rt::cuda {

/// Returns the address of a __device__ constant.
template <typename T> const T *deviceConstant(const T &constant) {
  void *at = nullptr;
  if (cudaError_t error = cudaGetSymbolAddress(&at, constant); error != cudaSuccess)
    fail("a constant array of the program: %s", cudaGetErrorString(error));
  return static_cast<const T *>(at);
}
template <typename T, size_t N> const T *deviceTable(const T (&table)[N]) {
  return *deviceConstant(table);
}

//===-- Tables of tensors (tensors.h) -------------------------------------------------------===//

/// Elements per block of work on a tensor.
constexpr int64_t kTensorBlock = kSquareSumBlock;

/// A table as kernels see it, with the blocks of all tensors numbered consecutively:
///
///     static __device__ const TensorTable kUpdatesOnDevice(kUpdates);
template <int kColumns, size_t kRows> struct TensorTable {
  TensorRow<kColumns> rows[kRows];
  int64_t firstBlocks[kRows + 1]; ///< per row; the last one is the number of all blocks

  constexpr explicit TensorTable(const TensorRow<kColumns> (&table)[kRows])
      : rows(), firstBlocks() {
    for (size_t i = 0; i < kRows; ++i) {
      rows[i] = table[i];
      firstBlocks[i + 1] = firstBlocks[i] + ceilDiv(table[i].elements, kTensorBlock);
    }
  }
};

/// Some rows of a table, on the host and, for kernels, on the device.
template <int kColumns> struct DeviceRows : TensorRows<kColumns> {
  const TensorRow<kColumns> *rows;
  const int64_t *firstBlocks;
  int64_t blocks; ///< of these rows
};

template <int kColumns, size_t kRows>
DeviceRows<kColumns> tensorRows(const TensorRow<kColumns> (&table)[kRows],
                                const TensorTable<kColumns, kRows> &onDevice, int64_t first = 0,
                                int64_t count = kRows) {
  const TensorTable<kColumns, kRows> *at = deviceConstant(onDevice);
  DeviceRows<kColumns> some{tensorRows(table, first, count), at->rows + first,
                            at->firstBlocks + first, 0};
  for (const TensorRow<kColumns> &row : some)
    some.blocks += ceilDiv(row.elements, kTensorBlock);
  return some;
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_TABLE_CUH
