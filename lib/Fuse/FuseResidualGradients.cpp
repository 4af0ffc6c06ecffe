//===- FuseResidualGradients.cpp - layer norm's cotangent added as it is computed -------------===//
//
// An addition of a layer norm's dx, which nobody else reads, becomes the gradient op's own: at the
// gradient's place when the other addend is there by then, else at the addition's when nobody reads
// the gradients of weight and bias before.

#include "dialects/Tx/Tx.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSERESIDUALGRADIENTSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Where both can be computed at once: at the gradient if the addend is there by then, at the
/// addition if nobody needs the weights' gradients earlier; null if neither.
Operation *meetingPoint(tx::LayerNormGradOp grad, tx::AddOp add, Value addend) {
  Operation *definition = addend.getDefiningOp();
  if (!definition || definition->getBlock() != grad->getBlock() ||
      definition->isBeforeInBlock(grad))
    return grad;
  Block *block = add->getBlock();
  for (Value result : {grad.getDw(), grad.getDb()})
    for (Operation *user : result.getUsers())
      if (Operation *here = block->findAncestorOpInBlock(*user);
          !here || here->isBeforeInBlock(add))
        return nullptr;
  return add;
}

struct FuseResidualGradients : partita::impl::FuseResidualGradientsPassBase<FuseResidualGradients> {
  void runOnOperation() override {
    SmallVector<tx::AddOp> adds;
    getOperation().walk([&](tx::AddOp add) { adds.push_back(add); });
    for (tx::AddOp add : adds)
      for (auto [value, addend] :
           {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
        auto grad = value.getDefiningOp<tx::LayerNormGradOp>();
        if (!grad || grad.getDx() != value || !value.hasOneUse() ||
            grad->getBlock() != add->getBlock() || addend.getType() != value.getType() ||
            addend.getDefiningOp() == grad)
          continue;
        Operation *place = meetingPoint(grad, add, addend);
        if (!place)
          continue;
        OpBuilder builder(place);
        SmallVector<Value> operands(grad->getOperands());
        operands.push_back(addend);
        auto both = tx::LayerNormGradAddOp::create(builder, grad.getLoc(), operands);
        add.getResult().replaceAllUsesWith(both.getDx());
        add.erase();
        grad.getDw().replaceAllUsesWith(both.getDw());
        grad.getDb().replaceAllUsesWith(both.getDb());
        grad.erase();
        ++fused;
        break;
      }
  }
};

} // namespace
