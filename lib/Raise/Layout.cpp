//===- Layout.cpp - see Layout.h --------------------------------------------------------------===//

#include "lib/Raise/Layout.h"
#include "partita/Raise/Subgraph.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

std::optional<Labels> raise::regroup(const Labels &labels, ArrayRef<int64_t> shape,
                                     ArrayRef<int64_t> atomSizes) {
  SmallVector<unsigned> atoms;
  for (const auto &dim : labels)
    atoms.append(dim.begin(), dim.end());
  Labels result;
  size_t next = 0;
  for (int64_t size : shape) {
    auto &dim = result.emplace_back();
    int64_t product = 1;
    while (product < size && next < atoms.size()) {
      product *= atomSizes[atoms[next]];
      dim.push_back(atoms[next++]);
    }
    if (product != size)
      return std::nullopt;
  }
  if (next != atoms.size())
    return std::nullopt;
  return result;
}

SmallVector<int64_t> raise::shapeOf(const Labels &labels, ArrayRef<int64_t> atomSizes) {
  SmallVector<int64_t> shape;
  for (const auto &dim : labels) {
    int64_t size = 1;
    for (unsigned atom : dim)
      size *= atomSizes[atom];
    shape.push_back(size);
  }
  return shape;
}

/// If `op` multiplies or divides one operand by a constant: that operand and the factor.
static std::optional<std::pair<Value, double>> scaledOperand(Operation *op) {
  if (auto mul = dyn_cast<tx::MulOp>(op)) {
    if (auto factor = splatOf(mul.getB()))
      return std::pair(mul.getA(), *factor);
    if (auto factor = splatOf(mul.getA()))
      return std::pair(mul.getB(), *factor);
  }
  if (auto div = dyn_cast<tx::DivOp>(op))
    if (auto divisor = splatOf(div.getB()); divisor && *divisor != 0)
      return std::pair(div.getA(), 1 / *divisor);
  return std::nullopt;
}

/// The labels after a broadcast: a dimension that grows, or is new, is a new atom.
static Labels repeat(const Labels &labels, RankedTensorType from, RankedTensorType to,
                     SmallVectorImpl<int64_t> &atomSizes) {
  Labels result(to.getRank());
  int64_t added = to.getRank() - from.getRank();
  for (int64_t i = 0; i < to.getRank(); ++i)
    if (i >= added && from.getDimSize(i - added) == to.getDimSize(i)) {
      result[i] = labels[i - added];
    } else if (to.getDimSize(i) != 1) {
      result[i].push_back(atomSizes.size());
      atomSizes.push_back(to.getDimSize(i));
    }
  return result;
}

/// The view of the end of `chain`, which starts at `source`; none if a reshape cuts a dimension.
static std::optional<View> walkForward(Value source, ArrayRef<Operation *> chain, double scale) {
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(source.getType()).getShape();
  View view{source, Labels(sizes.size()), SmallVector<int64_t>(sizes), scale};
  for (auto [i, size] : llvm::enumerate(sizes))
    if (size != 1)
      view.labels[i].push_back(i);
  for (Operation *op : chain) {
    if (auto transpose = dyn_cast<tx::TransposeOp>(op)) {
      Labels permuted;
      for (int64_t p : transpose.getPermutation())
        permuted.push_back(view.labels[p]);
      view.labels = std::move(permuted);
    } else if (auto broadcast = dyn_cast<tx::BroadcastOp>(op)) {
      view.labels =
          repeat(view.labels, broadcast.getX().getType(), broadcast.getType(), view.atomSizes);
    } else if (auto reshape = dyn_cast<tx::ReshapeOp>(op)) {
      auto regrouped = regroup(view.labels, reshape.getType().getShape(), view.atomSizes);
      if (!regrouped)
        return std::nullopt;
      view.labels = std::move(*regrouped);
    }
  }
  return view;
}

SmallVector<View> raise::traceViews(Value value, bool throughScale) {
  SmallVector<View> views;
  SmallVector<Operation *> chain; // innermost last
  double scale = 1;
  constexpr size_t longest = 16;
  for (Value source = value; chain.size() < longest;) {
    SmallVector<Operation *> forward(llvm::reverse(chain));
    if (auto view = walkForward(source, forward, scale))
      views.push_back(std::move(*view));
    Operation *op = source.getDefiningOp();
    if (!op)
      break;
    if (isa<tx::TransposeOp, tx::ReshapeOp, tx::BroadcastOp>(op)) {
      source = op->getOperand(0);
    } else if (auto scaled = scaledOperand(op); scaled && throughScale) {
      source = scaled->first;
      scale *= scaled->second;
    } else {
      break;
    }
    chain.push_back(op);
  }
  return views;
}

Value raise::createTranspose(OpBuilder &builder, Location loc, Value value,
                             ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(value.getType());
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, type.getRank())))
    return value;
  SmallVector<int64_t> shape;
  for (int64_t p : permutation)
    shape.push_back(type.getDimSize(p));
  return tx::TransposeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                                 value, permutation);
}

Value raise::createReshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return tx::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                               value);
}
