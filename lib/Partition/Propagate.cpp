//===- Propagate.cpp - propagates splits along letters to a fixpoint --------------------------===//
//
// Runs the algorithm of Propagation.h and writes the result on the ops.
//
//===----------------------------------------------------------------------------------------------===//

#include "lib/Partition/Propagation.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONPROPAGATEPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionPropagate : partita::impl::PartitionPropagatePassBase<PartitionPropagate> {
  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    Propagation propagation(getOperation(), par::MeshAttr::of(getOperation()));
    if (failed(propagation.run()))
      return signalPassFailure();
    propagation.annotate();
    getOperation().walk([&](Operation *op) { split += op->hasAttr(kResultSplits); });
  }
};

} // namespace
