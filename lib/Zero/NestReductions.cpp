//===- NestReductions.cpp - gradients are summed over several axes as over one ----------------===//
//
// A parameter's gradient that is summed over one axis after another crosses the wire in full for
// each of them. Here the nearest ranks scatter their sums instead, those of the next axis sum
// shards, and the sums are gathered: as many bytes as if all ranks were of one axis, and fewer
// between far ones. ZeRO's stages, whose updates take shards, need no gather: see Algebra.cpp.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "partita/Zero/Passes.h"

namespace partita {
#define GEN_PASS_DEF_ZERONESTREDUCTIONSPASS
#include "partita/Zero/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Sums of one gradient over one axis after another, the last one first.
using Chain = SmallVector<par::AllReduceOp>;

struct ZeroNestReductions : partita::impl::ZeroNestReductionsPassBase<ZeroNestReductions> {
  void runOnOperation() override {
    mesh = par::MeshAttr::of(getOperation());
    SmallVector<Chain> chains;
    getOperation().walk([&](par::AllReduceOp last) {
      if (isOfParameter(last) && !isSummedOn(last))
        if (Chain chain = chainOf(last); chain.size() > 1)
          chains.push_back(std::move(chain));
    });
    for (Chain &chain : chains)
      nest(std::move(chain));
  }

private:
  static bool isOfParameter(par::AllReduceOp sum) {
    SmallVector<par::CauseAttr> causes = par::causesOf(sum);
    return sum.getValues().size() == 1 && !causes.empty() &&
           par::isOfParameters(causes.front().getRole());
  }

  static bool isSummedOn(par::AllReduceOp sum) {
    auto next =
        sum->hasOneUse() ? dyn_cast<par::AllReduceOp>(*sum->user_begin()) : par::AllReduceOp();
    return next && isOfParameter(next);
  }

  static Chain chainOf(par::AllReduceOp last) {
    Chain chain{last};
    while (auto sum = chain.back().getValues()[0].getDefiningOp<par::AllReduceOp>()) {
      if (!sum->hasOneUse() || !isOfParameter(sum))
        break;
      chain.push_back(sum);
    }
    return chain;
  }

  /// The sums over axes along which ranks see parameters alike, without the farthest: those that
  /// are scattered, the nearest first.
  Chain scatteredOf(const Chain &chain) const {
    Chain near;
    for (StringAttr axis : llvm::reverse(mesh.getAxes()))
      for (par::AllReduceOp sum : chain)
        if (sum.getAxisAttr() == axis &&
            (par::splits(axis, par::Splits::Batch) || par::splits(axis, par::Splits::Context)))
          near.push_back(sum);
    if (!near.empty())
      near.pop_back();
    return near;
  }

  /// The type of what a sum or a gather over the axis completes.
  Type completedOver(StringAttr axis, Type type) const {
    par::Layout layout = par::Layout::of(type);
    layout.clear(axis);
    return *layout.localType(getElementTypeOrSelf(type), mesh, [](const Twine &) {});
  }

  /// What a rank sends if every link carries as little as it can. (A census counts the sizes of buffers.)
  static double sentBytes(CollectiveInterface op) {
    double ranks = static_cast<double>(op.getRankCount());
    double full = static_cast<double>(
        std::max(bytesOf(op->getOperandTypes()), bytesOf(op->getResultTypes())));
    return (op.getRow().inPlace ? 2 : 1) * (ranks - 1) / ranks * full;
  }

  void nest(Chain chain) {
    Chain scattered = scatteredOf(chain);
    Value value = chain.back().getValues()[0];
    if (scattered.empty() || cast<RankedTensorType>(value.getType()).getRank() == 0)
      return;
    OpBuilder builder(chain.front());
    double before = 0, after = 0;
    for (par::AllReduceOp sum : chain)
      before += sentBytes(sum);
    SmallVector<Operation *> made;
    auto add = [&](auto op) {
      made.push_back(op);
      after += sentBytes(op);
      value = op->getResult(0);
    };
    for (par::AllReduceOp sum : scattered)
      add(zero::ReduceScatterOp::create(
          builder, sum.getLoc(),
          TypeRange(zero::shardType(value.getType(), {sum.getAxisAttr()}, mesh)), value,
          sum.getAxisAttr(), sum.getReasonAttr()));
    for (par::AllReduceOp sum : llvm::reverse(chain))
      if (!llvm::is_contained(scattered, sum))
        add(par::AllReduceOp::create(builder, sum.getLoc(),
                                     TypeRange(completedOver(sum.getAxisAttr(), value.getType())),
                                     value, sum.getAxisAttr(), sum.getReasonAttr()));
    for (par::AllReduceOp sum : llvm::reverse(scattered))
      add(zero::GatherOp::create(
          builder, sum.getLoc(), TypeRange(completedOver(sum.getAxisAttr(), value.getType())),
          value, sum.getAxisAttr(), sum.getReasonAttr(), /*again=*/UnitAttr()));
    if (after >= before) { // a tensor of so few elements that shards are padding
      for (Operation *op : llvm::reverse(made))
        op->erase();
      return;
    }
    chain.front().getResult(0).replaceAllUsesWith(value);
    for (par::AllReduceOp sum : chain)
      sum->erase();
    ++nested;
  }

  par::MeshAttr mesh;
};

} // namespace
