//===- MarkLayers.cpp - mark-layers -----------------------------------------------------------===//
//
// While the program is the forward one alone and whole: from then on the layers are in the
// locations, where no pass can lose them.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Layers.h"
#include "partita/Layers/Passes.h"

namespace partita {
#define GEN_PASS_DEF_MARKLAYERSPASS
#include "partita/Layers/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::LayerAttr;

namespace {

struct MarkLayers : partita::impl::MarkLayersPassBase<MarkLayers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      mark(function);
  }

private:
  /// What stands beside the loop over micro-batches is done once per step, for no layer.
  void mark(func::FuncOp function) {
    analysis::Layers layers(function);
    bool loops = !function.getOps<train::AccumulateOp>().empty();
    function.walk([&](Operation *op) {
      if (op == function || LayerAttr::of(op->getLoc()))
        return;
      bool inside = op->getParentOfType<train::AccumulateOp>() != nullptr;
      int64_t number = loops && !inside ? LayerAttr::kOnce : layers.layerOf(op);
      marked += number >= 0;
      auto layer = LayerAttr::get(&getContext(), number, layers.count());
      op->setLoc(FusedLoc::get({op->getLoc()}, layer, &getContext()));
    });
  }
};

} // namespace
