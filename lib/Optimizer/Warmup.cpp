//===- Warmup.cpp - warns of statistics that are frozen too early -----------------------------===//

#include "lib/Optimizer/Warmup.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace partita;

static std::string stepsText(double steps) {
  return llvm::formatv("{0} step{1}", int64_t(steps), steps == 1 ? "" : "s").str();
}

void optimizer::warnOfVariance(Operation *at, double steps, double kept, bool corrects) {
  double weight = 1 - std::pow(kept, steps);
  constexpr double kQuarter = 0.25; // steps are twice as long
  constexpr double kFew = 10;
  if (!corrects && weight < kQuarter)
    at->emitWarning() << llvm::formatv(
        "the variance begins with 0: after {0} of warm-up it is {1:F1} % of what it estimates, and "
        "stays so, which makes all later steps {2:F1} times as long; use a larger freeze-step, a "
        "smaller beta2, or bias-correction",
        stepsText(steps), 100 * weight, 1 / std::sqrt(weight));
  else if (steps < kFew)
    at->emitWarning() << llvm::formatv(
        "the variance is frozen after {0} update{1}, so elements that had small gradients until "
        "then take far too long steps later; freeze it after 15 to 25 % of all steps",
        int64_t(steps), steps == 1 ? "" : "s");
}

void optimizer::warnOfRatios(Operation *at, double steps, double kept) {
  if (steps * (1 - kept) < 1)
    at->emitWarning() << llvm::formatv(
        "the running mean of ratios begins with 0 and keeps {0} of itself in a step: after {1} of "
        "warm-up it is {2:F0} % of their mean, and scales all later updates; use a larger "
        "freeze-step or a smaller coeff-beta",
        kept, stepsText(steps), 100 * (1 - std::pow(kept, steps)));
}
