//===- RowNormNearMiss.cpp - why a candidate is no norm of rows -------------------------------===//
//
// Of a function of one tensor, without weight and bias: is it the norm along other dimensions, or
// with something else than the mean of squares under its root? Both are computed and compared, so
// that all differences are reported.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Raise/RowNorm.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Elements of a row that is computed to be compared; larger ones are left unexplained.
constexpr int64_t maxRow = 1 << 16;

/// The dimensions that all of a candidate's means and sums run over, if they are not the last one
/// alone.
SmallVector<int64_t> otherAxes(const Subgraph &subgraph) {
  std::optional<SmallVector<int64_t>> axes;
  for (Operation *op : subgraph.ops) {
    if (!isa<tx::ReduceMeanOp, tx::ReduceSumOp>(op))
      continue;
    SmallVector<int64_t> dims(op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef());
    llvm::sort(dims);
    if (op->getOperand(0).getType() != subgraph.root.getType() || (axes && *axes != dims))
      return {};
    axes = dims;
  }
  int64_t last = cast<RankedTensorType>(subgraph.root.getType()).getRank() - 1;
  return !axes || *axes == SmallVector<int64_t>{last} ? SmallVector<int64_t>() : *axes;
}

/// What stands under a root: the mean or sum of something along the last dimension, times a number.
struct UnderRoot {
  Operation *reduction = nullptr;
  double factor = 1;
  bool isSum() const { return isa<tx::ReduceSumOp>(reduction); }
  int64_t count() const {
    return cast<RankedTensorType>(reduction->getOperand(0).getType()).getShape().back();
  }
  /// Times the mean.
  double ofMean() const { return isSum() ? factor * static_cast<double>(count()) : factor; }
};

std::optional<UnderRoot> readUnderRoot(Operation *root) {
  UnderRoot under;
  Value value = root->getOperand(0);
  while (Operation *op = value.getDefiningOp()) {
    if (isa<tx::ReduceMeanOp, tx::ReduceSumOp>(op)) {
      auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef();
      int64_t last = cast<RankedTensorType>(op->getOperand(0).getType()).getRank() - 1;
      under.reduction = op;
      return dims == ArrayRef<int64_t>{last} ? std::optional(under) : std::nullopt;
    }
    int next = 0;
    if (isa<tx::AddOp, tx::MulOp, tx::DivOp>(op)) {
      next = splatOf(op->getOperand(1)) ? 0 : 1;
      std::optional<double> number = splatOf(op->getOperand(1 - next));
      if (!number || (isa<tx::DivOp>(op) && next == 1))
        return std::nullopt;
      if (isa<tx::MulOp>(op))
        under.factor *= *number;
      else if (isa<tx::DivOp>(op))
        under.factor /= *number;
    } else if (!isa<tx::CastOp, tx::BroadcastOp, tx::ReshapeOp>(op)) {
      return std::nullopt;
    }
    value = op->getOperand(next);
  }
  return std::nullopt;
}

bool isSquare(Operation *op) {
  if (auto pow = dyn_cast<tx::PowOp>(op))
    return splatOf(pow.getB()) == 2.0;
  return isa<tx::MulOp>(op) && op->getOperand(0) == op->getOperand(1);
}

/// What a mean or sum is of, where that are no squares.
Operation *notSquares(Operation *reduction) {
  Operation *op = reduction->getOperand(0).getDefiningOp();
  while (isa_and_nonnull<tx::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op && isa<ScalarInterface>(op) && !isSquare(op) ? op : nullptr;
}

std::string nameOf(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto pow = dyn_cast<tx::PowOp>(op))
    if (std::optional<double> exponent = splatOf(pow.getB()))
      return name + " by " + numberText(*exponent);
  return name;
}

} // namespace

bool RowNormRaiser::isAlong(ArrayRef<int64_t> axes, const Subgraph &subgraph, double epsilon) {
  ++checks;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(subgraph.root.getType()).getShape();
  SmallVector<int64_t> oldSizes(shape), newSizes, order, back(shape.size()), moved;
  Labels full(shape.size());
  int64_t row = 1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    bool along = llvm::is_contained(axes, static_cast<int64_t>(i));
    newSizes.push_back(along ? size : std::min<int64_t>(size, 2));
    if (along)
      row *= size;
    else
      order.push_back(i);
    if (size != 1)
      full[i].push_back(i);
  }
  if (row > maxRow)
    return false;
  order.append(axes.begin(), axes.end());
  for (auto [to, from] : llvm::enumerate(order)) {
    back[from] = to;
    moved.push_back(newSizes[from]);
  }
  SmallVector<int64_t> rows(ArrayRef(moved).drop_back(axes.size()));
  rows.push_back(row);
  NumericCheck check(subgraph, oldSizes, newSizes);
  check.inputs.push_back({subgraph.leaves.front(), full, 1, 2});
  std::optional<double> error = check.error([&](OpBuilder &builder, ValueRange arguments) {
    Location loc = builder.getUnknownLoc();
    Value x = createTranspose(builder, loc, arguments[0], order);
    Value y = build(builder, loc, createReshape(builder, loc, x, rows), {}, {}, epsilon);
    return createTranspose(builder, loc, createReshape(builder, loc, y, moved), back);
  });
  return error && *error <= tolerance(getElementTypeOrSelf(subgraph.root.getType()));
}

std::string RowNormRaiser::explainAxes(const Subgraph &subgraph, double epsilon) {
  SmallVector<int64_t> axes = otherAxes(subgraph);
  if (axes.empty() || !isAlong(axes, subgraph, epsilon))
    return "";
  std::string text =
      llvm::join(llvm::map_range(axes, [](int64_t axis) { return std::to_string(axis); }), " and ");
  return llvm::formatv("it runs along dimension{0} {1} of {2}, it would be along the last one",
                       axes.size() > 1 ? "s" : "", text,
                       cast<RankedTensorType>(subgraph.root.getType()).getRank());
}

/// Is it the norm with `factor` times the mean of squares under its root, where `squared` were a
/// square?
bool RowNormRaiser::isScaled(double factor, Operation *squared, const Subgraph &subgraph,
                             double epsilon) {
  ++checks;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(subgraph.root.getType()).getShape();
  SmallVector<int64_t> oldSizes(shape), newSizes;
  Labels full(shape.size());
  for (auto [i, size] : llvm::enumerate(shape)) {
    newSizes.push_back(i + 1 == shape.size() ? size : std::min<int64_t>(size, 2));
    if (size != 1)
      full[i].push_back(i);
  }
  NumericCheck check(subgraph, oldSizes, newSizes);
  check.inputs.push_back({subgraph.leaves.front(), full, 1, 2});
  check.squared = squared;
  std::optional<double> error = check.error([&](OpBuilder &builder, ValueRange arguments) -> Value {
    Location loc = builder.getUnknownLoc();
    Value norm = build(builder, loc, arguments[0], {}, {}, epsilon / factor);
    Value scale = tx::createSplat(builder, loc, cast<RankedTensorType>(norm.getType()),
                                  1 / std::sqrt(factor));
    return tx::MulOp::create(builder, loc, ValueRange{norm, scale})->getResult(0);
  });
  return error && *error <= tolerance(getElementTypeOrSelf(subgraph.root.getType()));
}

std::string RowNormRaiser::explainMean(Operation *anchor, const Subgraph &subgraph,
                                       double epsilon) {
  std::optional<UnderRoot> under = readUnderRoot(anchor);
  if (!under || !(under->ofMean() > 0) || !llvm::is_contained(subgraph.ops, under->reduction))
    return "";
  Operation *other = notSquares(under->reduction);
  if ((!other && std::abs(under->ofMean() - 1) < 1e-6) ||
      (other && !llvm::is_contained(subgraph.ops, other)) ||
      !isScaled(under->ofMean(), other, subgraph, epsilon))
    return "";
  std::string kind = under->isSum() ? "sum" : "mean";
  if (other)
    return "under its root stands the " + kind + " of " + nameOf(other) +
           ", it would be the mean of squares";
  std::string count = std::to_string(under->count());
  if (under->isSum() && under->factor == 1)
    return "under its root stands the sum of squares, it would be their mean, the sum divided by " +
           count;
  return "the " + kind + " of squares under its root is multiplied by " +
         numberText(under->factor) + ", it would be by " +
         (under->isSum() ? "1/" + count : std::string("1"));
}

void RowNormRaiser::explain(Operation *anchor, ArrayRef<Value> exits,
                            const Independent &independent, double epsilon) {
  std::string found;
  for (Value root : llvm::reverse(exits)) {
    growBackward(
        root, isInterior, [](Value) { return false; }, independent,
        [&](const Subgraph &subgraph) {
          if (!llvm::is_contained(subgraph.ops, anchor) || subgraph.leaves.size() != 1 ||
              subgraph.leaves[0].getType() != root.getType())
            return true;
          found = explainAxes(subgraph, epsilon);
          if (found.empty())
            found = explainMean(anchor, subgraph, epsilon);
          return found.empty();
        });
    if (!found.empty())
      return report.reject(root.getLoc(), found);
  }
}
