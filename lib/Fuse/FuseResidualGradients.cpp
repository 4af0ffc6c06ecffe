//===- FuseResidualGradients.cpp - fuses an addition into a norm's gradient -------------------===//
//
// An addition to a norm's dx without other users moves into the gradient op: at the gradient's
// place if the other addend is defined by then, else at the addition's place if the gradients of
// the weights are not used before.

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSERESIDUALGRADIENTSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns where both can be computed at once: at the gradient if the addend is defined by then, at
/// the addition if the weights' gradients are not used earlier; null if neither.
Operation *meetingPoint(Operation *grad, tx::AddOp add, Value addend) {
  Operation *definition = addend.getDefiningOp();
  if (!definition || definition->getBlock() != grad->getBlock() ||
      definition->isBeforeInBlock(grad))
    return grad;
  Block *block = add->getBlock();
  for (Value result : grad->getResults().drop_front())
    for (Operation *user : result.getUsers())
      if (Operation *here = block->findAncestorOpInBlock(*user);
          !here || here->isBeforeInBlock(add))
        return nullptr;
  return add;
}

/// If `value` is the dx, i.e. the first result, of a `Grad` that a `GradAdd` can extend, replaces
/// both ops by one.
template <typename Grad, typename GradAdd> bool fuse(tx::AddOp add, Value value, Value addend) {
  auto grad = value.getDefiningOp<Grad>();
  if (!grad || grad.getDx() != value || !value.hasOneUse() || grad->getBlock() != add->getBlock() ||
      addend.getType() != value.getType() || addend.getDefiningOp() == grad)
    return false;
  // With an open sum over ranks, the fused op would not be linear in a single addend.
  if (!par::Layout::of(value.getType()).partial.empty())
    return false;
  Operation *place = meetingPoint(grad, add, addend);
  if (!place)
    return false;
  OpBuilder builder(place);
  SmallVector<Value> operands(grad->getOperands());
  operands.push_back(addend);
  auto both = GradAdd::create(builder, grad.getLoc(), operands);
  add.getResult().replaceAllUsesWith(both.getDx());
  add.erase();
  grad->replaceAllUsesWith(both);
  grad.erase();
  return true;
}

struct FuseResidualGradients : partita::impl::FuseResidualGradientsPassBase<FuseResidualGradients> {
  void runOnOperation() override {
    SmallVector<tx::AddOp> adds;
    getOperation().walk([&](tx::AddOp add) { adds.push_back(add); });
    for (tx::AddOp add : adds)
      for (auto [value, addend] :
           {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())})
        if (fuse<tx::LayerNormGradOp, tx::LayerNormGradAddOp>(add, value, addend) ||
            fuse<tx::RmsNormGradOp, tx::RmsNormGradAddOp>(add, value, addend)) {
          ++fused;
          break;
        }
  }
};

} // namespace
