//===- FuseBias.cpp - a bias goes into the product's kernel -----------------------------------===//

#include "lib/Fuse/Products.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEBIASPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// The product of `add` with its bias, or null.
template <typename Product, typename Biased> Value fuse(tx::AddOp add) {
  for (auto [product, other] :
       {std::pair{add.getA(), add.getB()}, std::pair{add.getB(), add.getA()}}) {
    auto op = product.template getDefiningOp<Product>();
    Value bias = repeatedRow(other);
    if (!op || !bias || !op->hasOneUse())
      continue;
    OpBuilder builder(add);
    return Biased::create(builder, builder.getFusedLoc({op.getLoc(), add.getLoc()}),
                          TypeRange{add.getType()}, ValueRange{op.getA(), op.getB(), bias})
        ->getResult(0);
  }
  return {};
}

struct FuseBias : partita::impl::FuseBiasPassBase<FuseBias> {
  void runOnOperation() override {
    getOperation().walk([&](tx::AddOp add) {
      Value result = fuse<tx::MatMulOp, tx::MatMulBiasOp>(add);
      if (!result)
        result = fuse<tx::MatMulNTOp, tx::MatMulNTBiasOp>(add);
      if (!result)
        return;
      SmallVector<Value> operands(add->getOperands());
      add.getResult().replaceAllUsesWith(result);
      add.erase();
      for (Value operand : operands)
        if (Operation *op = operand.getDefiningOp(); op && isOpTriviallyDead(op))
          op->erase();
      ++fused;
    });
  }
};

} // namespace
