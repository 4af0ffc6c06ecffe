//===- OffloadActivations.cpp - offloads saved activations ------------------------------------===//
//
// Copies each value of a layer that train.accumulate saves for the backward pass to the host where
// it is computed, and saves the copy. The backward pass copies it back before its first use.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Offload/OffloadWords.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Offload/Passes.h"

namespace partita {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

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
    SmallVector<train::AccumulateOp> loops;
    getOperation().walk([&](train::AccumulateOp loop) {
      if (loop.hasBackward())
        loops.push_back(loop);
    });
    if (loops.empty()) {
      getOperation().emitError() << "offload: activations: this program has no backward pass that "
                                    "would need them";
      return signalPassFailure();
    }
    int64_t count = 0;
    for (train::AccumulateOp loop : loops)
      count += moveSaved(loop);
    moved += count;
    if (count == 0)
      getOperation().emitWarning()
          << "offload: activations: no saved activation of at least " << int64_t(leastBytes)
          << " bytes can be offloaded; lower --offload-threshold";
  }

private:
  /// The last layer's backward pass directly follows its forward pass, so a copy would come too
  /// late.
  static bool isInTime(Operation *op) {
    train::LayerAttr layer = train::LayerAttr::of(op);
    return layer && (layer.getNumber() == train::LayerAttr::kBefore ||
                     (layer.getNumber() >= 0 && layer.getNumber() + 1 < layer.getCount()));
  }

  /// Returns true if a value is large enough and computed in the forward pass. Parameters are
  /// offloaded separately.
  bool mayLeave(Value value) {
    Operation *op = value.getDefiningOp();
    auto type = cast<RankedTensorType>(value.getType());
    return op && isInTime(op) && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           !isa<zero::GatherOp>(op) && !isa<offload::OffloadDialect>(op->getDialect()) &&
           bytesOf(type) >= leastBytes;
  }

  /// Returns the numbers of the values to offload, in the order in which the forward pass makes
  /// them.
  SmallVector<unsigned> leaving(train::AccumulateOp loop) {
    OperandRange saved = loop.getSaved();
    auto numbers = llvm::filter_to_vector(llvm::seq<unsigned>(0, saved.size()),
                                          [&](unsigned number) { return mayLeave(saved[number]); });
    llvm::sort(numbers, [&](unsigned a, unsigned b) { // no value is listed twice
      auto one = cast<OpResult>(saved[a]), other = cast<OpResult>(saved[b]);
      return one.getOwner() == other.getOwner() ? one.getResultNumber() < other.getResultNumber()
                                                : one.getOwner()->isBeforeInBlock(other.getOwner());
    });
    return numbers;
  }

  /// Returns how many values it moved.
  int64_t moveSaved(train::AccumulateOp loop) {
    loop.simplifySaved();
    int64_t count = 0;
    for (unsigned number : leaving(loop))
      if (Operation *first = analysis::firstUseOf(loop.getSavedArgument(number))) {
        move(loop, number, first);
        ++count;
      }
    return count;
  }

  void move(train::AccumulateOp loop, unsigned number, Operation *first) {
    Value value = loop.getSaved()[number];
    Operation *op = value.getDefiningOp();
    OpBuilder builder(first);
    BlockArgument argument = loop.getSavedArgument(number);
    auto back = offload::ToDeviceOp::create(builder, first->getLoc(), value.getType(), argument,
                                            builder.getStringAttr("backward"));
    argument.replaceAllUsesExcept(back, back);
    builder.setInsertionPointAfter(op);
    auto away = offload::ToHostOp::create(builder, op->getLoc(), value.getType(), value);
    loop.getSavedMutable()[number].set(away);
  }
};

} // namespace
