//===- Lookup.h - elements by their positions, as rows of tables ------------------------------===//
//
// The dialect's indexed accesses are tx.embedding, rows of a table, and tx.take, rows of each of
// many tables. Gathers of every kind are these, with positions counted through the dimensions that
// they index; a scatter is a gather from what was there and what is new, by the inverse of its
// positions.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_LOOKUP_H
#define PARTITA_LIB_IMPORT_OPERATORS_LOOKUP_H

#include "lib/Import/Folding/Grid.h"
#include "lib/Import/Operators/Math.h"

namespace partita::importer {

/// Fails unless the tensor holds int32 or int64.
mlir::LogicalResult checkIndexType(Node &node, const Tensor &indices);
/// Known indices must lie in [-size, size). `every`: only each `every`-th one, from `first`.
mlir::LogicalResult checkIndices(Node &node, const Tensor &indices, int64_t size, int64_t first = 0,
                                 int64_t every = 1);

/// Indices as int64 values from 0 on; a negative one counts from the end of `size`.
mlir::Value positions(Node &node, Tensor *indices, int64_t size);
/// The elements of `data` at positions along `axis`: data's dimensions before it, those of
/// `positions`, data's dimensions after it. At position `padding` data gets no gradient from here.
mlir::Value takeAlong(Node &node, mlir::Value data, int64_t axis, mlir::Value positions,
                      std::optional<int64_t> padding = {});
/// A lookup in each of many tables: data [..., n, rest...] at positions [..., m] is [..., m, rest...].
/// The positions' rank determines how many dimensions the two share.
mlir::Value takeOfEach(Node &node, mlir::Value data, mlir::Value positions);
/// Adds `updates` to `data` at positions along `axis`. All three agree in every other dimension, whose
/// indices have a table each: so a split of these (the batch) splits the sums, as it does a lookup.
mlir::Value addToEach(Node &node, mlir::Value data, int64_t axis, mlir::Value positions,
                      mlir::Value updates);
/// The same as takeAlong at known positions that are a progression, in either direction.
mlir::Value takeProgression(Node &node, mlir::Value data, int64_t axis, int64_t start, int64_t step,
                            int64_t count);

/// Row-major strides.
Shape rowMajor(llvm::ArrayRef<int64_t> shape);
/// Of ONNX's GatherElements and ScatterElements: where in `shape`, its elements in one row, index
/// i0..in along `axis` points to.
mlir::Value flatPositions(Node &node, mlir::Value positions, llvm::ArrayRef<int64_t> shape,
                          int64_t axis);

/// What a scatter does if several updates hit an element.
enum class Scatter { replace, add, mul, max, min };
mlir::LogicalResult scatterKind(Node &node, Scatter &kind);
/// `rows` [r, w] with the rows at `at` [u] replaced by, or combined with, those of `updates` [u,
/// w]. `known`: the positions, if they are known. Fails if the result is too large.
mlir::FailureOr<mlir::Value> scatterRows(Node &node, mlir::Value rows, mlir::Value at,
                                         const MaybeHost &known, mlir::Value updates, Scatter kind);

/// `data` with the elements at positions along `axis` replaced by the last of the `updates` that go there,
/// split as addToEach is. Fails if too many elements and updates meet.
mlir::FailureOr<mlir::Value> setInEach(Node &node, mlir::Value data, int64_t axis,
                                       mlir::Value positions, mlir::Value updates);

/// Indices that are positions along dimensions, and so within a dimension of this size, as a grid.
/// `column`: of tuples, their element of that number.
std::optional<Grid> gridOf(Node &node, Tensor *indices, int64_t size,
                           std::optional<int64_t> column = std::nullopt);
/// The elements that the grid points to in `count` dimensions of `data` from `from` on, with `shape` in
/// place of these dimensions; by slices, transposes and broadcasts, which split like their operands.
/// Null if they are not a box.
mlir::Value takeGrid(Node &node, mlir::Value data, int64_t from, int64_t count, const Grid &grid,
                     llvm::ArrayRef<int64_t> shape);
/// `data` with what the grid points to in its first `count` dimensions replaced by, or combined with,
/// `updates`, by slices and concatenations. Null if it is not a box, or several updates hit an element.
mlir::Value writeGrid(Node &node, mlir::Value data, int64_t count, const Grid &grid,
                      mlir::Value updates, Scatter kind);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_LOOKUP_H
