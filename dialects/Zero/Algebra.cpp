//===- Algebra.cpp - rewrites of sums, shards and full values ---------------------------------===//

#include "dialects/Zero/Zero.h"

using namespace mlir;
using namespace partita;
using namespace partita::zero;
using par::Kind;
using par::Layout;

/// Returns the all-reduce of a single value, with one use, over `axis` (or over another axis if
/// `other`) that defines the value; otherwise null.
static par::AllReduceOp sumOf(Value value, StringAttr axis, bool other) {
  auto sum = value.getDefiningOp<par::AllReduceOp>();
  if (!sum || sum.getValues().size() != 1 || !sum->hasOneUse() ||
      (sum.getAxisAttr() == axis) == other)
    return {};
  return sum;
}

/// Creates the all-reduce `sum` of `value`, a shard of its operand.
static Value sumOfShard(PatternRewriter &rewriter, par::AllReduceOp sum, Value value) {
  Layout layout = Layout::of(value.getType());
  layout.set(sum.getAxisAttr(), Kind::Invariant);
  return par::AllReduceOp::create(rewriter, sum.getLoc(), par::withLayout(value.getType(), layout),
                                  value, sum.getAxisAttr(), sum.getReasonAttr())
      .getResult(0);
}

/// Returns the shard's type, with the placement that `full` has over `axis`.
static Type withKindOf(Type shard, Type full, StringAttr axis) {
  Layout layout = Layout::of(shard);
  layout.set(axis, Layout::of(full).kind(axis));
  return par::withLayout(shard, layout);
}

/// Folds a shard: of a sum, to a reduce-scatter; of a sum over another axis, to the sum of the
/// shards; of a gathered value, to the shard that was there.
LogicalResult ShardOp::canonicalize(ShardOp op, PatternRewriter &rewriter) {
  if (auto gather = op.getValue().getDefiningOp<GatherOp>();
      gather && gather.getAxisAttr() == op.getAxisAttr()) {
    unsigned i = cast<OpResult>(op.getValue()).getResultNumber();
    if (gather.getShards()[i].getType() == op.getType()) {
      rewriter.replaceOp(op, gather.getShards()[i]);
      return success();
    }
  }
  if (par::AllReduceOp sum = sumOf(op.getValue(), op.getAxisAttr(), /*other=*/false)) {
    rewriter
        .replaceOpWithNewOp<ReduceScatterOp>(op, TypeRange(op.getType()), sum.getValues(),
                                             op.getAxisAttr(), sum.getReasonAttr())
        ->setLoc(sum.getLoc());
    rewriter.eraseOp(sum);
    return success();
  }
  if (par::AllReduceOp sum = sumOf(op.getValue(), op.getAxisAttr(), /*other=*/true)) {
    Value inner = sum.getValues()[0];
    Type type = withKindOf(op.getType(), inner.getType(), sum.getAxisAttr());
    Value shard = ShardOp::create(rewriter, op.getLoc(), type, inner, op.getAxisAttr());
    rewriter.replaceOp(op, sumOfShard(rewriter, sum, shard));
    rewriter.eraseOp(sum);
    return success();
  }
  return failure();
}

/// Folds a gather of shards that every rank took from a full value: it is that value.
LogicalResult GatherOp::canonicalize(GatherOp op, PatternRewriter &rewriter) {
  if (op.getShards().size() != 1)
    return failure();
  auto shard = op.getShards()[0].getDefiningOp<ShardOp>();
  if (!shard || shard.getAxisAttr() != op.getAxisAttr() ||
      shard.getValue().getType() != op.getFull()[0].getType())
    return failure();
  rewriter.replaceOp(op, shard.getValue());
  return success();
}

/// Moves a sum over another axis after the reduce-scatter, so that it sums shards instead of full
/// values. Not if it rounds: the sum of rounded values is not the rounded sum.
LogicalResult ReduceScatterOp::canonicalize(ReduceScatterOp op, PatternRewriter &rewriter) {
  if (op.getValues().size() != 1 || op.getInt4Block())
    return failure();
  par::AllReduceOp sum = sumOf(op.getValues()[0], op.getAxisAttr(), /*other=*/true);
  if (!sum)
    return failure();
  Value inner = sum.getValues()[0];
  Type type = withKindOf(op.getShards()[0].getType(), inner.getType(), sum.getAxisAttr());
  auto scatter = ReduceScatterOp::create(rewriter, op.getLoc(), TypeRange(type), inner,
                                         op.getAxisAttr(), op.getReasonAttr());
  rewriter.replaceOp(op, sumOfShard(rewriter, sum, scatter.getResult(0)));
  rewriter.eraseOp(sum);
  return success();
}
