//===- Slices.h - slices of tensors, and tensors joined from slices ---------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_SLICES_H
#define PARTITA_LIB_IMPORT_OPERATORS_SLICES_H

#include "lib/Import/File/Node.h"

namespace partita::importer {

/// Elements offset + i * stride of every dimension; at first all of them.
struct Slice {
  Shape offsets, sizes, strides;
  explicit Slice(llvm::ArrayRef<int64_t> shape)
      : offsets(shape.size(), 0), sizes(shape), strides(shape.size(), 1) {}
};

mlir::FailureOr<Tensor *> takeSlice(Node &node, Tensor *x, const Slice &slice);
/// Of a split without sizes: `parts` of `each`, the last ones smaller, down to none.
Shape equalSizes(int64_t size, int64_t parts, int64_t each);
/// Errors unless the sizes make `size`.
mlir::LogicalResult checkSizes(Node &node, int64_t size, llvm::ArrayRef<int64_t> sizes);
/// The parts, at least one, one after another along `axis`, which need not be checked yet.
mlir::FailureOr<Tensor *> join(Node &node, llvm::ArrayRef<Tensor *> parts, int64_t axis);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_SLICES_H
