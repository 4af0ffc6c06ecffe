//===- ExpandConjugates.cpp - keeps only the forward halves of conjugates ---------------------===//

#include "dialects/Par/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Autodiff/Passes.h"

namespace partita {
#define GEN_PASS_DEF_EXPANDCONJUGATESPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

void dropReplicated(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (type && type.getEncoding())
    value.setType(par::withLayout(type, par::Layout::of(type).valueOnly()));
}

/// Returns what the collective completes, for `partita explain`: the name of its location.
StringRef reasonOf(Location loc) {
  if (auto name = loc->findInstanceOf<NameLoc>())
    return name.getName().getValue();
  return "partial sum";
}

struct ExpandConjugates : partita::impl::ExpandConjugatesPassBase<ExpandConjugates> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(par::ParDialect::kNoCotangents)) {
        function.emitError() << "is not differentiated yet: its conjugates are still needed";
        return signalPassFailure();
      }
      function.walk([&](Operation *op) {
        for (Region &region : op->getRegions())
          for (Block &block : region)
            llvm::for_each(block.getArguments(), dropReplicated);
        llvm::for_each(op->getResults(), dropReplicated);
      });
      function.walk([&](par::FOp f) {
        ++dropped;
        f.getResult().replaceAllUsesWith(f.getValue());
        f.erase();
      });
      function.walk([&](par::MaxOp g) {
        ++reduced;
        OpBuilder builder(g);
        Value reduced = par::AllReduceMaxOp::create(builder, g.getLoc(), g.getResult().getType(),
                                                    g.getValue(), g.getAxisAttr(),
                                                    builder.getStringAttr(reasonOf(g.getLoc())));
        g.getResult().replaceAllUsesWith(reduced);
        g.erase();
      });
      function.walk([&](par::GOp g) {
        ++reduced;
        OpBuilder builder(g);
        auto reduce =
            par::AllReduceOp::create(builder, g.getLoc(), g.getResult().getType(), g.getValue(),
                                     g.getAxisAttr(), builder.getStringAttr(reasonOf(g.getLoc())));
        g.getResult().replaceAllUsesWith(reduce.getResult(0));
        g.erase();
      });
    }
  }
};

} // namespace
