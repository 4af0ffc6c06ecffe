//===- FuseNormSums.cpp - a norm's kernel sums the rows of its cotangent ----------------------===//
//
// A norm's operand is often a sum with a bias: then each row of its cotangent is a cotangent of the
// bias. The gradient op has a result for the sums, which has no users so far; a reduction of dx in
// the same block is replaced by it.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Fuse/Matmuls.h"
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
