//===- Reductions.cpp - ReduceSum and its family ----------------------------------------------===//

#include "Node.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// Since which opset the axes are an input: 13 for ReduceSum, 18 for the others.
LogicalResult reducedAxes(Node &node, int64_t axesAreInput, Shape &axes) {
  int64_t rank = node.input(0)->shape.size(), noop = 0;
  if (node.version >= axesAreInput) {
    if (failed(node.attribute("noop_with_empty_axes", noop)) ||
        (node.input(1) && failed(node.knownInts(1, "the list of axes", axes))))
      return failure();
  } else if (failed(node.attribute("axes", axes))) {
    return failure();
  }
  if (axes.empty() && !noop)
    axes.assign(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  for (int64_t &axis : axes)
    if (failed(node.normalizeAxis(axis, rank)))
      return failure();
  llvm::sort(axes);
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return node.error() << "reduces an axis twice";
  return success();
}

/// -max(-x): the dialect has no minimum over dimensions.
Value reduceMin(Node &node, RankedTensorType type, Value x, llvm::ArrayRef<int64_t> axes) {
  Value most =
      tx::ReduceMaxOp::create(node.builder(), node.loc, type, node.emit<tx::NegOp>(x), axes);
  return node.emit<tx::NegOp>(most);
}

template <Folder::Reduction kind, int64_t axesAreInput> LogicalResult reduce(Node &node) {
  Shape axes;
  int64_t keepDims = 1;
  if (failed(node.arity(1, 2)) || failed(node.attribute("keepdims", keepDims)) ||
      failed(reducedAxes(node, axesAreInput, axes)))
    return failure();
  Tensor *x = node.input(0);
  if (axes.empty())
    return node.set(0, x);
  Shape kept(x->shape), dropped;
  for (int64_t axis : axes)
    kept[axis] = 1;
  for (auto [i, dim] : llvm::enumerate(x->shape))
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      dropped.push_back(dim);
  llvm::ArrayRef<int64_t> shape = keepDims ? kept : dropped;
  if (x->host)
    if (MaybeHost host = node.folder().reduce(*x->host, axes, kind))
      return node.set(0, *host->viewAs(shape));
  if (!isFloat(x->type))
    return node.error() << "of " << typeText(*x)
                        << " that depends on the model's input is not supported";
  if (failed(node.emittable(x)))
    return failure();
  Value value = node.value(x);
  auto type = RankedTensorType::get(dropped, getElementTypeOrSelf(value.getType()));
  Value result;
  if constexpr (kind == Folder::Reduction::sum)
    result = tx::ReduceSumOp::create(node.builder(), node.loc, type, value, axes);
  else if constexpr (kind == Folder::Reduction::mean)
    result = tx::ReduceMeanOp::create(node.builder(), node.loc, type, value, axes);
  else if constexpr (kind == Folder::Reduction::max)
    result = tx::ReduceMaxOp::create(node.builder(), node.loc, type, value, axes);
  else if constexpr (kind == Folder::Reduction::min)
    result = reduceMin(node, type, value, axes);
  else
    return node.error() << "on values that depend on the model's input is not supported";
  return node.set(0, node.reshape(result, shape));
}

using Kind = Folder::Reduction;
const OpRow rows[] = {
    {"ReduceSum", "", 1, anyLater, reduce<Kind::sum, 13>},
    {"ReduceMean", "", 1, anyLater, reduce<Kind::mean, 18>},
    {"ReduceMax", "", 1, anyLater, reduce<Kind::max, 18>},
    {"ReduceMin", "", 1, anyLater, reduce<Kind::min, 18>},
    {"ReduceProd", "", 1, anyLater, reduce<Kind::prod, 18>},
};

} // namespace

llvm::ArrayRef<OpRow> reductionOps() { return rows; }

} // namespace partita::importer
