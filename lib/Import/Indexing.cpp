//===- Indexing.cpp - Gather, Scatter, Trilu, CumSum ------------------------------------------===//
//
// Token and position embeddings are the gathers that stay in most programs; what belongs to masks
// and positions folds; the rest is looked up (Lookup.h).
//
//===----------------------------------------------------------------------------------------===//

#include "Bounds.h"
#include "Lookup.h"
#include "dialects/Train/Train.h"

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

LogicalResult gather(Node &node) {
  int64_t axis = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1);
  if (failed(node.normalizeAxis(axis, data->shape.size())) ||
      failed(checkIndexType(node, *indices)) ||
      failed(checkIndices(node, *indices, data->shape[axis])))
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
  if (indices->host && indices->host->size() == 1)
    return gatherOne(node, data, axis, *indices, shape);
  if (axis == 0 && !indices->host)
    if (Value taken = gatherNumbered(node, data, node.value(indices)))
      return node.set(0, node.reshape(taken, shape));
  // Tokens into a parameter are what an embedding is: an id below zero is none, and said to be so
  // when the program runs. Elsewhere it counts from the end.
  bool isTable = axis == 0 && !indices->host && isParameter(node.value(data));
  Value at = isTable ? node.value(indices) : positions(node, indices, dims[axis]);
  return node.set(0, takeAlong(node, node.value(data), axis, at));
}

LogicalResult gatherElements(Node &node) {
  int64_t axis = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *data = node.input(0), *indices = node.input(1);
  if (failed(node.normalizeAxis(axis, data->shape.size())) ||
      failed(checkIndexType(node, *indices)) ||
      failed(checkIndices(node, *indices, data->shape[axis])))
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
    Value one = m.piece(all, last, from + dim, 1);
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
  MaybeHost rowsOf = knownRowPositions(node, *indices, *data);
  if (kind == Scatter::replace && rowsOf)
    if (Value written = writeBox(node, node.value(data), rowsOf->ints(), indices->shape.back(),
                                 node.value(updates)))
      return node.set(0, written);
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
  if (failed(node.normalizeAxis(axis, data->shape.size())) ||
      failed(checkIndexType(node, *indices)) ||
      failed(checkIndices(node, *indices, data->shape[axis])))
    return failure();
  bool fits = indices->shape.size() == data->shape.size() && updates->shape == indices->shape;
  for (size_t i = 0; fits && i < data->shape.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || indices->shape[i] <= data->shape[i];
  if (!fits || updates->type != data->type)
    return node.error() << "indices of shape " << shapeText(indices->shape) << " and updates "
                        << typeText(*updates) << " do not fit data " << typeText(*data);
  if (failed(node.emittable({data, indices, updates})))
    return failure();
  Value at = flatPositions(node, positions(node, indices, data->shape[axis]), data->shape, axis);
  int64_t count = *elementCount(indices->shape);
  MaybeHost known;
  if (indices->host && node.folder().admit(indices->shape)) {
    Shape tuples = flatKnown(*indices->host, data->shape, axis);
    if (kind == Scatter::replace)
      if (Value written =
              writeBox(node, node.value(data), tuples, data->shape.size(), node.value(updates)))
        return node.set(0, written);
    known = HostTensor::vector(tuples);
  }
  FailureOr<Value> rows = scatterRows(
      node, node.reshape(node.value(data), {*elementCount(data->shape), 1}),
      node.reshape(at, count), known, node.reshape(node.value(updates), {count, 1}), kind);
  return failed(rows) ? failure() : node.set(0, node.reshape(*rows, data->shape));
}

/// On a value: multiply-free, a select against a known triangle.
LogicalResult trilu(Node &node) {
  int64_t upper = 1, diagonal = 0;
  if (failed(node.arity(1, 2)) || failed(node.attribute("upper", upper)) ||
      (node.input(1) && failed(node.knownInt(1, "the diagonal", diagonal))))
    return failure();
  Tensor *x = node.input(0);
  if (x->shape.size() < 2)
    return node.error() << "of " << typeText(*x) << ", expected at least two dimensions";
  if (x->host)
    if (MaybeHost host = node.folder().trilu(*x->host, diagonal, upper))
      return node.set(0, *host);
  if (failed(node.emittable(x)))
    return failure();
  llvm::ArrayRef<int64_t> matrix = llvm::ArrayRef<int64_t>(x->shape).take_back(2);
  HostTensor ones = HostTensor::scalarInt(DType::boolean, 1).broadcast(matrix);
  Math m(node);
  auto triangle = [&]() -> Value {
    if (MaybeHost mask = node.folder().trilu(ones, diagonal, upper))
      return node.value(node.importer.create(*mask));
    Value row = m.iota(m.i64(), 2, 0, matrix[0], static_cast<double>(diagonal));
    Value column = m.iota(m.i64(), 2, 1, matrix[1]);
    return upper ? m.apply<tx::GreaterEqualOp>(column, row)
                 : m.apply<tx::GreaterEqualOp>(row, column);
  };
  Value keep = node.broadcast(triangle(), x->shape);
  Value zero = tx::createSplat(node.builder(), node.loc, node.value(x).getType(), 0);
  return node.set(0, node.emit<tx::SelectOp>({keep, node.value(x), zero}));
}

LogicalResult cumSum(Node &node) {
  int64_t exclusive = 0, reverse = 0, axis = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("exclusive", exclusive)) ||
      failed(node.attribute("reverse", reverse)) || failed(node.knownInt(1, "the axis", axis)))
    return failure();
  Tensor *x = node.input(0);
  if (failed(node.normalizeAxis(axis, x->shape.size())))
    return failure();
  if (x->host)
    if (MaybeHost host = node.folder().cumSum(*x->host, axis, exclusive, reverse))
      return node.set(0, *host);
  if (x->type == DType::boolean)
    return node.error() << "of " << typeText(*x) << " is not supported";
  if (failed(node.emittable(x)))
    return failure();
  // Sums of 1, 2, 4, ... neighbours: as many additions as the length has bits, exact for integers.
  Math m(node);
  Value sum = node.value(x);
  int64_t length = x->shape[axis];
  auto shifted = [&](Value v, int64_t by) {
    Value kept = m.piece(v, axis, reverse ? by : 0, length - by);
    Shape gap(x->shape);
    gap[axis] = by;
    Value zeros = m.constant(getElementTypeOrSelf(v.getType()), gap, 0);
    return reverse ? m.concat({kept, zeros}, axis) : m.concat({zeros, kept}, axis);
  };
  for (int64_t step = 1; step < length; step *= 2)
    sum = m.add(sum, shifted(sum, step));
  if (exclusive)
    sum = length == 1 ? m.like(sum, 0) : shifted(sum, 1);
  return node.set(0, sum);
}

/// `on` where the class is the index, `off` elsewhere, along a new dimension.
LogicalResult oneHot(Node &node) {
  int64_t axis = -1;
  if (failed(node.arity(3, 3)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *indices = node.input(0), *depth = node.input(1), *values = node.input(2);
  if (!depth->host)
    return node.notKnown("the number of classes");
  if (*elementCount(depth->shape) != 1 || values->shape != Shape{2} ||
      indices->type == DType::boolean)
    return node.error() << "of " << typeText(*indices) << " with " << typeText(*depth)
                        << " classes and values " << typeText(*values);
  int64_t classes = depth->host->onlyInt(), rank = indices->shape.size() + 1;
  if (failed(node.normalizeAxis(axis, rank)))
    return failure();
  Shape shape(indices->shape);
  shape.insert(shape.begin() + axis, classes);
  if (classes < 1 || !elementCount(shape))
    return node.error() << "has " << classes << " classes, which is not possible";
  if (failed(node.emittable({indices, values})))
    return failure();
  Math m(node);
  Shape apart(indices->shape);
  apart.insert(apart.begin() + axis, 1);
  Value index = node.reshape(m.cast(node.value(indices), m.i64()), apart);
  index = m.select(m.apply<tx::LessOp>(index, m.like(index, 0)),
                   m.add(index, static_cast<double>(classes)), index);
  Value hit = m.apply<tx::EqualOp>(index, m.iota(m.i64(), rank, axis, classes));
  auto value = [&](int64_t at) {
    return node.reshape(m.piece(node.value(values), 0, at, 1), llvm::ArrayRef<int64_t>());
  };
  return node.set(0, m.select(hit, value(1), value(0)));
}

/// One on the k-th diagonal.
LogicalResult eyeLike(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  int64_t type = static_cast<int64_t>(node.input(0)->type), k = 0;
  if (failed(node.attribute("dtype", type)) || failed(node.attribute("k", k)))
    return failure();
  std::optional<DType> known = dtypeFromOnnx(type);
  Type element = known ? mlirType(*known, node.importer.context()) : Type();
  llvm::ArrayRef<int64_t> shape(node.input(0)->shape);
  if (!element || shape.size() != 2 || *elementCount(shape) == 0 || k > 1 << 30 || k < -(1 << 30))
    return node.error() << "of " << typeText(*node.input(0)) << " as " << dtypeName(type)
                        << " with diagonal " << k << " is not supported";
  Math m(node);
  Value row = m.iota(m.i64(), 2, 0, shape[0], static_cast<double>(k));
  Value column = m.iota(m.i64(), 2, 1, shape[1]);
  return node.set(0, m.cast(m.apply<tx::EqualOp>(row, column), element));
}

const OpRow indexingRows[] = {
    {"Gather", "", 1, anyLater, gather},
    {"GatherElements", "", 11, anyLater, gatherElements},
    {"GatherND", "", 11, anyLater, gatherND},
    {"ScatterND", "", 11, anyLater, scatterND},
    {"ScatterElements", "", 11, anyLater, scatterElements},
    {"Scatter", "", 9, 10, scatterElements},
    {"Trilu", "", 14, anyLater, trilu},
    {"CumSum", "", 11, anyLater, cumSum},
    {"OneHot", "", 9, anyLater, oneHot},
    {"EyeLike", "", 9, anyLater, eyeLike},
};

} // namespace

llvm::ArrayRef<OpRow> indexingOps() { return indexingRows; }

} // namespace partita::importer
