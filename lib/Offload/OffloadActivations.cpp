//===- OffloadActivations.cpp - saved activations in the host's memory ------------------------===//
//
// What the forward pass of a layer computes and the backward pass uses, itself or through views,
// goes to the host where it is made. The backward pass uses what comes back; its views are made of
// that.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Offload/OffloadWords.h"
#include "partita/Analysis/Work.h"
#include "partita/Offload/Passes.h"

namespace partita {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using provenance::isBackward;

namespace {


struct OffloadActivations : partita::impl::OffloadActivationsPassBase<OffloadActivations> {
  using OffloadActivationsPassBase::OffloadActivationsPassBase;

  void runOnOperation() override {
    if (leastBytes < 0) {
      getOperation().emitError() << "least-bytes=" << leastBytes.getValue()
                                 << ", expected a number of bytes from 0 on";
      return signalPassFailure();
    }
    FailureOr<bool> wanted = offload::names(getOperation(), what, "activations");
    if (failed(wanted))
      return signalPassFailure();
    if (!*wanted)
      return;
    SmallVector<Value> saved;
    bool trains = false;
    getOperation().walk([&](Operation *op) {
      trains |= isBackward(op);
      for (Value value : op->getResults())
        if (mayLeave(op, value) && isUsedBackward(value))
          saved.push_back(value);
    });
    if (!trains) {
      getOperation().emitError() << "offload: activations: this program has no backward pass that "
                                    "would need them";
      return signalPassFailure();
    }
    if (saved.empty()) {
      getOperation().emitWarning()
          << "offload: activations: none of at least " << int64_t(leastBytes)
          << " bytes waits for the backward pass of its layer; a lower "
             "--offload-threshold takes smaller ones";
      return;
    }
    for (Value value : saved)
      move(value);
    moved += saved.size();
  }

private:
  /// The last layer's backward pass follows its forward pass at once.
  static bool isInTime(Operation *op) {
    train::LayerAttr layer = train::LayerAttr::of(op);
    return layer && (layer.getNumber() == train::LayerAttr::kBefore ||
                     (layer.getNumber() >= 0 && layer.getNumber() + 1 < layer.getCount()));
  }

  /// Computed in the forward pass, and of some size. Parameters have their own ways.
  bool mayLeave(Operation *op, Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && !isBackward(op) && isInTime(op) && op->getNumRegions() == 0 &&
           isMemoryEffectFree(op) && !op->hasTrait<OpTrait::ConstantLike>() &&
           !isa<train::ReadOp, zero::GatherOp>(op) &&
           !isa<offload::OffloadDialect>(op->getDialect()) && !analysis::isView(op) &&
           bytesOf(type) >= leastBytes;
  }

  /// Itself, or through views of the forward pass.
  static bool isUsedBackward(Value value) {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      return isBackward(user) || (analysis::isView(user) && isUsedBackward(user->getResult(0)));
    });
  }

  /// The first op of the value's block that needs it in the backward pass.
  static void findFirst(Value value, Block *block, Operation *&first) {
    for (Operation *user : value.getUsers()) {
      if (!isBackward(user)) {
        if (analysis::isView(user))
          findFirst(user->getResult(0), block, first);
        continue;
      }
      Operation *inBlock = block->findAncestorOpInBlock(*user);
      if (inBlock && (!first || inBlock->isBeforeInBlock(first)))
        first = inBlock;
    }
  }

  void move(Value value) {
    Operation *op = value.getDefiningOp(), *first = nullptr;
    findFirst(value, op->getBlock(), first);
    if (!first)
      return;
    OpBuilder builder(first);
    auto back = offload::ToDeviceOp::create(builder, first->getLoc(), value.getType(), value,
                                            builder.getStringAttr("backward"));
    replaceBackward(value, back, builder);
    builder.setInsertionPointAfter(op);
    auto away = offload::ToHostOp::create(builder, op->getLoc(), value.getType(), value);
    back->setOperand(0, away);
  }

  /// Lets the backward uses of `value` use `back`, and those of its views views of `back`.
  static void replaceBackward(Value value, Value back, OpBuilder &builder) {
    SmallVector<Operation *> views;
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      if (user == back.getDefiningOp())
        continue;
      if (isBackward(user))
        use.set(back);
      else if (analysis::isView(user) && isUsedBackward(user->getResult(0)))
        views.push_back(user);
    }
    for (Operation *view : views) {
      Operation *again = builder.clone(*view);
      again->setOperand(0, back);
      again->setLoc(provenance::backward(view->getLoc()));
      replaceBackward(view->getResult(0), again->getResult(0), builder);
    }
  }
};

} // namespace
