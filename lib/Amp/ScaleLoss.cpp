//===- ScaleLoss.cpp - adds a loss scale and its states ---------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Train/States.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Amp/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SCALELOSSPASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using amp::AmpDialect;

namespace {

struct ScaleLoss : partita::impl::ScaleLossPassBase<ScaleLoss> {
  using ScaleLossPassBase::ScaleLossPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkOptions()))
      return signalPassFailure();
    if (scale.empty())
      return warnOfFloat16(module);
    double fixed;
    if (StringRef(scale).getAsDouble(fixed) || !(fixed >= 0) || !std::isfinite(fixed)) {
      module.emitError() << "scale: '" << scale
                         << "' is neither a number above 0 nor 0, for a dynamic one";
      return signalPassFailure();
    }
    double first = fixed > 0 ? fixed : std::ldexp(1.0, static_cast<int>(power));
    if (!(first >= minimum || fixed > 0) || !(first <= 0x1p127)) {
      module.emitError() << "the first loss scale is " << first
                         << ", expected at least minimum=" << minimum.getValue()
                         << " and at most 2^127";
      return signalPassFailure();
    }
    if (failed(train::checkStateNames(module,
                                      {AmpDialect::kScale, AmpDialect::kSteps,
                                       AmpDialect::kLastOverflow, AmpDialect::kHysteresis,
                                       AmpDialect::kSkipped},
                                      "the loss scale", "without --loss-scale")))
      return signalPassFailure();
    SmallVector<train::MinimizeOp> losses;
    module.walk([&](train::MinimizeOp minimize) { losses.push_back(minimize); });
    if (losses.empty()) {
      module.emitError() << "there is no loss to scale: the program does not train";
      return signalPassFailure();
    }
    Builder b(&getContext());
    for (train::MinimizeOp minimize : losses)
      minimize->setAttr(
          AmpDialect::kScaled,
          b.getDictionaryAttr({b.getNamedAttr("dynamic", b.getBoolAttr(fixed == 0)),
                               b.getNamedAttr("window", b.getI64IntegerAttr(window)),
                               b.getNamedAttr("hysteresis", b.getI64IntegerAttr(hysteresis)),
                               b.getNamedAttr("consecutive", b.getBoolAttr(consecutive)),
                               b.getNamedAttr("minimum", b.getF64FloatAttr(minimum))}));
    scaled += losses.size();
    makeScalar(AmpDialect::kScale, b.getF32Type(), first);
    makeScalar(AmpDialect::kSteps, b.getI64Type(), 0);
    makeScalar(AmpDialect::kLastOverflow, b.getI64Type(), -1);
    makeScalar(AmpDialect::kHysteresis, b.getI64Type(), static_cast<double>(hysteresis));
    makeScalar(AmpDialect::kSkipped, b.getI64Type(), 0);
  }

private:
  void makeScalar(StringRef name, Type element, double value) {
    train::makeState(getOperation(), name, RankedTensorType::get({}, element), value);
  }

  /// Checks the options' ranges, which the command line also has, even if there is no scale.
  LogicalResult checkOptions() {
    auto integer = [&](StringRef name, int64_t value, int64_t from, int64_t to) -> LogicalResult {
      if (value >= from && value <= to)
        return success();
      return getOperation().emitError()
             << name << "=" << value << ", expected an integer from " << from << " to " << to;
    };
    constexpr int64_t most = 1000000000000000000;
    if (failed(integer("power", power, 0, 127)) || failed(integer("window", window, 1, most)) ||
        failed(integer("hysteresis", hysteresis, 1, most)))
      return failure();
    if (minimum >= 1e-30 && minimum <= 0x1p127)
      return success();
    return getOperation().emitError()
           << "minimum=" << minimum.getValue() << ", expected a number from 1e-30 to 2^127";
  }

  /// Warns that float16 flushes gradients below 6e-8, its smallest number, to zero.
  static void warnOfFloat16(ModuleOp module) {
    auto isHalf = [](train::ParameterOp parameter) {
      return !parameter.getFrozen() && getElementTypeOrSelf(parameter.getType()).isF16();
    };
    bool trains =
        module.walk([](train::MinimizeOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (trains && llvm::any_of(module.getOps<train::ParameterOp>(), isHalf))
      module.emitWarning() << "float16 without a loss scale: gradients below 6e-8 are zero; use "
                              "--precision bfloat16, or --loss-scale 0, which scales the loss as "
                              "far as they allow, if the optimizer accepts it";
  }
};

} // namespace
