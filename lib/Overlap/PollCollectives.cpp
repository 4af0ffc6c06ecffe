//===- PollCollectives.cpp - progress of collectives between start and wait -------------------===//
//
// Works block by block and axis by axis. First measures the stretches in which enough is in flight:
// how much is computed in them, by how many ops. Then places a poll after each op that completes
// another share of that work. Polls change neither what is computed nor the order of collectives. A
// collective started in a pass's last slot is in flight in the rest of the pass, where only that
// slot polls it, in passes that run later, and after the loop until its wait.
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
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
using train::AccumulateOp;

namespace {

/// An op that computes while collectives are in flight.
struct Computation {
  Operation *op;
  int64_t cost;
  bool inLastSlot; ///< none is in flight in the pass's other slots
  bool besideShift;
};

/// The computation in a block while collectives over one axis are in flight.
struct Overlapped {
  StringAttr axis;
  SmallVector<Computation> ops;
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
    auto begin = [&](CollectiveInterface start) {
      underWay[start.getAxisAttr()].push_back(start);
      byAxis[start.getAxisAttr()].bytes += start.getWireBytes();
    };
    llvm::for_each(begunInFrontOf(block), begin);
    for (Operation &op : block) {
      if (auto loop = dyn_cast<AccumulateOp>(op); loop && loop.getOrder())
        for (Region &region : loop->getRegions())
          llvm::for_each(lastStartsOf(region), begin);
      auto start = dyn_cast<CollectiveInterface>(op);
      if (start && isWorthPolls(start)) {
        begin(start);
      } else if (CollectiveInterface begun = completedBy(&op)) {
        // Collectives of one communicator complete in the order of their starts, so all that
        // started before this one have completed. Gathers ahead of their use have their own
        // communicator and stream.
        llvm::erase_if(underWay[begun.getAxisAttr()], [&](CollectiveInterface start) {
          bool sharesStream = cast<AsyncStartInterface>(start.getOperation()).getStream() ==
                              cast<AsyncStartInterface>(begun.getOperation()).getStream();
          bool isEarlier = start->getBlock() == begun->getBlock() && start->isBeforeInBlock(begun);
          return start == begun || (sharesStream && isEarlier);
        });
      }
      int64_t cost = analysis::workOf(&op).cost();
      for (auto &[axis, starts] : underWay)
        if (!starts.empty() && cost > 0) {
          auto startsInLastSlot = [&](CollectiveInterface start) {
            return start->getBlock() == &block && start->hasAttr(train::TrainDialect::kLast);
          };
          byAxis[axis].ops.push_back(
              {&op, cost, llvm::all_of(starts, startsInLastSlot), llvm::any_of(starts, isShift)});
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

  bool isWorthPolls(CollectiveInterface op) const {
    return op.isStart() && op.getWireBytes() >= leastBytes;
  }

  static bool isShift(CollectiveInterface start) {
    return start.getCollectiveKind() == CollectiveKind::Shift;
  }

  SmallVector<CollectiveInterface> lastStartsOf(Region &region) const {
    SmallVector<CollectiveInterface> starts;
    for (auto start : region.getOps<CollectiveInterface>())
      if (start->hasAttr(train::TrainDialect::kLast) && isWorthPolls(start))
        starts.push_back(start);
    return starts;
  }

  /// Returns what is started in last slots of passes that end before this block's pass does.
  SmallVector<CollectiveInterface> begunInFrontOf(Block &block) const {
    SmallVector<CollectiveInterface> starts;
    auto loop = dyn_cast<AccumulateOp>(block.getParentOp());
    if (!loop || !loop.getOrder())
      return starts;
    for (unsigned pass : loop.getPassesByEnd()) {
      if (&loop->getRegion(pass).front() == &block)
        break;
      llvm::append_range(starts, lastStartsOf(loop->getRegion(pass)));
    }
    return starts;
  }

  /// Returns the start that the op waits for, or null.
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
    double apart = 0; // polls, if all were an interval apart
    int64_t since = 0;
    for (auto [op, cost, inLastSlot, besideShift] : overlapped.ops) {
      since += cost;
      // A poll right before a wait gains nothing. Attention raises the average cost of an op: beside a shift, polls that far
      // apart would come too late.
      if (since < (besideShift ? flops.getValue() : interval) || completedBy(op->getNextNode()))
        continue;
      apart += std::min(1.0, double(since) / double(interval));
      since = 0;
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      placed.push_back(par::PollOp::create(builder, op->getLoc(), overlapped.axis,
                                           builder.getI64IntegerAttr(0)));
      if (inLastSlot)
        placed.back()->setAttr(train::TrainDialect::kLast, builder.getUnitAttr());
    }
    // Together, the polls may do all the work in flight; the wait is left with the last bucket. A
    // transport touches each byte of a collective up to three times (to fill, reduce and read a
    // segment: runtime/cpu/groups/segmented_group.h); the fourth makes up for polls that find nothing to do,
    // because another rank is not as far. Dense polls beside a shift have no less each: most find nothing new. Rounded up to a
    // size that is worth a poll.
    constexpr int64_t kTouches = 4, kStep = 256 << 10;
    int64_t share =
        placed.empty() ? 0 : int64_t(double(kTouches * overlapped.bytes) / std::max(1.0, apart));
    int64_t bytes = llvm::alignTo(std::max<int64_t>(share, 1), kStep);
    for (par::PollOp poll : placed)
      poll.setBytes(bytes);
    polls += placed.size();
  }
};

} // namespace
