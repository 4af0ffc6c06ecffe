//===- BucketGathers.cpp - one gather for many parameters -------------------------------------===//
//
// See Buckets.h.
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
    // zero-prefetch-parameters has already placed gathers that precede a use.
    auto ofUpdates = [](Operation *op) {
      return isa<zero::GatherOp>(op) &&
             isa_and_nonnull<train::OptimizerInterface>(op->getOperand(0).getDefiningOp());
    };
    FailureOr<overlap::Buckets::Joined> made =
        overlap::Buckets::joinAll(getOperation(), ofUpdates, bytes);
    if (failed(made))
      return signalPassFailure();
    buckets += made->count;
  }
};

} // namespace
