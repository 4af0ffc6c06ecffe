//===- StartTransfers.cpp - splits copies into start and wait ---------------------------------===//

#include "dialects/Interfaces/Start.h"
#include "dialects/Offload/Offload.h"
#include "partita/Offload/Passes.h"

namespace partita {
#define GEN_PASS_DEF_STARTTRANSFERSPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::offload;

namespace {

struct StartTransfers : partita::impl::StartTransfersPassBase<StartTransfers> {
  void runOnOperation() override {
    SmallVector<Operation *> copies;
    getOperation().walk([&](Operation *op) {
      if (isa<CopyInterface>(op) && isa<StartableInterface>(op))
        copies.push_back(op);
    });
    // From last to first, so that all copies after the current one are starts already.
    for (Operation *op : llvm::reverse(copies))
      split(op);
  }

private:
  /// Returns the second copy to the host after this one, which must be complete when that one
  /// starts: at most one may be in flight when another one starts.
  static Operation *secondBehind(Operation *op) {
    int behind = 0;
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (directionOf(next) == Direction::ToHost && ++behind == 2)
        return next;
    return nullptr;
  }

  static Operation *lastMoment(Operation *op) {
    Block *block = op->getBlock();
    Operation *moment = block->getTerminator();
    for (Operation *user : op->getUsers())
      if (Operation *use = block->findAncestorOpInBlock(*user); use && use->isBeforeInBlock(moment))
        moment = use;
    if (directionOf(op) == Direction::ToHost)
      if (Operation *second = secondBehind(op); second && second->isBeforeInBlock(moment))
        moment = second;
    return moment;
  }

  void split(Operation *op) {
    Operation *moment = lastMoment(op);
    if (op->getNextNode() == moment) // splitting gains nothing
      return;
    ++started;
    OpBuilder builder(op);
    auto startable = cast<StartableInterface>(op);
    AsyncStartInterface start = buildStartOf(startable, builder);
    builder.setInsertionPoint(moment);
    op->replaceAllUsesWith(startable.buildWait(builder, start));
    op->erase();
  }
};

} // namespace
