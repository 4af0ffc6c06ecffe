//===- View.h - the layout of a tensor in memory ------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_RT_VIEW_H
#define PARTITA_DIALECTS_RT_VIEW_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace partita::rt {

/// Element (i, j, ...) is `offset + i * strides[0] + j * strides[1] + ...` elements after the
/// start of the storage. A stride of 0 repeats.
struct View {
  llvm::SmallVector<int64_t> shape, strides;
  int64_t offset = 0;

  static View dense(llvm::ArrayRef<int64_t> shape, int64_t offset = 0);
  bool isDense() const;
  int64_t elements() const;
  /// The same elements in the same places: the stride of a dimension of size one does not matter.
  bool operator==(const View &other) const;
  bool operator!=(const View &other) const { return !(*this == other); }

  /// The same elements, row-major, in another shape; none if no strides express that.
  std::optional<View> reshape(llvm::ArrayRef<int64_t> to) const;
  View transpose(llvm::ArrayRef<int64_t> permutation) const;
  /// Numpy's broadcasting to `to`.
  View broadcast(llvm::ArrayRef<int64_t> to) const;
  View slice(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> steps,
             llvm::ArrayRef<int64_t> sizes) const;

  /// As [rows, width] with contiguous rows: the stride between rows; none if that is not a matrix.
  /// `width` is the last dimension.
  std::optional<int64_t> rowStride() const;
  /// All strides of dimensions larger than one are 0: one value for all.
  bool isScalar() const;
};

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_VIEW_H
