//===- BucketGathers.cpp - one gather for many parameters -------------------------------------===//
//
// Buckets.h says how.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Overlap/Buckets.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_BUCKETGATHERSPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct BucketGathers : partita::impl::BucketGathersPassBase<BucketGathers> {
  using BucketGathersPassBase::BucketGathersPassBase;

  void runOnOperation() override {
    if (bytes < 0) {
      getOperation().emitError() << "bucket of " << bytes.getValue()
                                 << " bytes, expected at least 1, or 0 for a share of all";
      return signalPassFailure();
    }
    // Parameters that are gathered for their use have been placed by it (zero-prefetch-parameters).
    auto ofUpdates = [](Operation *op) {
      return isa<zero::GatherOp>(op) &&
             isa_and_nonnull<train::AdamWOp, train::SgdOp>(op->getOperand(0).getDefiningOp());
    };
    overlap::Buckets all(ofUpdates, bytes);
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      buckets += all.run(block);
  }
};

} // namespace
