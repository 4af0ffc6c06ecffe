//===- Indexing.cpp - Gather, Scatter and their kin -------------------------------------------===//
//
// Token and position embeddings are the gathers that stay in most programs; what belongs to masks
// and positions folds, or is no lookup at all (Grid.h); the rest is looked up (Lookup.h).
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/Folding/Bounds.h"
#include "lib/Import/Operators/Lookup.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// One known index along an axis of a value: a slice without that dimension.
LogicalResult gatherOne(Node &node, Tensor *data, int64_t axis, const Tensor &indices,
                        llvm::ArrayRef<int64_t> shape) {
  Shape offsets(data->shape.size(), 0), sizes(data->shape), strides(data->shape.size(), 1);
  int64_t index = indices.host->onlyInt();
  offsets[axis] = index < 0 ? index + data->shape[axis] : index;
  sizes[axis] = 1;
  return node.set(0, node.reshape(node.slice(node.value(data), offsets, sizes, strides), shape));
}

/// A parameter, or one in another form.
bool isParameter(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<tx::CastOp, tx::ReshapeOp, tx::TransposeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<train::ReadOp>(op);
}

/// Rows of what was a table for each of n (x[arange(n), ids] with the first two dimensions of x as
/// one): the i-th indices are i times a table's rows, and less than that. Taken of each table, what
/// splits n splits the program. Null where the indices are not known to be such.
Value gatherNumbered(Node &node, Tensor *data, Value indices) {
  Operation *add = indices.getDefiningOp();
  while (add && keepsIntegers(add))
    add = add->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<tx::AddOp>(add) || shapeOf(indices).empty())
    return {};
  int64_t tables = shapeOf(indices)[0], rows = data->shape[0] / tables;
  int64_t each = *elementCount(shapeOf(indices)) / tables;
  if (tables == 1 || data->shape[0] % tables != 0)
    return {};
  for (unsigned number : {0, 1}) {
    Value ids = add->getOperand(1 - number);
    if (!countsUp(add->getOperand(number), tables, rows) || !isWithin(ids, rows))
      continue;
    Shape apart{tables, rows};
    apart.append(data->shape.begin() + 1, data->shape.end());
    return takeOfEach(node, node.reshape(node.value(data), apart),
                      node.reshape(ids, {tables, each}));
  }
  return {};
}

/// Counts the axis from the front, and checks that the indices may point along it into data.
LogicalResult checkAlong(Node &node, int64_t &axis, const Tensor &data, const Tensor &indices) {
  if (failed(node.normalizeAxis(axis, data.shape.size())) || failed(checkIndexType(node, indices)))
    return failure();
  return checkIndices(node, indices, data.shape[axis]);
}

/// An embedding's `padding_idx`, as dynamo's exporter records it.
std::optional<int64_t> paddingOf(Node &node, int64_t rows) {
  std::optional<ProgramCall> call = callOf(node.proto);
  int64_t padding = -1;
  bool isThere = call && call->operation == "embedding" &&
                 !call->textAt(2).getAsInteger(10, padding) && padding >= 0 && padding < rows;
  return isThere ? std::optional(padding) : std::nullopt;
}

LogicalResult gather(Node &node) {
  int64_t axis = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1);
  if (failed(checkAlong(node, axis, *data, *indices)))
    return failure();
  llvm::ArrayRef<int64_t> dims(data->shape);
  Shape shape(dims.take_front(axis));
  shape.append(indices->shape.begin(), indices->shape.end());
  shape.append(dims.begin() + axis + 1, dims.end());
  if (!elementCount(shape))
    return node.error() << "its result would have shape " << shapeText(shape)
                        << ", which is too large";
  if (data->host && indices->host)
    if (MaybeHost host = node.folder().gather(*data->host, *indices->host, axis))
      return node.set(0, *host);
  if (failed(node.emittable({data, indices})))
    return failure();
  bool isTable = axis == 0 && isParameter(node.value(data));
  std::optional<int64_t> padding = axis == 0 ? paddingOf(node, dims[0]) : std::nullopt;
  if (indices->host && indices->host->size() == 1 && !padding)
    return gatherOne(node, data, axis, *indices, shape);
  // A table of positions stays one that is looked up: its rows may be split.
  if (std::optional<Grid> grid =
          isTable || padding ? std::nullopt : gridOf(node, indices, dims[axis]))
    if (Value taken = takeGrid(node, node.value(data), axis, 1, *grid, indices->shape))
      return node.set(0, taken);
  if (axis == 0 && !indices->host && !padding)
    if (Value taken = gatherNumbered(node, data, node.value(indices)))
      return node.set(0, node.reshape(taken, shape));
  // Token ids into a parameter are an embedding: an id below zero is invalid, which the program reports
  // when it runs. Elsewhere a negative index counts from the end.
  bool areTokens = isTable && !indices->host;
  Value at = areTokens ? node.value(indices) : positions(node, indices, dims[axis]);
  return node.set(0, takeAlong(node, node.value(data), axis, at, padding));
}

/// The positions 0, 1, 2, ... along dimension `axis` of a tensor of this shape.
Grid countAlong(llvm::ArrayRef<int64_t> shape, int64_t axis) {
  Grid grid;
  for (auto [i, size] : llvm::enumerate(shape))
    if (size > 1)
      grid.dims.push_back({size, static_cast<int64_t>(i) == axis ? 1 : 0});
  return grid;
}

/// Of GatherElements and ScatterElements: where the indices point to in data of this shape, its
/// elements in one row.
std::optional<Grid> elementGrid(Node &node, Tensor *indices, llvm::ArrayRef<int64_t> shape,
                                int64_t axis) {
  llvm::SmallVector<Grid> grids;
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
    std::optional<Grid> grid = dim == axis ? gridOf(node, indices, shape[axis])
                                           : std::optional(countAlong(indices->shape, dim));
    if (!grid)
      return std::nullopt;
    grids.push_back(*grid);
  }
  return combine(grids, rowMajor(shape));
}

LogicalResult gatherElements(Node &node) {
  int64_t axis = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1);
  if (failed(checkAlong(node, axis, *data, *indices)))
    return failure();
  bool fits = data->shape.size() == indices->shape.size();
  for (size_t i = 0; fits && i < data->shape.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || indices->shape[i] <= data->shape[i];
  if (!fits)
    return node.error() << "indices of shape " << shapeText(indices->shape)
                        << " do not fit data of shape " << shapeText(data->shape);
  if (data->host && indices->host)
    if (MaybeHost host = node.folder().gatherElements(*data->host, *indices->host, axis))
      return node.set(0, *host);
  if (failed(node.emittable({data, indices})))
    return failure();
  if (std::optional<Grid> grid = elementGrid(node, indices, data->shape, axis))
    if (Value taken =
            takeGrid(node, node.value(data), 0, data->shape.size(), *grid, indices->shape))
      return node.set(0, taken);
  Math m(node);
  Shape sizes(indices->shape), ones(sizes.size(), 1);
  sizes[axis] = data->shape[axis];
  Value looked = node.slice(node.value(data), Shape(sizes.size(), 0), sizes, ones);
  Value at = positions(node, indices, data->shape[axis]);
  Value taken = takeOfEach(node, m.axisToLast(looked, axis), m.axisToLast(at, axis));
  return node.set(0, m.lastToAxis(taken, axis));
}

/// Checks the last dimension of an index tensor of tuples, and what the tuples point to. The first
/// `batchDims` dimensions of both are the same and not indexed.
LogicalResult checkTuples(Node &node, const Tensor &data, const Tensor &indices,
                          int64_t batchDims = 0) {
  if (failed(checkIndexType(node, indices)))
    return failure();
  int64_t rank = data.shape.size(), depth = indices.shape.empty() ? 0 : indices.shape.back();
  bool fits = depth >= 1 && batchDims >= 0 && batchDims < rank && depth <= rank - batchDims &&
              batchDims < static_cast<int64_t>(indices.shape.size());
  for (int64_t i = 0; fits && i < batchDims; ++i)
    fits = data.shape[i] == indices.shape[i];
  if (!fits)
    return node.error() << "indices of shape " << shapeText(indices.shape)
                        << " do not fit data of shape " << shapeText(data.shape);
  for (int64_t k = 0; k < depth; ++k)
    if (failed(checkIndices(node, indices, data.shape[batchDims + k], k, depth)))
      return failure();
  return success();
}

Shape tupleResult(const Tensor &data, const Tensor &indices, int64_t batchDims = 0) {
  Shape shape(llvm::ArrayRef<int64_t>(indices.shape).drop_back());
  shape.append(data.shape.begin() + batchDims + indices.shape.back(), data.shape.end());
  return shape;
}

/// The columns of the tuples from `from` on as positions within dimensions of these sizes, and the
/// stride of what stands before these.
std::pair<Value, int64_t> positionsWithin(Node &node, Tensor *indices, int64_t from,
                                          llvm::ArrayRef<int64_t> sizes) {
  Math m(node);
  int64_t last = indices->shape.size() - 1, stride = 1;
  Value all = m.cast(node.value(indices), m.i64()), at;
  for (int64_t dim = sizes.size(); dim-- > 0; stride *= sizes[dim]) {
    Value one = m.slice(all, last, from + dim, 1);
    Value negative = m.apply<tx::LessOp>(one, m.like(one, 0));
    one = m.select(negative, m.add(one, static_cast<double>(sizes[dim])), one);
    one = m.mul(one, static_cast<double>(stride));
    at = at ? m.add(at, one) : one;
  }
  return {at, stride};
}

/// The tuples as positions of rows, where a row is what one tuple points to.
Value rowPositions(Node &node, Tensor *indices, const Tensor &data) {
  llvm::ArrayRef<int64_t> counted =
      llvm::ArrayRef<int64_t>(data.shape).take_front(indices->shape.back());
  Value at = positionsWithin(node, indices, 0, counted).first;
  Shape shape(llvm::ArrayRef<int64_t>(indices->shape).drop_back());
  return node.reshape(at, shape);
}

/// The same as known numbers, if the tuples are known.
MaybeHost knownRowPositions(Node &node, const Tensor &indices, const Tensor &data) {
  if (!indices.host || !node.folder().admit(indices.shape))
    return std::nullopt;
  int64_t depth = indices.shape.back();
  llvm::SmallVector<int64_t> tuples = indices.host->ints(), rows;
  for (size_t at = 0; at < tuples.size(); at += depth) {
    int64_t row = 0;
    for (int64_t k = 0; k < depth; ++k)
      row = row * data.shape[k] + tuples[at + k] + (tuples[at + k] < 0 ? data.shape[k] : 0);
    rows.push_back(row);
  }
  return HostTensor::vector(rows);
}

/// Its dimensions before `from` as one, and those from there on as one.
Value asRows(Node &node, Tensor *tensor, int64_t from) {
  llvm::ArrayRef<int64_t> dims(tensor->shape);
  return node.reshape(node.value(tensor),
                      {*elementCount(dims.take_front(from)), *elementCount(dims.drop_front(from))});
}

/// Where the tuples point to in the dimensions of data that they and the batch index, as one.
std::optional<Grid> tupleGrid(Node &node, const Tensor &data, Tensor *indices,
                              int64_t batchDims = 0) {
  llvm::ArrayRef<int64_t> tuples = llvm::ArrayRef<int64_t>(indices->shape).drop_back();
  int64_t depth = indices->shape.back();
  llvm::SmallVector<Grid> grids;
  for (int64_t dim = 0; dim < batchDims; ++dim)
    grids.push_back(countAlong(tuples, dim));
  for (int64_t k = 0; k < depth; ++k) {
    std::optional<Grid> grid = gridOf(node, indices, data.shape[batchDims + k], k);
    if (!grid)
      return std::nullopt;
    grids.push_back(*grid);
  }
  return combine(grids,
                 rowMajor(llvm::ArrayRef<int64_t>(data.shape).take_front(batchDims + depth)));
}

/// Are the tuples [0, ...], [1, ...], [2, ...], ... (x[arange(n), ids])?
bool areNumbered(Value tuples) {
  auto concat = tuples.getDefiningOp<tx::ConcatOp>();
  Value column = concat ? concat.getInputs().front() : Value();
  return column && shapeOf(column).back() == 1 &&
         countsUp(column, shapeOf(tuples).front(), /*step=*/1);
}

/// The first `tables` dimensions of data and indices are the same: what the tuples from column
/// `from` on point to in each.
Value gatherOfEach(Node &node, Tensor *data, Tensor *indices, int64_t tables, int64_t from) {
  llvm::ArrayRef<int64_t> dims(data->shape);
  int64_t depth = indices->shape.back() - from;
  auto [at, rows] = positionsWithin(node, indices, from, dims.slice(tables, depth));
  Shape apart(dims.take_front(tables)), each(apart);
  apart.push_back(rows);
  apart.append(dims.begin() + tables + depth, dims.end());
  each.push_back(*elementCount(shapeOf(at)) / *elementCount(each));
  return takeOfEach(node, node.reshape(node.value(data), apart), node.reshape(at, each));
}

LogicalResult gatherND(Node &node) {
  int64_t batchDims = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("batch_dims", batchDims)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1);
  if (failed(checkTuples(node, *data, *indices, batchDims)))
    return failure();
  Shape shape = tupleResult(*data, *indices, batchDims);
  if (!elementCount(shape))
    return node.error() << "its result would have shape " << shapeText(shape)
                        << ", which is too large";
  if (data->host && indices->host && batchDims == 0)
    if (MaybeHost host = node.folder().gatherND(*data->host, *indices->host))
      return node.set(0, *host);
  if (failed(node.emittable({data, indices})))
    return failure();
  if (std::optional<Grid> grid = tupleGrid(node, *data, indices, batchDims))
    if (Value taken = takeGrid(node, node.value(data), 0, batchDims + indices->shape.back(), *grid,
                               llvm::ArrayRef<int64_t>(indices->shape).drop_back()))
      return node.set(0, taken);
  bool numbered = batchDims == 0 && indices->shape.back() > 1 &&
                  indices->shape.front() == data->shape.front() && areNumbered(node.value(indices));
  if (numbered)
    return node.set(0, node.reshape(gatherOfEach(node, data, indices, 1, 1), shape));
  if (batchDims > 0)
    return node.set(0, node.reshape(gatherOfEach(node, data, indices, batchDims, 0), shape));
  Value at = rowPositions(node, indices, *data);
  Value rows = takeAlong(node, asRows(node, data, indices->shape.back()), 0, at);
  return node.set(0, node.reshape(rows, shape));
}

LogicalResult scatterND(Node &node) {
  Scatter kind = Scatter::replace;
  if (failed(node.arity(3, 3)) || failed(scatterKind(node, kind)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1), *updates = node.input(2);
  if (failed(checkTuples(node, *data, *indices)))
    return failure();
  if (updates->type != data->type || updates->shape != tupleResult(*data, *indices))
    return node.error() << "updates are " << typeText(*updates) << ", expected "
                        << shapeText(tupleResult(*data, *indices)) << " of "
                        << dtypeName(data->type);
  if (node.allKnown() && kind == Scatter::replace)
    if (MaybeHost host = node.folder().scatterND(*data->host, *indices->host, *updates->host))
      return node.set(0, *host);
  if (failed(node.emittable({data, indices, updates})))
    return failure();
  if (std::optional<Grid> grid = tupleGrid(node, *data, indices))
    if (Value written = writeGrid(node, node.value(data), indices->shape.back(), *grid,
                                  node.value(updates), kind))
      return node.set(0, written);
  MaybeHost rowsOf = knownRowPositions(node, *indices, *data);
  int64_t tuples = indices->shape.size() - 1;
  Value at = rowPositions(node, indices, *data);
  FailureOr<Value> rows = scatterRows(node, asRows(node, data, indices->shape.back()),
                                      node.reshape(at, *elementCount(shapeOf(at))), rowsOf,
                                      asRows(node, updates, tuples), kind);
  return failed(rows) ? failure() : node.set(0, node.reshape(*rows, data->shape));
}

/// Of known indices along `axis`: the positions in data of this shape, its elements in one row.
Shape flatKnown(const HostTensor &indices, llvm::ArrayRef<int64_t> shape, int64_t axis) {
  Shape flat;
  llvm::SmallVector<int64_t> values = indices.ints();
  for (size_t next = 0; next < values.size(); ++next) {
    int64_t left = next, stride = 1, position = 0;
    for (int64_t dim = shape.size(); dim-- > 0; stride *= shape[dim]) {
      int64_t here = left % indices.shape()[dim];
      left /= indices.shape()[dim];
      if (dim == axis)
        here = values[next] + (values[next] < 0 ? shape[dim] : 0);
      position += here * stride;
    }
    flat.push_back(position);
  }
  return flat;
}

LogicalResult scatterElements(Node &node) {
  int64_t axis = 0;
  Scatter kind = Scatter::replace;
  if (failed(node.arity(3, 3)) || failed(node.attribute("axis", axis)) ||
      failed(scatterKind(node, kind)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1), *updates = node.input(2);
  if (failed(checkAlong(node, axis, *data, *indices)))
    return failure();
  bool fits = indices->shape.size() == data->shape.size() && updates->shape == indices->shape;
  for (size_t i = 0; fits && i < data->shape.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || indices->shape[i] <= data->shape[i];
  if (!fits || updates->type != data->type)
    return node.error() << "indices of shape " << shapeText(indices->shape) << " and updates "
                        << typeText(*updates) << " do not fit data " << typeText(*data);
  if (failed(node.emittable({data, indices, updates})))
    return failure();
  if (std::optional<Grid> grid = elementGrid(node, indices, data->shape, axis))
    if (Value written =
            writeGrid(node, node.value(data), data->shape.size(), *grid, node.value(updates), kind))
      return node.set(0, written);
  Value along = positions(node, indices, data->shape[axis]);
  Shape others(data->shape);
  others[axis] = indices->shape[axis];
  bool isOfEach = others.size() > 1 && others == indices->shape;
  if (isOfEach && kind == Scatter::add && isFloat(data->type))
    return node.set(0, addToEach(node, node.value(data), axis, along, node.value(updates)));
  if (isOfEach && kind == Scatter::replace && !indices->host) {
    FailureOr<Value> set = setInEach(node, node.value(data), axis, along, node.value(updates));
    return failed(set) ? failure() : node.set(0, *set);
  }
  Value at = flatPositions(node, along, data->shape, axis);
  int64_t count = *elementCount(indices->shape);
  MaybeHost known;
  if (indices->host && node.folder().admit(indices->shape))
    known = HostTensor::vector(flatKnown(*indices->host, data->shape, axis));
  FailureOr<Value> rows = scatterRows(
      node, node.reshape(node.value(data), {*elementCount(data->shape), 1}),
      node.reshape(at, count), known, node.reshape(node.value(updates), {count, 1}), kind);
  return failed(rows) ? failure() : node.set(0, node.reshape(*rows, data->shape));
}

const OpRow indexingRows[] = {
    {"Gather", "", 1, anyLater, gather, OpEffect::LooksUp},
    {"GatherElements", "", 11, anyLater, gatherElements, OpEffect::LooksUp},
    {"GatherND", "", 11, anyLater, gatherND, OpEffect::LooksUp},
    {"ScatterND", "", 11, anyLater, scatterND},
    {"ScatterElements", "", 11, anyLater, scatterElements},
    {"Scatter", "", 9, 10, scatterElements},
};

} // namespace

llvm::ArrayRef<OpRow> indexingOps() { return indexingRows; }

} // namespace partita::importer
