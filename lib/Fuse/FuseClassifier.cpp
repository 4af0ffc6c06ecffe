//===- FuseClassifier.cpp - fuses a matmul and its cross-entropy ------------------------------===//
//
// Starts at a cross-entropy of x w^T. The logits may have one other user, the cross-entropy's
// gradient, and only the gradients of the same x and w may use its result. The fused op replaces
// the cross-entropy. The ops that compute the loss's cotangent move before it; if they depend on
// the loss, nothing is fused.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "mlir/Transforms/RegionUtils.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSECLASSIFIERPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// The ops to fuse; the last three are null in evaluation.
struct Classifier {
  tx::MatMulNTOp logits;
  tx::CrossEntropyOp loss;
  tx::CrossEntropyGradOp grad;
  tx::MatMulOp dx;
  tx::MatMulTNOp dw;
};

/// Matches the gradients of x and w. Fails if the logits' cotangent has other uses.
bool matchGradients(Classifier &c) {
  for (Operation *user : c.grad.getDlogits().getUsers())
    if (auto dx = dyn_cast<tx::MatMulOp>(user);
        dx && !c.dx && dx.getA() == c.grad.getDlogits() && dx.getB() == c.logits.getB())
      c.dx = dx;
    else if (auto dw = dyn_cast<tx::MatMulTNOp>(user);
             dw && !c.dw && dw.getA() == c.grad.getDlogits() && dw.getB() == c.logits.getA())
      c.dw = dw;
    else
      return false;
  return c.dx && c.dw && c.dx->getBlock() == c.loss->getBlock() &&
         c.dw->getBlock() == c.loss->getBlock();
}

std::optional<Classifier> match(tx::CrossEntropyOp loss) {
  Classifier c;
  c.loss = loss;
  c.logits = loss.getLogits().getDefiningOp<tx::MatMulNTOp>();
  if (!c.logits || cast<RankedTensorType>(c.logits.getB().getType()).getRank() != 2)
    return std::nullopt;
  for (Operation *user : c.logits.getResult().getUsers())
    if (auto grad = dyn_cast<tx::CrossEntropyGradOp>(user);
        grad && !c.grad && !grad.getFirst() && grad.getLse() == loss.getLse() &&
        grad.getLabels() == loss.getLabels() && grad.getIgnoreIndex() == loss.getIgnoreIndex())
      c.grad = grad;
    else if (user != loss)
      return std::nullopt;
  if (!c.grad)
    return loss.getLse().use_empty() ? std::optional(c) : std::nullopt;
  return loss.getLse().hasOneUse() && c.grad->getBlock() == loss->getBlock() && matchGradients(c)
             ? std::optional(c)
             : std::nullopt;
}

void fuseLoss(RewriterBase &rewriter, Classifier &c) {
  auto both = tx::ClassifierLossOp::create(
      rewriter, c.loss.getLoc(), TypeRange{c.loss.getLoss().getType()},
      ValueRange{c.logits.getA(), c.logits.getB(), c.loss.getLabels()}, c.loss->getAttrs());
  rewriter.replaceAllUsesWith(c.loss.getLoss(), both.getLoss());
}

void fuseGradients(RewriterBase &rewriter, Classifier &c) {
  auto both = tx::ClassifierLossGradOp::create(
      rewriter, c.loss.getLoc(),
      TypeRange{c.loss.getLoss().getType(), c.dx.getType(), c.dw.getType()},
      ValueRange{c.logits.getA(), c.logits.getB(), c.loss.getLabels(), c.grad.getDloss()},
      c.loss->getAttrs());
  rewriter.replaceAllUsesWith(c.loss.getLoss(), both.getLoss());
  rewriter.replaceOp(c.dx, both.getDx());
  rewriter.replaceOp(c.dw, both.getDw());
  rewriter.eraseOp(c.grad);
}

struct FuseClassifier : partita::impl::FuseClassifierPassBase<FuseClassifier> {
  void runOnOperation() override {
    SmallVector<tx::CrossEntropyOp> losses;
    getOperation().walk([&](tx::CrossEntropyOp loss) { losses.push_back(loss); });
    IRRewriter rewriter(&getContext());
    for (tx::CrossEntropyOp loss : losses) {
      std::optional<Classifier> found = match(loss);
      if (!found ||
          (found->grad && failed(moveValueDefinitions(rewriter, {found->grad.getDloss()}, loss))))
        continue;
      rewriter.setInsertionPoint(loss);
      found->grad ? fuseGradients(rewriter, *found) : fuseLoss(rewriter, *found);
      rewriter.eraseOp(loss);
      rewriter.eraseOp(found->logits);
      ++fused;
    }
  }
};

} // namespace
