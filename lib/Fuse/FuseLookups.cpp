//===- FuseLookups.cpp - fuses an addition into a lookup, or into its gradient -----------------===//
//
// Rows of tokens plus positions are one kernel, which writes their sum and never the rows alone. The
// gradient of a table that another op reads too (a classifier with the same weight) is added to that
// op's gradient row by row: only rows that ids name are read and written, and no table of zeros is
// made for them.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSELOOKUPSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns true if a loop of `add` and of what follows, without the lookup, moves no more bytes: nothing
/// else reads the sum.
bool belongsToLoop(tx::AddOp add) {
  return llvm::all_of(usersOf(add.getResult()), tx::isElementwise);
}

/// Fuses the addition into the op that makes `value`, if that is a lookup or a gradient of one.
bool fuse(tx::AddOp add, Value value, Value addend) {
  Operation *lookup = value.getDefiningOp();
  bool isGradient = isa_and_nonnull<tx::EmbeddingGradOp>(lookup);
  if ((!isGradient && !isa_and_nonnull<tx::EmbeddingOp>(lookup)) || !value.hasOneUse() ||
      lookup->getBlock() != add->getBlock() || addend.getType() != value.getType() ||
      value.getType() != add.getType() || llvm::is_contained(lookup->getOperands(), addend) ||
      !isa<FloatType>(getElementTypeOrSelf(value.getType())))
    return false;
  if (!isGradient && belongsToLoop(add))
    return false;
  OpBuilder builder(add);
  auto fused = fuseLookup(builder, builder.getFusedLoc({lookup->getLoc(), add.getLoc()}),
                          {lookup, add}, add->getResults());
  add.getResult().replaceAllUsesWith(fused.getOutputs().front());
  add.erase();
  lookup->erase();
  return true;
}

struct FuseLookups : partita::impl::FuseLookupsPassBase<FuseLookups> {
  void runOnOperation() override {
    SmallVector<tx::AddOp> adds;
    getOperation().walk([&](tx::AddOp add) {
      if (!tx::isFusedKernel(add->getParentOp()))
        adds.push_back(add);
    });
    for (tx::AddOp add : adds)
      fused += fuse(add, add.getA(), add.getB()) || fuse(add, add.getB(), add.getA());
  }
};

} // namespace
