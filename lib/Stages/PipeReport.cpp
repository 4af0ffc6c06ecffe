//===- PipeReport.cpp - pipe-report -------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Stages/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PIPEREPORTPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PipeReport : partita::impl::PipeReportPassBase<PipeReport> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(pipe::PipeDialect::kStages))
      return;
    SmallVector<int64_t> positions = pipe::allOf(*pipe::positionsOf(getOperation()));
    for (auto entry : {train::EntryPoint::TrainStep, train::EntryPoint::EvalStep})
      if (auto function = train::lookup<func::FuncOp>(getOperation(), entry))
        if (failed(complete(function, positions)))
          return signalPassFailure();
  }

private:
  LogicalResult complete(func::FuncOp function, ArrayRef<int64_t> positions) {
    FailureOr<StageMap> map = StageMap::of(function);
    if (failed(map))
      return failure();
    Holders all = Holders::on(positions);
    Operation *end = function.getBody().front().getTerminator();
    OpBuilder builder(end);
    for (OpOperand &result : end->getOpOperands()) {
      if (all.isWithin(map->of(result.get())))
        continue;
      Value value = result.get();
      auto sum = pipe::SumOp::create(builder, pipe::withRole(value.getLoc(), par::Role::Report),
                                     value.getType(), value, positions,
                                     builder.getStringAttr("values that a step reports"));
      result.set(sum.getResult());
      ++sums;
    }
    return success();
  }
};

} // namespace
