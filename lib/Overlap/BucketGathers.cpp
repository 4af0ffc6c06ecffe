//===- BucketGathers.cpp - one gather for many parameters -------------------------------------===//
//
// See Buckets.h.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
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
    // Of what updates make, and of sums; zero-prefetch-parameters has already placed gathers that
    // precede a use.
    auto ofResults = [](Operation *op) {
      if (!isa<zero::GatherOp>(op))
        return false;
      while (isa_and_nonnull<zero::GatherOp>(op)) // over one axis after another
        op = op->getOperand(0).getDefiningOp();
      return isa_and_nonnull<train::OptimizerInterface, par::AllReduceOp>(op);
    };
    FailureOr<overlap::Buckets::Joined> made =
        overlap::Buckets::joinAll(getOperation(), ofResults, bytes);
    if (failed(made))
      return signalPassFailure();
    buckets += made->count;
  }
};

} // namespace
