//===- View.h - the layout of a tensor in memory ------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_RT_VIEW_H
#define PARTITA_DIALECTS_RT_VIEW_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace partita::rt {

/// A strided layout: element (i, j, ...) is `offset + i * strides[0] + j * strides[1] + ...`
/// elements after the start of the storage. A stride of 0 repeats.
struct View {
  llvm::SmallVector<int64_t> shape, strides;
  int64_t offset = 0;

  static View dense(llvm::ArrayRef<int64_t> shape, int64_t offset = 0);
  bool isDense() const;
  int64_t elements() const;
  /// Compares which elements are in which places: the stride of a dimension of size one does not
  /// matter.
  bool operator==(const View &other) const;
  bool operator!=(const View &other) const { return !(*this == other); }

  /// Returns the same elements, row-major, in another shape; none if no strides express that.
  std::optional<View> reshape(llvm::ArrayRef<int64_t> to) const;
  View transpose(llvm::ArrayRef<int64_t> permutation) const;
  /// Broadcasts to `to` as Numpy does.
  View broadcast(llvm::ArrayRef<int64_t> to) const;
  View slice(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> steps,
             llvm::ArrayRef<int64_t> sizes) const;

  /// Returns the stride between rows of the view as [rows, width], where `width` is the last
  /// dimension; none if rows are not contiguous or evenly spaced.
  std::optional<int64_t> rowStride() const;
  /// Returns true if all strides of dimensions larger than one are 0: one value for all elements.
  bool isScalar() const;
};

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_VIEW_H
