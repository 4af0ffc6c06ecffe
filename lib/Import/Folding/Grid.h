//===- Grid.h - indices that are positions along dimensions -----------------------------------===//
//
// x[arange(batch)[:, None], arange(keys)] is x itself, whichever operator an exporter uses and however
// it writes the index: a Range that is unsqueezed, expanded, concatenated with others, or multiplied
// by a row's length and added to the next. Such a lookup is imported as a slice, a transpose and a
// broadcast, which can be split like x; a lookup of unknown rows cannot.
//
// The index tensor is a grid if its elements, in row-major order, count through some dimensions at a
// fixed stride each.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FOLDING_GRID_H
#define PARTITA_LIB_IMPORT_FOLDING_GRID_H

#include "mlir/IR/Value.h"
#include "partita/Import/HostTensor.h"

namespace partita::importer {

/// The element at row-major position (i0, i1, ...) of `dims` is offset + sum of i_d * stride_d. The
/// tensor's own shape may be coarser than `dims`: arange(6) // 2 is one dimension and two here.
struct Grid {
  struct Dim {
    int64_t size, stride;
  };
  int64_t offset = 0;
  llvm::SmallVector<Dim, 6> dims;

  int64_t low() const;
  int64_t high() const;
};

std::optional<Grid> findGrid(const HostTensor &indices);
std::optional<Grid> findGrid(mlir::Value indices);

/// A grid of indices into a dimension of this size, with negative ones counted from its start. None if
/// only some are negative, or if some are out of range.
std::optional<Grid> within(Grid grid, int64_t size);
/// sum of grids[k] * strides[k], which have the same number of elements.
std::optional<Grid> combine(llvm::ArrayRef<Grid> grids, llvm::ArrayRef<int64_t> strides);

/// The elements that a grid points to, as a box: the indexed dimension is viewed as several, `sizes`; the
/// box has `extents` elements of each from `offsets` on, every `steps`-th. Dimension gridDims[d] of the
/// grid counts through dimension d of the box; -1: none does.
struct Box {
  Shape sizes, offsets, extents, steps;
  llvm::SmallVector<int64_t, 4> gridDims;
};
/// None if the elements are not a box. `shape`: the dimensions that were indexed together; the box
/// has these where it can.
std::optional<Box> findBox(const Grid &grid, llvm::ArrayRef<int64_t> shape);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FOLDING_GRID_H
