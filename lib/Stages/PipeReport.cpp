//===- PipeReport.cpp - pipe-report -------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Stages/Where.h"
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
    auto count = getOperation()->getAttrOfType<IntegerAttr>(pipe::PipeDialect::kStages);
    if (!count)
      return;
    auto stages = llvm::to_vector(llvm::seq<int64_t>(0, count.getInt()));
    for (auto entry : {train::EntryPoint::TrainStep, train::EntryPoint::EvalStep})
      if (auto function = train::lookup<func::FuncOp>(getOperation(), entry))
        if (failed(complete(function, stages)))
          return signalPassFailure();
  }

private:
  LogicalResult complete(func::FuncOp function, ArrayRef<int64_t> stages) {
    FailureOr<StageMap> map = StageMap::of(function);
    if (failed(map))
      return failure();
    uint64_t all = Where::on(stages).stages;
    Operation *end = function.getBody().front().getTerminator();
    OpBuilder builder(end);
    for (OpOperand &result : end->getOpOperands()) {
      if ((map->of(result.get()).stages & all) == all)
        continue;
      Value value = result.get();
      auto sum = pipe::SumOp::create(builder, pipe::withRole(value.getLoc(), "report"),
                                     value.getType(), value, stages,
                                     builder.getStringAttr("what a step reports"));
      result.set(sum.getResult());
      ++sums;
    }
    return success();
  }
};

} // namespace
