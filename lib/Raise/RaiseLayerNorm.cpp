//===- RaiseLayerNorm.cpp - layer normalization in any spelling becomes tx.layer_norm ---------===//
//
// The search is RowNorm.h's, with a weight and a bias.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "lib/Raise/RowNorm.h"
#include "partita/Raise/Passes.h"

namespace partita {
#define GEN_PASS_DEF_RAISELAYERNORM
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

Value buildLayerNorm(OpBuilder &builder, Location loc, Value x, Value weight, Value bias,
                     double epsilon) {
  return tx::LayerNormOp::create(builder, loc, ValueRange{x, weight, bias},
                                 builder.getNamedAttr("epsilon", builder.getF64FloatAttr(epsilon)))
      .getY();
}

struct RaiseLayerNormPass : partita::impl::RaiseLayerNormBase<RaiseLayerNormPass> {
  using Base::Base;
  void runOnOperation() override {
    Report report("layer_norm", remarks, numRaised, numMissed);
    RowNorm norm{tx::LayerNormOp::getOperationName(), /*hasBias=*/true, buildLayerNorm};
    RowNormRaiser(norm, report, numChecks).run(getOperation());
  }
};

} // namespace
