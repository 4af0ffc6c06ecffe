//===- Undecided.cpp - elements whose update rounding decides ---------------------------------===//

#include "lib/Interp/Undecided.h"
#include "dialects/Train/Train.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static double largest(const Tensor &tensor) {
  double result = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    result = std::max(result, std::abs(tensor.number(i)));
  return result;
}

/// What the update makes of the gradient minus, plus and without `noise`.
static Interval intervalOf(const Interpreter::Update &update, double noise) {
  SmallVector<const Tensor *> operands;
  for (const auto &operand : update.operands)
    operands.push_back(operand.get());
  constexpr unsigned kGradient = train::OptimizerInterface::kGradient;
  Interval interval;
  for (double shift : {0.0, -noise, noise}) {
    Tensor gradient = *update.operands[kGradient];
    for (int64_t i = 0; i < gradient.size(); ++i)
      gradient.setNumber(i, gradient.number(i) + shift);
    operands[kGradient] = &gradient;
    Tensor value = std::move(evaluateUpdate(update.op, operands).front());
    if (shift == 0)
      interval = {value, value};
    for (int64_t i = 0; i < value.size(); ++i) {
      interval.least.setNumber(i, std::min(interval.least.number(i), value.number(i)));
      interval.most.setNumber(i, std::max(interval.most.number(i), value.number(i)));
    }
  }
  return interval;
}

LogicalResult Undecided::settle(Interpreter &partitioned, StringRef symbol,
                                const std::string &parameter, const Tensor &expected,
                                const Interval &interval, double allowed) {
  FailureOr<Tensor> found = partitioned.parameter(symbol);
  if (failed(found))
    return failure();
  if (found->shape != expected.shape || interval.least.shape != expected.shape)
    return success(); // the comparison says so
  int64_t replaced = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double number = found->number(i);
    bool isInside =
        number >= interval.least.number(i) - allowed && number <= interval.most.number(i) + allowed;
    if (std::abs(number - expected.number(i)) <= allowed || !isInside)
      continue;
    found->copyElement(i, expected, i);
    ++replaced;
  }
  if (replaced == 0)
    return success();
  elements += replaced;
  parameters.insert(parameter);
  return partitioned.setParameter(symbol, *found);
}

LogicalResult Undecided::settle(Interpreter &full, MutableArrayRef<Interpreter> partitioned) {
  std::map<std::string, Tensor> values;
  double gradients = 0, scale = 0;
  for (const auto &[parameter, update] : full.updates()) {
    FailureOr<Tensor> value = full.parameter(parameter);
    if (failed(value))
      return failure();
    gradients =
        std::max(gradients, largest(*update.operands[train::OptimizerInterface::kGradient]));
    scale = std::max(scale, largest(*value));
    values[parameter] = std::move(*value);
  }
  for (const auto &[parameter, update] : full.updates()) {
    const Tensor &expected = values[parameter];
    double own = largest(*update.operands[train::OptimizerInterface::kGradient]);
    Interval interval = intervalOf(update, kNoise * std::max(own, 1e-3 * gradients));
    double allowed = tolerance * std::max(largest(expected), 1e-3 * scale);
    for (Interpreter &stage : partitioned) {
      SmallVector<StringRef, 2> symbols;
      if (stage.module().lookupSymbol<train::ParameterOp>(parameter))
        symbols.push_back(parameter);
      for (auto state : stage.module().getOps<train::StateOp>())
        if (state.isMaster() && state.getOf() == parameter)
          symbols.push_back(state.getSymName());
      for (StringRef symbol : symbols)
        if (failed(settle(stage, symbol, parameter, expected, interval, allowed)))
          return failure();
    }
  }
  return success();
}
