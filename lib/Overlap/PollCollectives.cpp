//===- PollCollectives.cpp - who works on collectives between start and wait ------------------===//
//
// Block by block, axis by axis. First the stretches in which enough is under way are measured: what
// is computed in them, by how many ops. Then a poll follows each op that completes another share of
// that work. Polls do not change what is computed, nor the order of collectives.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "partita/Analysis/Work.h"
#include "partita/Overlap/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace partita {
#define GEN_PASS_DEF_POLLCOLLECTIVESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// What happens in a block while collectives over one axis are under way.
struct Overlapped {
  StringAttr axis;
  SmallVector<std::pair<Operation *, int64_t>> ops; ///< that compute, with their cost
  int64_t cost = 0;
  int64_t bytes = 0; ///< of the collectives
};

struct PollCollectives : partita::impl::PollCollectivesPassBase<PollCollectives> {
  using PollCollectivesPassBase::PollCollectivesPassBase;

  void runOnOperation() override {
    if (every < 1 || flops < 0 || leastBytes < 0) {
      getOperation().emitError() << "every=" << every.getValue() << " flops=" << flops.getValue()
                                 << " least-bytes=" << leastBytes.getValue()
                                 << ", expected at least 1, 0 and 0";
      return signalPassFailure();
    }
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      for (Overlapped &overlapped : measure(*block))
        place(overlapped);
  }

private:
  SmallVector<Overlapped> measure(Block &block) {
    llvm::MapVector<StringAttr, Overlapped> byAxis;
    llvm::MapVector<StringAttr, SmallVector<CollectiveInterface>> underWay;
    for (Operation &op : block) {
      auto start = dyn_cast<CollectiveInterface>(op);
      if (start && start.isStart() && start.getWireBytes() >= leastBytes) {
        underWay[start.getAxisAttr()].push_back(start);
        byAxis[start.getAxisAttr()].bytes += start.getWireBytes();
      } else if (CollectiveInterface begun = completedBy(&op)) {
        // Those of one communicator complete in the order of their starts: with this one, all that
        // began before it. Gathers that begin ahead have one of their own (Rank::gathers).
        llvm::erase_if(underWay[begun.getAxisAttr()], [&](CollectiveInterface start) {
          bool sharesStream = cast<AsyncStartInterface>(start.getOperation()).getStream() ==
                              cast<AsyncStartInterface>(begun.getOperation()).getStream();
          return start == begun || (sharesStream && start->isBeforeInBlock(begun));
        });
      }
      int64_t cost = analysis::workOf(&op).cost();
      for (auto &[axis, starts] : underWay)
        if (!starts.empty() && cost > 0) {
          byAxis[axis].ops.push_back({&op, cost});
          byAxis[axis].cost += cost;
        }
    }
    SmallVector<Overlapped> result;
    for (auto &[axis, overlapped] : byAxis) {
      overlapped.axis = axis;
      result.push_back(std::move(overlapped));
    }
    return result;
  }

  /// The start that the op waits for; null where it waits for none.
  static CollectiveInterface completedBy(Operation *op) {
    auto wait = dyn_cast_or_null<AsyncWaitInterface>(op);
    return wait ? dyn_cast_or_null<CollectiveInterface>(wait.getStart().getOperation())
                : CollectiveInterface();
  }

  void place(Overlapped &overlapped) {
    if (overlapped.ops.empty())
      return;
    int64_t mean = overlapped.cost / static_cast<int64_t>(overlapped.ops.size());
    int64_t interval = std::max<int64_t>({1, flops, every * mean});
    SmallVector<par::PollOp> placed;
    int64_t since = 0;
    for (auto [op, cost] : overlapped.ops) {
      since += cost;
      // Right before a wait there is nothing to gain.
      if (since < interval || completedBy(op->getNextNode()))
        continue;
      since = 0;
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      placed.push_back(par::PollOp::create(builder, op->getLoc(), overlapped.axis,
                                           builder.getI64IntegerAttr(0)));
    }
    // The polls together could do all that is under way; the last bucket is for the wait.
    int64_t passes = 4, step = 1 << 18;
    int64_t share = placed.empty() ? 0 : passes * overlapped.bytes / placed.size();
    int64_t bytes = llvm::alignTo(std::max<int64_t>(share, 1), step);
    for (par::PollOp poll : placed)
      poll.setBytes(bytes);
    polls += placed.size();
  }
};

} // namespace
