//===- LossScale.cpp - kernels of the dialect amp ---------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "lib/Interp/Execution.h"
#include "runtime/include/partita_rt/loss_scaler.h"
#include "runtime/include/partita_rt/scale_text.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static LogicalResult unscale(amp::UnscaleOp, Inputs in, Outputs out) {
  out[0].setNumber(0, in[0]->number(0) / in[1]->number(0));
  return success();
}

static LogicalResult allFinite(amp::AllFiniteOp, Inputs in, Outputs out) {
  out[0].setNumber(0, std::isfinite(in[0]->number(0)) ? 1 : 0);
  return success();
}

static LogicalResult updateScale(amp::UpdateScaleOp op, Inputs in, Outputs out) {
  auto count = [&](unsigned i) { return static_cast<int64_t>(in[i]->number(0)); };
  partita_rt::LossScalerOptions options;
  options.dynamic = op.getDynamic();
  options.window = op.getWindow();
  options.hysteresis = op.getHysteresis();
  options.consecutive = op.getConsecutive();
  options.minimum = op.getMinimum().convertToDouble();
  bool overflow = in[5]->number(0) == 0;
  partita_rt::LossScalerResult next = partita_rt::updateLossScale(
      {in[0]->number(0), count(1), count(2), count(3)}, options, overflow);
  if (next.stop)
    return op.emitError() << "an overflow at the smallest loss scale, "
                          << partita_rt::scaleText(options.minimum);
  double results[] = {next.state.scale, double(next.state.step), double(next.state.lastOverflow),
                      double(next.state.hysteresis), double(count(4) + (overflow ? 1 : 0))};
  for (auto [result, number] : llvm::zip(out, results))
    result.setNumber(0, number);
  return success();
}

void partita::interp::addLossScaleKernels(KernelTable &table) {
  table.add<amp::UnscaleOp>(unscale);
  table.add<amp::AllFiniteOp>(allFinite);
  table.add<amp::UpdateScaleOp>(updateScale);
}
