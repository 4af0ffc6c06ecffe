//===- TxForms.cpp - replacements for ops that cannot be split directly -----------------------===//
//
// Implements splitForm of ShardInterface with full values, which partitioning places like all
// others.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include <numeric>

using namespace mlir;
using namespace partita;
using namespace partita::tx;

//===------------------------------------------------------------------------------------------------===//
// Reductions over a split dimension
//===------------------------------------------------------------------------------------------------===//

/// Names what ranks communicate for an op in reports.
static Location named(Location loc, StringRef otherwise, StringRef what) {
  auto name = loc->findInstanceOf<NameLoc>();
  std::string full = (name ? name.getName().str() : otherwise.str()) + ", " + what.str();
  return NameLoc::get(StringAttr::get(loc.getContext(), full), loc);
}

/// log(sum(exp(x))) over all parts is that of the parts' own.
SmallVector<Value> CrossEntropyOp::splitForm(OpBuilder &builder, int64_t parts) {
  auto type = getLogits().getType();
  if (!par::shardSize(type.getShape().back(), parts))
    return {};
  auto of = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, statisticElement(getLogits()));
  };
  SmallVector<int64_t> row(type.getShape().drop_back()), byPart(row), one(row);
  byPart.push_back(parts);
  one.push_back(1);
  int64_t last = static_cast<int64_t>(row.size());

  Location loc = getLoc();
  auto build = [&](auto op, ValueRange operands) -> Value {
    return decltype(op)::create(builder, loc, operands)->getResult(0);
  };
  Value lses = LogSumExpOp::create(builder, loc, of(byPart), getLogits(), /*first=*/Value());
  Value max = ReduceMaxOp::create(builder, named(loc, "loss", "max logit"), of(row), lses,
                                  ArrayRef<int64_t>{last});
  Value spread =
      BroadcastOp::create(builder, loc, of(byPart), ReshapeOp::create(builder, loc, of(one), max));
  Value shares = build(ExpOp(), {build(SubOp(), {lses, spread})});
  Value sum = ReduceSumOp::create(builder, named(loc, "loss", "sum over the vocabulary"), of(row),
                                  shares, ArrayRef<int64_t>{last});
  Value lse = build(AddOp(), {build(LogOp(), {sum}), max});
  Value loss = TokenLossOp::create(builder, loc, ValueRange{getLogits(), getLabels(), lse},
                                   (*this)->getAttrs());
  return {loss, lse};
}

namespace {

/// The rows of a norm in primitive ops, so that each rank sums its part of a row. Computes in 32
/// bits, as the kernel does.
class Rows {
public:
  Rows(OpBuilder &builder, Location loc, Value like)
      : builder(builder), loc(loc),
        type(cast<RankedTensorType>(like.getType()).clone(statisticElement(like))),
        row(type.getShape().drop_back()) {}

  template <typename OpTy> Value op(ValueRange operands) {
    return OpTy::create(builder, loc, operands)->getResult(0);
  }
  Value convert(Value value, Type element) {
    auto to = cast<RankedTensorType>(value.getType()).clone(element);
    return to == value.getType() ? value : CastOp::create(builder, loc, to, value).getResult();
  }
  Value widen(Value value) { return convert(value, statisticElement(value)); }
  Value splat(Type of, double value) { return createSplat(builder, loc, of, value); }
  /// Also adds the remainder that a 32-bit constant lacks: a norm's epsilon has 64 bits.
  Value plus(Value rows, double value) {
    auto rounded = static_cast<double>(static_cast<float>(value));
    if (value != rounded)
      rows = op<AddOp>({rows, splat(rows.getType(), value - rounded)});
    return op<AddOp>({rows, splat(rows.getType(), rounded)});
  }
  /// Returns the mean of each row; `what` names the ranks' communication for it.
  Value mean(Value x, StringRef what) {
    auto of = RankedTensorType::get(row, type.getElementType());
    Value sum = ReduceSumOp::create(builder, named(loc, "norm", what), of, x,
                                    ArrayRef<int64_t>{static_cast<int64_t>(row.size())});
    return op<DivOp>({sum, splat(of, static_cast<double>(type.getShape().back()))});
  }
  /// Broadcasts a number per row to its elements; each rank has a share of the gradient.
  Value spread(Value rows, StringRef what) {
    SmallVector<int64_t> one(row);
    one.push_back(1);
    auto column = RankedTensorType::get(one, type.getElementType());
    return BroadcastOp::create(builder, named(loc, "norm", what), type,
                               ReshapeOp::create(builder, loc, column, rows));
  }
  /// Broadcasts a number per column to all rows.
  Value repeat(Value columns) { return BroadcastOp::create(builder, loc, type, columns); }

private:
  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
  ArrayRef<int64_t> row;
};

} // namespace

SmallVector<Value> RmsNormOp::splitForm(OpBuilder &builder, int64_t parts) {
  if (getX().getType().getShape().back() % parts != 0)
    return {};
  Rows rows(builder, getLoc(), getX());
  Value x = rows.widen(getX());
  Value square = rows.mean(rows.op<MulOp>({x, x}), "sum of squares");
  Value rstd = rows.op<RsqrtOp>({rows.plus(square, getEpsilon().convertToDouble())});
  Value scaled = rows.op<MulOp>({x, rows.spread(rstd, "scale of rows")});
  Value y = rows.op<MulOp>({scaled, rows.repeat(rows.widen(getW()))});
  return {rows.convert(y, getX().getType().getElementType()), rstd};
}

SmallVector<Value> LayerNormOp::splitForm(OpBuilder &builder, int64_t parts) {
  if (getX().getType().getShape().back() % parts != 0)
    return {};
  Rows rows(builder, getLoc(), getX());
  Value x = rows.widen(getX());
  Value mean = rows.mean(x, "sum");
  Value centered = rows.op<SubOp>({x, rows.spread(mean, "mean of rows")});
  Value variance = rows.mean(rows.op<MulOp>({centered, centered}), "sum of squares");
  Value rstd = rows.op<RsqrtOp>({rows.plus(variance, getEpsilon().convertToDouble())});
  Value scaled = rows.op<MulOp>({centered, rows.spread(rstd, "scale of rows")});
  Value weighted = rows.op<MulOp>({scaled, rows.repeat(rows.widen(getW()))});
  Value y = rows.op<AddOp>({weighted, rows.repeat(rows.widen(getB()))});
  return {rows.convert(y, getX().getType().getElementType()), mean, rstd};
}

//===------------------------------------------------------------------------------------------------===//
// Sizes that prevent a split
//===------------------------------------------------------------------------------------------------===//

/// Handles a broadcast along a dimension of its own, which is then merged with the one before (key
/// heads, repeated for all queries that share them). If `parts` divides the merged dimension but
/// not the one before, every rank has all of the latter and repeats what its own shard needs.
SmallVector<Value> ReshapeOp::splitForm(OpBuilder &builder, int64_t parts) {
  auto spread = getX().getDefiningOp<BroadcastOp>();
  RankedTensorType type = getType();
  if (!spread || !isa<FloatType>(type.getElementType()))
    return {};
  SmallVector<int64_t> few(spread.getX().getType().getShape());
  ArrayRef<int64_t> many = spread.getType().getShape();
  if (few.size() != many.size())
    return {};
  auto [at, times] = std::mismatch(few.begin(), few.end(), many.begin());
  int64_t dim = at - few.begin();
  if (at == few.end() || dim == 0 || *at != 1 || few[dim - 1] % parts == 0)
    return {};
  int64_t count = *times;
  few.erase(few.begin() + dim);
  SmallVector<int64_t> joint(few);
  joint[dim - 1] *= count;
  if (ArrayRef(joint) != type.getShape() || joint[dim - 1] % parts != 0)
    return {};
  Value distinct = ReshapeOp::create(builder, getLoc(), type.clone(few), spread.getX());
  return {RepeatOp::create(builder, getLoc(), type, distinct, /*first=*/Value(), dim - 1, count)};
}

/// Handles key heads that `parts` does not divide although it divides the query heads: repeats each
/// key head until `parts` divides their number, so that every rank has the key heads of its
/// queries.
SmallVector<Value> AttentionOp::splitForm(OpBuilder &builder, int64_t parts) {
  int64_t heads = getQ().getType().getDimSize(2), keyHeads = getK().getType().getDimSize(2);
  if (keyHeads == 1 || keyHeads % parts == 0 || heads % parts != 0)
    return {};
  int64_t times = std::lcm(keyHeads, parts) / keyHeads;
  auto repeated = [&](TypedValue<RankedTensorType> x) -> Value {
    SmallVector<int64_t> shape(x.getType().getShape());
    shape[2] *= times;
    return RepeatOp::create(builder, getLoc(),
                            RankedTensorType::get(shape, x.getType().getElementType()), x,
                            /*first=*/Value(), /*dim=*/2, times);
  };
  Value k = repeated(getK()), v = repeated(getV());
  return SmallVector<Value>(rebuild(builder, k, v)->getResults());
}
