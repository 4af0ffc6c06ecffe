//===- OffloadFetchAhead.cpp - decides when values return from the host -----------------------===//
//
// Works like zero-prefetch-parameters: copies to the device are grouped in the order of their first
// uses, one group per layer and direction and one per update. A group starts right before its first
// use and moves up, past the first uses of previous groups, while the bytes fetched and not yet
// used stay within the bound. One group ahead is always allowed.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Offload/Passes.h"
#include "partita/Support/StableSort.h"

namespace partita {
#define GEN_PASS_DEF_OFFLOADFETCHAHEADPASS
#include "partita/Offload/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using offload::ToDeviceOp;

namespace {

/// Copies that belong together.
struct Group {
  SmallVector<ToDeviceOp> members;
  Operation *firstUse = nullptr;
  int64_t bytes = 0;
};

struct OffloadFetchAhead : partita::impl::OffloadFetchAheadPassBase<OffloadFetchAhead> {
  using OffloadFetchAheadPassBase::OffloadFetchAheadPassBase;

  void runOnOperation() override {
    if (groupBytes < 0 || aheadBytes < 0) {
      getOperation().emitError() << "group-bytes=" << groupBytes.getValue()
                                 << " ahead-bytes=" << aheadBytes.getValue()
                                 << ", expected none below 0";
      return signalPassFailure();
    }
    getOperation().walk([&](Block *block) { place(groupsOf(block)); });
  }

private:
  /// Returns true if two first uses belong to one layer and direction. Updates belong to no layer:
  /// the operands of one are fetched during the previous one. Values that are gathered together
  /// already form a group.
  static bool belongTogether(Operation *a, Operation *b) {
    if (a == b)
      return true;
    if (isa<train::OptimizerInterface, zero::ShardOp, zero::GatherOp>(b))
      return false;
    return train::LayerAttr::of(a) == train::LayerAttr::of(b) &&
           provenance::isBackward(a) == provenance::isBackward(b);
  }

  std::vector<Group> groupsOf(Block *block) {
    SmallVector<std::pair<Operation *, ToDeviceOp>> copies;
    for (auto op : block->getOps<ToDeviceOp>())
      if (Operation *use = analysis::firstUse(op))
        copies.push_back({use, op});
    stableSort(copies, [](auto a, auto b) {
      return a.first != b.first && a.first->isBeforeInBlock(b.first);
    });
    std::vector<Group> groups;
    for (auto [use, op] : copies) {
      int64_t bytes = bytesOf(op.getType());
      if (groups.empty() || !belongTogether(groups.back().firstUse, use) ||
          groups.back().bytes + bytes > groupBytes)
        groups.push_back({{}, use, 0});
      groups.back().members.push_back(op);
      groups.back().bytes += bytes;
    }
    return groups;
  }

  void place(const std::vector<Group> &groups) {
    for (auto [i, group] : llvm::enumerate(groups)) {
      size_t since = analysis::aheadOf(groups, i, aheadBytes);
      ahead += since < i ? group.members.size() : 0;
      Operation *moment = groups[since].firstUse;
      for (ToDeviceOp op : group.members)
        bringBefore(op, moment);
    }
  }

  /// Moves a fetch up. A value that is on the host from the start comes from a read, which moves
  /// up, too. A value that is copied to the host in this block cannot return before that.
  static void bringBefore(ToDeviceOp op, Operation *before) {
    if (op->isBeforeInBlock(before)) // not before its use
      return op->moveBefore(before);
    Operation *definer = op.getValue().getDefiningOp();
    if (definer && definer->getBlock() == op->getBlock() && before->isBeforeInBlock(definer)) {
      if (!isa<train::ReadOp>(definer))
        return op->moveAfter(definer);
      definer->moveBefore(before);
    }
    op->moveBefore(before);
  }
};

} // namespace
