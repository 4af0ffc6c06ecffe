//===- FuseBias.cpp - moves a bias into the matmul's kernel -----------------------------------===//

#include "lib/Fuse/Matmuls.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_FUSEBIASPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct FuseBias : partita::impl::FuseBiasPassBase<FuseBias> {
  void runOnOperation() override {
    getOperation().walk([&](tx::AddOp add) {
      BiasedMatmul biased = BiasedMatmul::of(add);
      if (!biased.matmul)
        return;
      OpBuilder builder(add);
      Location loc = builder.getFusedLoc({biased.matmul->getLoc(), add.getLoc()});
      add.getResult().replaceAllUsesWith(biased.create(builder, loc, add.getType()));
      eraseUnused({add.getA().getDefiningOp(), add.getB().getDefiningOp(), add});
      ++fused;
    });
  }
};

} // namespace
