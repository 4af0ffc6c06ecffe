//===- Indexing.cpp - Gather, Scatter, Trilu, CumSum ------------------------------------------===//
//
// Token and position embeddings are the gathers that stay in the program; all else here belongs
// to masks and positions, which fold.
//
//===----------------------------------------------------------------------------------------===//

#include "Node.h"

using namespace mlir;

namespace partita::importer {
namespace {

LogicalResult checkIndexType(Node &node, const Tensor &indices) {
  if (indices.type != DType::i64 && indices.type != DType::i32)
    return node.error() << "its indices are " << typeText(indices) << ", expected integers";
  return success();
}

/// Known indices must lie in [-size, size). `every`: only each `every`-th one, from `first`.
LogicalResult checkIndices(Node &node, const Tensor &indices, int64_t size, int64_t first = 0,
                           int64_t every = 1) {
  if (!indices.host)
    return success();
  HostTensor distinct = *indices.host;
  if (every == 1)
    distinct = distinct.withoutRepeats();
  std::optional<int64_t> bad;
  int64_t next = 0;
  forEachElement(distinct.shape(), {&distinct}, [&](llvm::ArrayRef<int64_t> at) {
    int64_t index = distinct.toInt(at[0]);
    if (next++ % every == first && (index < -size || index >= size))
      bad = index;
  });
  if (bad)
    return node.error() << "index " << *bad << " is outside a dimension of " << size;
  return success();
}

/// One known index along an axis of a value: a slice without that dimension.
LogicalResult gatherOne(Node &node, Tensor *data, int64_t axis, const Tensor &indices,
                        llvm::ArrayRef<int64_t> shape) {
  Shape offsets(data->shape.size(), 0), sizes(data->shape), strides(data->shape.size(), 1);
  int64_t index = indices.host->onlyInt();
  offsets[axis] = index < 0 ? index + data->shape[axis] : index;
  sizes[axis] = 1;
  return node.set(0, node.reshape(node.slice(node.value(data), offsets, sizes, strides), shape));
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
  // Rows of a table of any rank: fold the other dimensions into one, the axis first.
  Value table = node.value(data);
  if (axis != 0)
    return node.error() << "gathers along dimension " << axis << " of " << shapeText(data->shape)
                        << ", only dimension 0 is supported on values that depend on the input";
  bool isTable = data->shape.size() == 2;
  if (!isTable)
    table = node.reshape(table, {dims[0], *elementCount(dims.drop_front())});
  Value rows = node.emit<tx::EmbeddingOp>({table, node.value(indices)});
  return node.set(0, node.reshape(rows, shape));
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
  return node.notKnown("what it gathers");
}

/// Checks the last dimension of an index tensor of tuples, and what the tuples point to.
LogicalResult checkTuples(Node &node, const Tensor &data, const Tensor &indices) {
  if (failed(checkIndexType(node, indices)))
    return failure();
  if (indices.shape.empty() || data.shape.empty() || indices.shape.back() < 1 ||
      indices.shape.back() > static_cast<int64_t>(data.shape.size()))
    return node.error() << "indices of shape " << shapeText(indices.shape)
                        << " do not fit data of shape " << shapeText(data.shape);
  for (int64_t k = 0; k < indices.shape.back(); ++k)
    if (failed(checkIndices(node, indices, data.shape[k], k, indices.shape.back())))
      return failure();
  return success();
}

Shape tupleResult(const Tensor &data, const Tensor &indices) {
  Shape shape(llvm::ArrayRef<int64_t>(indices.shape).drop_back());
  shape.append(data.shape.begin() + indices.shape.back(), data.shape.end());
  return shape;
}

LogicalResult gatherND(Node &node) {
  int64_t batchDims = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("batch_dims", batchDims)))
    return failure();
  if (batchDims != 0)
    return node.error() << "attribute 'batch_dims' is " << batchDims << ", only 0 is supported";
  Tensor *data = node.input(0), *indices = node.input(1);
  if (failed(checkTuples(node, *data, *indices)))
    return failure();
  Shape shape = tupleResult(*data, *indices);
  if (!elementCount(shape))
    return node.error() << "its result would have shape " << shapeText(shape)
                        << ", which is too large";
  if (data->host && indices->host)
    if (MaybeHost host = node.folder().gatherND(*data->host, *indices->host))
      return node.set(0, *host);
  return node.notKnown("what it gathers");
}

LogicalResult scatterND(Node &node) {
  std::string reduction = "none";
  if (failed(node.arity(3, 3)) || failed(node.attribute("reduction", reduction)))
    return failure();
  if (reduction != "none")
    return node.error() << "attribute 'reduction' is " << quoted(reduction)
                        << ", only 'none' is supported";
  Tensor *data = node.input(0), *indices = node.input(1), *updates = node.input(2);
  if (failed(checkTuples(node, *data, *indices)))
    return failure();
  if (updates->type != data->type || updates->shape != tupleResult(*data, *indices))
    return node.error() << "updates are " << typeText(*updates) << ", expected "
                        << shapeText(tupleResult(*data, *indices)) << " of "
                        << dtypeName(data->type);
  if (node.allKnown())
    if (MaybeHost host = node.folder().scatterND(*data->host, *indices->host, *updates->host))
      return node.set(0, *host);
  return node.notKnown("what it scatters");
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
  MaybeHost mask = node.folder().trilu(ones, diagonal, upper);
  if (!mask)
    return node.error() << "of " << typeText(*x) << " is too large";
  Value keep = node.broadcast(node.value(node.importer.create(*mask)), x->shape);
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
  return node.notKnown("what it sums up");
}

const OpRow rows[] = {
    {"Gather", "", 1, anyLater, gather},      {"GatherElements", "", 11, anyLater, gatherElements},
    {"GatherND", "", 11, anyLater, gatherND}, {"ScatterND", "", 11, anyLater, scatterND},
    {"Trilu", "", 14, anyLater, trilu},       {"CumSum", "", 11, anyLater, cumSum},
};

} // namespace

llvm::ArrayRef<OpRow> indexingOps() { return rows; }

} // namespace partita::importer
