//===- FuseEpilogues.cpp - fuses ops after a matmul into its kernel ---------------------------===//
//
// Matches three patterns: a GELU; the derivative of a GELU, possibly with the gradient of the bias
// before it; and a bias's gradient next to the gradient of its weight. Reshapes in between are
// ignored. The fused op is placed where all of its operands are defined and no result has been used
// yet.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "dialects/Tx/FusedMatmul.h"
#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

//===------------------------------------------------------------------------------------------===//
// GELU
//===------------------------------------------------------------------------------------------===//

/// Adds the reshapes that a value went through, the first one first.
void addReshapes(Value value, SmallVectorImpl<Operation *> &ops) {
  if (auto reshape = value.getDefiningOp<tx::ReshapeOp>()) {
    addReshapes(reshape.getX(), ops);
    ops.push_back(reshape);
  }
}

bool fuseGelu(tx::GeluTanhOp gelu) {
  Value argument = unshaped(gelu.getX());
  auto add = argument.getDefiningOp<tx::AddOp>();
  BiasedMatmul biased =
      add && add->getBlock() == gelu->getBlock() ? BiasedMatmul::of(add) : BiasedMatmul();
  if (!biased.matmul || !biased.hasType(add.getType()) ||
      isFollowedByArithmetic(gelu.getResult()) ||
      !sameElements(biased.matmul, {argument, biased.row}))
    return false;
  bool isNeeded = llvm::any_of(usersOf(argument), [&](Operation *user) { return user != gelu; });
  if (tx::isScaled(biased.matmul) && !isNeeded)
    return false; // fuse-elementwise fuses the bias with the GELU
  OpBuilder builder(add);
  Location loc = builder.getFusedLoc({biased.matmul->getLoc(), add.getLoc(), gelu.getLoc()});
  Value sum = biased.create(builder, loc, add.getType());
  if (tx::isScaled(biased.matmul)) { // the bias alone: the argument is written in any case
    add.getResult().replaceAllUsesWith(sum);
    eraseUnused({add.getA().getDefiningOp(), add.getB().getDefiningOp(), add});
    return false;
  }
  auto activation = tx::GeluTanhOp::create(builder, loc, TypeRange{add.getType()}, sum);
  SmallVector<Value> results = {activation->getResult(0)};
  if (isNeeded)
    results.push_back(sum);
  auto fused = fuseMatmul(builder, loc, {sum.getDefiningOp(), activation}, results);
  SmallVector<Operation *> ops = {add.getA().getDefiningOp(), add.getB().getDefiningOp(), add};
  addReshapes(gelu.getX(), ops);
  ops.append({gelu, sum.getDefiningOp(), activation});
  Value result = fused.getResult(0);
  if (result.getType() != gelu.getType())
    result = tx::ReshapeOp::create(builder, gelu.getLoc(), gelu.getType(), result);
  gelu.getResult().replaceAllUsesWith(result);
  if (isNeeded)
    add.getResult().replaceAllUsesWith(fused.getResult(1));
  eraseUnused(ops);
  return true;
}

//===------------------------------------------------------------------------------------------===//
// The derivative of a GELU
//===------------------------------------------------------------------------------------------===//

bool fuseSlope(tx::GeluTanhGradOp slope) {
  Operation *matmul = slope.getDy().getDefiningOp();
  if (!isMatmul(matmul) || !matmul->hasOneUse() || matmul->getBlock() != slope->getBlock() ||
      isFollowedByArithmetic(slope.getResult()) ||
      !sameElements({slope.getX(), slope.getDy(), slope.getResult(), matmul->getOperand(0),
                     matmul->getOperand(1)}))
    return false;
  OpBuilder builder(slope->getContext());
  builder.setInsertionPointAfter(slope);
  SmallVector<Location> locs = {matmul->getLoc(), slope.getLoc()};
  SmallVector<Operation *> ops = {matmul, slope};
  SmallVector<Value> results = {slope.getResult()};
  // Fuses the gradient of the bias before the GELU as well: this kernel has the cotangent in
  // registers, whereas the kernel of the weight's gradient would read it.
  tx::ReduceSumOp sums = rowSumsOf(slope.getResult(), slope->getBlock());
  if (sums && (isAddedWider(sums) || !sameElements({sums.getResult(), slope.getResult()})))
    sums = {};
  if (sums) {
    auto rows = llvm::to_vector(llvm::seq<int64_t>(0, slope.getType().getRank() - 1));
    ops.push_back(
        tx::ReduceSumOp::create(builder, sums.getLoc(), sums.getType(), slope.getResult(), rows));
    locs.push_back(sums.getLoc());
    results.push_back(ops.back()->getResult(0));
  }
  auto fused = fuseMatmul(builder, builder.getFusedLoc(locs), ops, results);
  slope.getResult().replaceUsesWithIf(
      fused.getResult(0), [&](OpOperand &use) { return !llvm::is_contained(ops, use.getOwner()); });
  if (sums)
    sums.getResult().replaceAllUsesWith(fused.getResult(1));
  eraseUnused({sums});
  eraseUnused(ops);
  return true;
}

//===------------------------------------------------------------------------------------------===//
// A bias's gradient
//===------------------------------------------------------------------------------------------===//

/// Returns where both can be computed at once: at the first op if the other's operands are defined
/// there, at the second if the first one's result is not used before; null if neither.
Operation *meetingPoint(Operation *first, Operation *second) {
  if (second->isBeforeInBlock(first))
    std::swap(first, second);
  if (llvm::all_of(second->getOperands(), [&](Value operand) { return isBefore(operand, first); }))
    return first;
  Block *block = first->getBlock();
  bool isEarly = llvm::any_of(first->getUsers(), [&](Operation *user) {
    return block->findAncestorOpInBlock(*user)->isBeforeInBlock(second);
  });
  return isEarly ? nullptr : second;
}

bool fuseBiasGradient(tx::MatMulTNOp matmul) {
  for (Value cotangent : {matmul.getB(), matmul.getA()}) {
    tx::ReduceSumOp sums = rowSumsOf(cotangent, matmul->getBlock());
    if (!sums || !sameElements({matmul.getA(), matmul.getB(), matmul.getResult(), sums.getX(),
                                sums.getResult()}))
      continue;
    // The sums are computed from the matmul's operand, which others may use in another shape.
    Operation *place = meetingPoint(sums, matmul);
    if (!place || !isBefore(cotangent, place))
      continue;
    OpBuilder builder(place);
    Location loc = builder.getFusedLoc({matmul.getLoc(), sums.getLoc()});
    auto rows = llvm::to_vector(
        llvm::seq<int64_t>(0, cast<RankedTensorType>(cotangent.getType()).getRank() - 1));
    auto same = tx::ReduceSumOp::create(builder, sums.getLoc(), sums.getType(), cotangent, rows);
    auto fused = fuseMatmul(builder, loc, {matmul, same}, {matmul.getResult(), same.getResult()});
    matmul.getResult().replaceAllUsesWith(fused.getResult(0));
    sums.getResult().replaceAllUsesWith(fused.getResult(1));
    eraseUnused({matmul, sums, same});
    return true;
  }
  return false;
}

struct FuseEpilogues : partita::impl::FuseEpiloguesPassBase<FuseEpilogues> {
  void runOnOperation() override {
    if (!rt::Target::of(getOperation()).fusesMatmuls())
      return;
    gelus += fuseAll<tx::GeluTanhOp>(fuseGelu);
    slopes += fuseAll<tx::GeluTanhGradOp>(fuseSlope);
    biases += fuseAll<tx::MatMulTNOp>(fuseBiasGradient);
  }

private:
  template <typename Op> unsigned fuseAll(bool (*fuse)(Op)) {
    SmallVector<Op> ops;
    getOperation().walk([&](Op op) {
      if (!isa<tx::FusedMatmulOp>(op->getParentOp()))
        ops.push_back(op);
    });
    return llvm::count_if(ops, fuse);
  }
};

} // namespace
