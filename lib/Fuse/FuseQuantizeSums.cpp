//===- FuseQuantizeSums.cpp - the kernel that quantizes a cotangent sums its rows -------------===//
//
// A bias's gradient is a sum over the rows of the cotangent that the matmuls of its layer read in 8
// bits. The kernel that quantizes and transposes the cotangent has it in registers, so that nothing
// reads it for the sums; a reduction of the same value in the same block is replaced by it.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEQUANTIZESUMSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Does an op read the sums before `op` would compute them?
bool isReadBefore(tx::ReduceSumOp sums, Operation *op) {
  return llvm::any_of(sums->getUsers(), [&](Operation *user) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    return !here || here->isBeforeInBlock(op);
  });
}

bool fuse(amp::QuantizeOp quantize) {
  if (!quantize.getColumns() || quantize.getSums()) // only this kernel sums
    return false;
  tx::ReduceSumOp sums = rowSumsOf(quantize.getX(), quantize->getBlock());
  if (!sums || !sameElements({sums.getResult(), quantize.getX()}))
    return false;
  if (isReadBefore(sums, quantize)) { // at the sums then, if that is possible
    if (!llvm::all_of(quantize->getOperands(), [&](Value value) { return isBefore(value, sums); }))
      return false;
    quantize->moveBefore(sums);
  }
  Location loc = OpBuilder(quantize).getFusedLoc({quantize.getLoc(), sums.getLoc()});
  Value rows = quantize.getRows();
  amp::QuantizeOp made = quantize.withResults(rows ? rows.getType() : Type(),
                                              quantize.getColumns().getType(), sums.getType());
  made->setLoc(loc);
  sums.getResult().replaceAllUsesWith(made.getSums());
  sums.erase();
  return true;
}

struct FuseQuantizeSums : partita::impl::FuseQuantizeSumsPassBase<FuseQuantizeSums> {
  void runOnOperation() override {
    SmallVector<amp::QuantizeOp> ops;
    getOperation().walk([&](amp::QuantizeOp op) { ops.push_back(op); });
    for (amp::QuantizeOp op : ops)
      fused += fuse(op);
  }
};

} // namespace
