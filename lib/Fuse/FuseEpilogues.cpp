//===- FuseEpilogues.cpp - what follows a product goes into its kernel ------------------------===//
//
// Two patterns, each found from its last op: a GELU and the slope of a GELU. Reshapes that stand
// between them are looked through. What is fused stands where all of its operands are there and
// nobody has used a result yet.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "lib/Fuse/Products.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// What the value is a reshape of.
Value unshaped(Value value) {
  while (auto reshape = value.getDefiningOp<tx::ReshapeOp>())
    value = reshape.getX();
  return value;
}

/// Who uses the value, also in another shape.
SmallVector<Operation *> usersOf(Value value) {
  SmallVector<Operation *> users;
  for (Operation *user : value.getUsers())
    if (isa<tx::ReshapeOp>(user))
      llvm::append_range(users, usersOf(user->getResult(0)));
    else
      users.push_back(user);
  return users;
}

/// Does arithmetic follow, which can be done in one loop with what makes the value?
bool isFollowedByArithmetic(Value value) {
  return llvm::any_of(usersOf(value), llvm::IsaPred<ScalarInterface, tx::CastOp>);
}

/// Are all these values of one type of elements?
bool sameElements(ArrayRef<Value> values) {
  return llvm::all_of(values, [&](Value value) {
    return getElementTypeOrSelf(value.getType()) == getElementTypeOrSelf(values[0].getType());
  });
}

bool isProduct(Operation *op) { return isa_and_nonnull<tx::MatMulOp, tx::MatMulNTOp>(op); }

//===------------------------------------------------------------------------------------------===//
// GELU
//===------------------------------------------------------------------------------------------===//

/// A product and the row that is added to it.
struct Biased {
  Operation *product = nullptr;
  Value row;
};

Biased biasedProduct(tx::AddOp add) {
  for (auto [product, other] :
       {std::pair{add.getA(), add.getB()}, std::pair{add.getB(), add.getA()}})
    if (Value row = repeatedRow(other); row && isProduct(product.getDefiningOp()) &&
                                        product.hasOneUse() && product.getType() == add.getType())
      return {product.getDefiningOp(), row};
  return {};
}

Value addBias(OpBuilder &builder, const Biased &biased, Location loc, Type type) {
  SmallVector<Value> operands(biased.product->getOperands());
  operands.push_back(biased.row);
  if (isa<tx::MatMulOp>(biased.product))
    return tx::MatMulBiasOp::create(builder, loc, TypeRange{type}, operands)->getResult(0);
  return tx::MatMulNTBiasOp::create(builder, loc, TypeRange{type}, operands)->getResult(0);
}

bool fuseGelu(tx::GeluTanhOp gelu) {
  Value argument = unshaped(gelu.getX());
  auto add = argument.getDefiningOp<tx::AddOp>();
  Biased biased = add && add->getBlock() == gelu->getBlock() ? biasedProduct(add) : Biased();
  if (!biased.product || isFollowedByArithmetic(gelu.getResult()) ||
      !sameElements(
          {argument, biased.row, biased.product->getOperand(0), biased.product->getOperand(1)}))
    return false;
  if (llvm::all_of(usersOf(argument), [&](Operation *user) { return user == gelu; }))
    return false; // nobody wants the argument: one kernel behind the product writes one tensor less
  OpBuilder builder(add);
  Location loc = builder.getFusedLoc({biased.product->getLoc(), add.getLoc(), gelu.getLoc()});
  Value sum = addBias(builder, biased, loc, add.getType());
  auto activation = tx::GeluTanhOp::create(builder, loc, TypeRange{add.getType()}, sum);
  auto fused =
      fuseProduct(builder, loc, {sum.getDefiningOp(), activation}, {activation->getResult(0), sum});
  Value result = fused.getResult(0);
  if (result.getType() != gelu.getType())
    result = tx::ReshapeOp::create(builder, gelu.getLoc(), gelu.getType(), result);
  gelu.getResult().replaceAllUsesWith(result);
  add.getResult().replaceAllUsesWith(fused.getResult(1));
  Operation *broadcasts[] = {add.getA().getDefiningOp(), add.getB().getDefiningOp()};
  eraseUnused({broadcasts[0], broadcasts[1], add, gelu, sum.getDefiningOp(), activation});
  return true;
}

//===------------------------------------------------------------------------------------------===//
// The slope of a GELU
//===------------------------------------------------------------------------------------------===//

bool fuseSlope(tx::GeluTanhGradOp slope) {
  Operation *product = slope.getDy().getDefiningOp();
  if (!isProduct(product) || !product->hasOneUse() || product->getBlock() != slope->getBlock() ||
      isFollowedByArithmetic(slope.getResult()) ||
      !sameElements({slope.getX(), slope.getDy(), slope.getResult(), product->getOperand(0),
                     product->getOperand(1)}))
    return false;
  OpBuilder builder(slope);
  Location loc = builder.getFusedLoc({product->getLoc(), slope.getLoc()});
  auto fused = fuseProduct(builder, loc, {product, slope}, slope->getResults());
  slope.getResult().replaceAllUsesWith(fused.getResult(0));
  eraseUnused({product, slope});
  return true;
}

struct FuseEpilogues : partita::impl::FuseEpiloguesPassBase<FuseEpilogues> {
  void runOnOperation() override {
    if (!rt::isForCuda(getOperation()))
      return;
    gelus += fuseAll<tx::GeluTanhOp>(fuseGelu);
    slopes += fuseAll<tx::GeluTanhGradOp>(fuseSlope);
  }

private:
  template <typename Op> unsigned fuseAll(bool (*fuse)(Op)) {
    SmallVector<Op> ops;
    getOperation().walk([&](Op op) {
      if (!isa<tx::FusedProductOp>(op->getParentOp()))
        ops.push_back(op);
    });
    return llvm::count_if(ops, fuse);
  }
};

} // namespace
