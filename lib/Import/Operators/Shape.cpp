//===- Shape.cpp - the shape itself, and other shapes for the same elements -------------------===//

#include "lib/Import/File/Node.h"

using namespace mlir;

namespace partita::importer {
namespace {

LogicalResult shapeOp(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  int64_t rank = node.input(0)->shape.size(), start = 0, end = rank;
  if (failed(node.attribute("start", start)) || failed(node.attribute("end", end)))
    return failure();
  auto clamp = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  start = clamp(std::max(start, -rank)), end = clamp(std::max(end, -rank));
  llvm::ArrayRef<int64_t> dims(node.input(0)->shape);
  return node.set(0, HostTensor::vector(dims.slice(start, std::max<int64_t>(end - start, 0))));
}

LogicalResult sizeOp(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  return node.set(0, HostTensor::scalarInt(DType::i64, *elementCount(node.input(0)->shape)));
}

/// The same elements under `shape`, whose count has been checked.
LogicalResult setReshaped(Node &node, Tensor *x, llvm::ArrayRef<int64_t> shape) {
  if (x->shape == shape)
    return node.set(0, x);
  if (x->host)
    if (MaybeHost host = node.folder().reshape(*x->host, shape))
      return node.set(0, *host);
  if (failed(node.emittable(x)))
    return failure();
  return node.set(0, node.reshape(node.value(x), shape));
}

LogicalResult reshapeError(Node &node, const Tensor &x, llvm::ArrayRef<int64_t> wanted) {
  InFlightDiagnostic diagnostic = node.error();
  diagnostic << "cannot reshape " << shapeText(x.shape) << " (" << *elementCount(x.shape)
             << " elements) to [";
  llvm::interleaveComma(wanted, diagnostic);
  node.importer.whyFailed.shapesClash = true;
  return diagnostic << "]";
}

/// 0 copies a dimension of x (unless allowzero), one -1 is what remains.
LogicalResult reshape(Node &node) {
  int64_t allowZero = 0;
  Shape wanted;
  if (failed(node.arity(2, 2)) || failed(node.attribute("allowzero", allowZero)) ||
      failed(node.knownInts(1, "the shape", wanted)))
    return failure();
  Tensor *x = node.input(0);
  Shape shape(wanted);
  int64_t inferred = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allowZero) {
      if (i >= x->shape.size())
        return reshapeError(node, *x, wanted);
      shape[i] = x->shape[i];
    } else if (shape[i] == -1 && inferred < 0) {
      inferred = i;
      shape[i] = 1;
    }
  }
  std::optional<int64_t> rest = elementCount(shape);
  int64_t count = *elementCount(x->shape);
  if (!rest)
    return reshapeError(node, *x, wanted);
  if (inferred >= 0) {
    if (*rest == 0 || count % *rest != 0)
      return reshapeError(node, *x, wanted);
    shape[inferred] = count / *rest;
  } else if (*rest != count) {
    return reshapeError(node, *x, wanted);
  }
  return setReshaped(node, x, shape);
}

LogicalResult flatten(Node &node) {
  int64_t axis = 1;
  if (failed(node.arity(1, 1)) || failed(node.attribute("axis", axis)))
    return failure();
  Tensor *x = node.input(0);
  int64_t rank = x->shape.size();
  if (axis < -rank || axis > rank)
    return node.error() << "axis " << axis << " is outside a tensor of " << rank << " dimensions";
  axis += axis < 0 ? rank : 0;
  llvm::ArrayRef<int64_t> dims(x->shape);
  return setReshaped(node, x,
                     {*elementCount(dims.take_front(axis)), *elementCount(dims.drop_front(axis))});
}

/// Axes come as an attribute before opset 13, as an input since.
LogicalResult axesOf(Node &node, bool &given, Shape &axes) {
  given = true;
  if (node.version >= 13 && node.inputCount() > 1 && node.input(1))
    return node.knownInts(1, "the list of axes", axes);
  if (node.version < 13 && node.has("axes"))
    return node.attribute("axes", axes);
  given = false;
  return success();
}

LogicalResult unsqueeze(Node &node) {
  bool given;
  Shape axes;
  if (failed(node.arity(1, 2)) || failed(axesOf(node, given, axes)))
    return failure();
  if (!given)
    return node.error() << "has no list of axes";
  Tensor *x = node.input(0);
  int64_t rank = x->shape.size() + axes.size();
  Shape shape(rank, 0);
  for (int64_t axis : axes) {
    if (failed(node.normalizeAxis(axis, rank)))
      return failure();
    if (shape[axis] != 0)
      return node.error() << "axis " << axis << " is listed twice";
    shape[axis] = -1;
  }
  const int64_t *next = x->shape.begin();
  for (int64_t &dim : shape)
    dim = dim == -1 ? 1 : *next++;
  return setReshaped(node, x, shape);
}

LogicalResult squeeze(Node &node) {
  bool given;
  Shape axes;
  if (failed(node.arity(1, 2)) || failed(axesOf(node, given, axes)))
    return failure();
  Tensor *x = node.input(0);
  llvm::SmallVector<bool> drop(x->shape.size(), false);
  for (int64_t axis : axes) {
    if (failed(node.normalizeAxis(axis, x->shape.size())))
      return failure();
    if (x->shape[axis] != 1)
      return node.error() << "cannot drop dimension " << axis << " of " << shapeText(x->shape)
                          << ", its size is not 1";
    drop[axis] = true;
  }
  Shape shape;
  for (auto [i, dim] : llvm::enumerate(x->shape))
    if (given ? !drop[i] : dim != 1)
      shape.push_back(dim);
  return setReshaped(node, x, shape);
}

LogicalResult transpose(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  Tensor *x = node.input(0);
  Shape permutation;
  for (int64_t i = x->shape.size(); i-- > 0;)
    permutation.push_back(i);
  if (failed(node.attribute("perm", permutation)))
    return failure();
  Shape sorted(permutation);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, x->shape.size()))) {
    InFlightDiagnostic diagnostic = node.error() << "permutation [";
    llvm::interleaveComma(permutation, diagnostic);
    return diagnostic << "] does not fit a tensor of " << x->shape.size() << " dimensions";
  }
  if (x->host)
    return node.set(0, x->host->transpose(permutation));
  if (failed(node.emittable(x)))
    return failure();
  return node.set(0, node.transpose(node.value(x), permutation));
}

LogicalResult expand(Node &node) {
  Shape wanted, shape;
  if (failed(node.arity(2, 2)) || failed(node.knownInts(1, "the shape", wanted)))
    return failure();
  Tensor *x = node.input(0);
  if (!elementCount(wanted))
    return node.error() << "shape " << shapeText(wanted) << " is not possible";
  Tensor target;
  target.shape = wanted;
  if (failed(node.broadcastShape({x, &target}, shape)))
    return failure();
  if (shape == x->shape)
    return node.set(0, x);
  if (x->host)
    return node.set(0, x->host->broadcast(shape));
  if (failed(node.emittable(x)))
    return failure();
  return node.set(0, node.broadcast(node.value(x), shape));
}

const OpRow shapeRows[] = {
    {"Shape", "", 1, anyLater, shapeOp, OpEffect::Measures},
    {"Size", "", 1, anyLater, sizeOp, OpEffect::Measures},
    {"Reshape", "", 5, anyLater, reshape, OpEffect::Reshapes},
    {"Flatten", "", 1, anyLater, flatten, OpEffect::Reshapes},
    {"Unsqueeze", "", 1, anyLater, unsqueeze, OpEffect::Reshapes},
    {"Squeeze", "", 1, anyLater, squeeze, OpEffect::Reshapes},
    {"Transpose", "", 1, anyLater, transpose, OpEffect::Reshapes},
    {"Expand", "", 8, anyLater, expand, OpEffect::Reshapes},
};

} // namespace

llvm::ArrayRef<OpRow> shapeOps() { return shapeRows; }

} // namespace partita::importer
