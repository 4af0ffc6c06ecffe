//===- BucketAllReduces.cpp - one reduction for many gradients --------------------------------===//
//
// All-reduces and reduce-scatters; Buckets.h says how.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Overlap/Buckets.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_BUCKETALLREDUCESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct BucketAllReduces : partita::impl::BucketAllReducesPassBase<BucketAllReduces> {
  using BucketAllReducesPassBase::BucketAllReducesPassBase;

  void runOnOperation() override {
    auto reduces = [](Operation *op) {
      auto collective = dyn_cast<CollectiveInterface>(op);
      return collective && collective.getRow().reduces && isa<StartableInterface>(op);
    };
    SmallVector<zero::ReduceScatterOp>
        scatters; // first: what is moved may be what a walk visits next
    getOperation().walk([&](zero::ReduceScatterOp op) { scatters.push_back(op); });
    llvm::for_each(scatters, sinkSum);
    FailureOr<int64_t> made = overlap::Buckets::joinAll(getOperation(), reduces, bytes);
    if (failed(made))
      return signalPassFailure();
    buckets += *made;
  }

private:
  /// A shard that is only added to those of other micro-batches is no reason to close a bucket: the
  /// sum moves down to where it is needed.
  static void sinkSum(zero::ReduceScatterOp op) {
    for (Operation *sum : op->getUsers()) {
      Operation *first = nullptr;
      if (!isa<tx::AddOp>(sum) || sum->getBlock() != op->getBlock())
        continue;
      for (Operation *user : sum->getUsers())
        if (Operation *use = sum->getBlock()->findAncestorOpInBlock(*user);
            !first || use->isBeforeInBlock(first))
          first = use;
      if (first)
        sum->moveBefore(first);
    }
  }
};

} // namespace
