//===- FuseAccumulation.cpp - matmuls that add to a sum of gradients --------------------------===//
//
// A weight's gradient is a matmul over the rows of a micro-batch (matmul_tn), possibly with the
// gradient of its bias. Its only use is to be added to a sum: by an addition, after the loop over
// micro-batches, or by being yielded from the loop. The addition moves into the kernel; for a loop,
// its region computes the sum. The other addend must be a gradient without other uses, so that the
// kernel is in-place. A sum that more arithmetic follows, such as a cast before a reduction, is
// left to fuse-elementwise: one loop after the matmul moves fewer bytes.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/FusedMatmul.h"
#include "lib/Fuse/Matmuls.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEACCUMULATIONPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// An addition of a gradient to a sum: by `add`, or by the loop that yields it.
struct Addition {
  tx::CastOp widened; // in between; may be null
  tx::AddOp add;
  train::AccumulateOp loop;
  unsigned number = 0; // of the loop's sum

  Value sum() { return add ? Value(add.getResult()) : Value(loop.getSums()[number]); }
  Value soFar(Value part) {
    if (loop)
      return loop.growSum(number);
    return add.getA() == part ? add.getB() : add.getA();
  }
};

bool isGradient(Operation *op) {
  if (auto fused = dyn_cast_or_null<tx::FusedMatmulOp>(op)) {
    auto parts = tx::FusedMatmul::of(fused);
    return parts.isWeightGradient() && parts.rowSums && !parts.soFar;
  }
  return op && tx::isWeightGradient(op) && !isa<tx::FusedMatmulOp>(op->getParentOp());
}

/// Returns true if a matmul of such operands can add to a sum of this type.
bool fits(Operation *gradient, Value sum) {
  auto fused = dyn_cast<tx::FusedMatmulOp>(gradient);
  Operation *matmul = fused ? tx::FusedMatmul::of(fused).matmul : gradient;
  Type one = getElementTypeOrSelf(matmul->getResult(0).getType()),
       wide = getElementTypeOrSelf(sum.getType());
  return sameElements(matmul, {}) && (wide == one || (wide.isF32() && isShortFloat(one)));
}

/// Returns true if the value is a gradient without other uses, computed before `op`.
bool isSumBefore(Value value, Operation *op) {
  Operation *definer = value.getDefiningOp();
  return definer &&
         (isa<train::AccumulateOp, tx::FusedMatmulOp>(definer) || tx::isWeightGradient(definer)) &&
         value.hasOneUse() && definer->getBlock() == op->getBlock() && definer->isBeforeInBlock(op);
}

std::optional<Addition> additionOf(Operation *gradient, Value part) {
  Addition found;
  if (!part.hasOneUse())
    return std::nullopt;
  found.widened = dyn_cast<tx::CastOp>(*part.getUsers().begin());
  if (found.widened)
    part = found.widened.getResult();
  if (!part.hasOneUse() || (*part.getUsers().begin())->getBlock() != gradient->getBlock())
    return std::nullopt;
  OpOperand &use = *part.getUses().begin();
  found.add = dyn_cast<tx::AddOp>(use.getOwner());
  if (found.add) {
    Value other = found.add->getOperand(1 - use.getOperandNumber());
    if (!isSumBefore(other, gradient) || llvm::any_of(found.add->getUsers(), tx::isElementwise))
      return std::nullopt;
  } else if (auto yield = dyn_cast<train::YieldOp>(use.getOwner())) {
    found.loop = cast<train::AccumulateOp>(yield->getParentOp());
    std::optional<unsigned> number = found.loop.getSumOf(use);
    if (!number || found.loop.getSoFar(*number) || found.widened)
      return std::nullopt;
    found.number = *number;
  } else {
    return std::nullopt;
  }
  return fits(gradient, found.sum()) ? std::optional(found) : std::nullopt;
}

struct FuseAccumulation : partita::impl::FuseAccumulationPassBase<FuseAccumulation> {
  void runOnOperation() override {
    if (failed(expectScheduled(*this, getOperation())))
      return signalPassFailure();
    SmallVector<Operation *> gradients;
    getOperation().walk([&](Operation *op) {
      if (isGradient(op))
        gradients.push_back(op);
    });
    for (Operation *gradient : gradients) {
      SmallVector<Addition> additions;
      for (Value part : gradient->getResults())
        if (std::optional<Addition> addition = additionOf(gradient, part))
          additions.push_back(*addition);
      if (additions.size() != gradient->getNumResults())
        continue;
      fuse(gradient, additions);
      ++fused;
    }
  }

private:
  void fuse(Operation *gradient, MutableArrayRef<Addition> additions) {
    OpBuilder builder(gradient);
    Location loc = gradient->getLoc();
    Unfused parts = unfused(builder, gradient);
    auto append = [&](Operation *op) {
      parts.ops.push_back(op);
      return op->getResult(0);
    };
    for (auto [part, old, addition] : llvm::zip(parts.results, gradient->getResults(), additions)) {
      Type type = addition.sum().getType();
      Value soFar = addition.soFar(addition.widened ? addition.widened.getResult() : Value(old));
      if (part.getType() != type)
        part = append(tx::CastOp::create(builder, loc, type, part));
      part = append(tx::AddOp::create(builder, loc, TypeRange{type}, ValueRange{soFar, part}));
    }
    tx::FusedMatmulOp both = fuseMatmul(builder, loc, parts.ops, parts.results);
    eraseUnused(parts.ops);
    for (auto [sum, addition] : llvm::zip(both.getResults(), additions))
      put(sum, addition);
    gradient->erase();
  }

  /// Replaces the addition by the sum.
  static void put(Value sum, Addition &addition) {
    if (addition.loop) {
      addition.loop.getPart(addition.number).set(sum);
      return;
    }
    addition.add.getResult().replaceAllUsesWith(sum);
    addition.add.erase();
    if (addition.widened)
      addition.widened.erase();
  }
};

} // namespace
