//===- RaiseRmsNorm.cpp - root-mean-square normalization becomes tx.rms_norm ----------------- ===//
//
// The search is RowNorm.h's, with a weight. After layer normalization, which subtracts a mean
// first: what is left of a layer norm that was not recognized may be the RMSNorm of a difference.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "lib/Raise/RowNorm.h"
#include "partita/Raise/Passes.h"

namespace partita {
#define GEN_PASS_DEF_RAISERMSNORM
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

Value buildRmsNorm(OpBuilder &builder, Location loc, Value x, Value weight, Value, double epsilon) {
  return tx::RmsNormOp::create(builder, loc, ValueRange{x, weight},
                               builder.getNamedAttr("epsilon", builder.getF64FloatAttr(epsilon)))
      .getY();
}

struct RaiseRmsNormPass : partita::impl::RaiseRmsNormBase<RaiseRmsNormPass> {
  using Base::Base;
  void runOnOperation() override {
    Report report("rms_norm", remarks, numRaised, numMissed);
    RowNorm norm{tx::RmsNormOp::getOperationName(), /*hasBias=*/false, buildRmsNorm};
    RowNormRaiser(norm, report, numChecks).run(getOperation());
  }
};

} // namespace
