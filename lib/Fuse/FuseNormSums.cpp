//===- FuseNormSums.cpp - sums of the rows of a norm's cotangent by its kernel ----------------===//
//
// What a norm normalizes is often something plus a bias: its cotangent is that of the bias in every
// row. The sums are a result of the gradient op that has no users yet; a reduction of dx in the same
// block gives its users to it.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Fuse/Products.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSENORMSUMSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

template <typename Grad> bool fuse(Grad grad) {
  tx::ReduceSumOp sums = rowSumsOf(grad.getDx(), grad->getBlock());
  if (!sums || isAddedWider(sums) || sums.getType() != grad.getSums().getType())
    return false;
  sums.getResult().replaceAllUsesWith(grad.getSums());
  sums.erase();
  return true;
}

struct FuseNormSums : partita::impl::FuseNormSumsPassBase<FuseNormSums> {
  void runOnOperation() override {
    SmallVector<Operation *> gradients;
    getOperation().walk([&](Operation *op) {
      if (isa<tx::LayerNormGradOp, tx::LayerNormGradAddOp>(op))
        gradients.push_back(op);
    });
    for (Operation *op : gradients)
      if (auto grad = dyn_cast<tx::LayerNormGradOp>(op))
        fused += fuse(grad);
      else
        fused += fuse(cast<tx::LayerNormGradAddOp>(op));
  }
};

} // namespace
