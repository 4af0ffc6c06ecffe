//===- FuseBias.cpp - moves a bias into the matmul's kernel -----------------------------------===//

#include "lib/Fuse/Products.h"
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
      BiasedProduct biased = BiasedProduct::of(add);
      if (!biased.product)
        return;
      OpBuilder builder(add);
      Location loc = builder.getFusedLoc({biased.product->getLoc(), add.getLoc()});
      add.getResult().replaceAllUsesWith(biased.create(builder, loc, add.getType()));
      eraseUnused({add.getA().getDefiningOp(), add.getB().getDefiningOp(), add});
      ++fused;
    });
  }
};

} // namespace
