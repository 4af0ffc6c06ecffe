//===- PadClassifier.cpp - pad-classifier -------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Target.h"
#include "dialects/Train/Train.h"
#include "partita/Memory/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PADCLASSIFIERPASS
#include "partita/Memory/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using rt::RtDialect;

namespace {

struct PadClassifier : partita::impl::PadClassifierPassBase<PadClassifier> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    module.walk([&](Operation *op) {
      if (!isa<tx::ClassifierLossOp, tx::ClassifierLossGradOp>(op))
        return;
      if (auto read = op->getOperand(1).getDefiningOp<train::ReadOp>())
        pad(module.lookupSymbol<train::ParameterOp>(read.getSymbol()), read.getType());
    });
  }

private:
  void pad(train::ParameterOp parameter, Type read) {
    auto type = cast<RankedTensorType>(read);
    // Several stages have it at the same offset, with nothing between it and the next one.
    if (!parameter || parameter->hasAttr(RtDialect::kPaddedRows) || parameter.getType() != type ||
        parameter->hasAttr(pipe::PipeDialect::kOffset) || offload::livesOnHost(parameter))
      return;
    int64_t rows = type.getDimSize(0);
    int64_t wanted = rt::Target::of(parameter).padClassifier(rows, type.getElementType());
    if (wanted == rows)
      return;
    parameter->setAttr(RtDialect::kPaddedRows, Builder(&getContext()).getI64IntegerAttr(wanted));
    ++padded;
  }
};

} // namespace
