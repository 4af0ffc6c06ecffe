//===- LossOutput.cpp - finds out whether a model computes its loss ---------------------------===//

#include "lib/Objective/LossOutput.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Objective/Inputs.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace partita;
using namespace partita::objective;

namespace {

/// What each value of a function depends on.
class Origins {
public:
  explicit Origins(func::FuncOp function)
      : arguments(function.getNumArguments()), results(returned(function)) {
    for (BlockArgument argument : function.getArguments())
      of(argument).set(argument.getArgNumber());
    for (Operation &op : function.getBody().front().without_terminator())
      follow(op);
  }

  static ValueRange returned(func::FuncOp function) {
    return function.getBody().front().getTerminator()->getOperands();
  }

  bool trains(Value value) { return of(value).test(parameter()); }
  bool takesFrom(Value value, unsigned argument) { return of(value).test(argument); }
  bool takesFromResult(Value value, unsigned result) {
    return value != results[result] && of(value).test(firstResult() + result);
  }
  /// Returns true if the value depends on a cross-entropy with an input's labels.
  bool comparesLabels(Value value) { return of(value).test(crossEntropy()); }

private:
  unsigned parameter() const { return arguments; }
  unsigned crossEntropy() const { return arguments + 1; }
  unsigned firstResult() const { return arguments + 2; }

  llvm::SmallBitVector &of(Value value) {
    llvm::SmallBitVector &bits = origins[value];
    bits.resize(firstResult() + results.size());
    return bits;
  }

  void follow(Operation &op) {
    llvm::SmallBitVector bits(firstResult() + results.size());
    for (Value operand : op.getOperands())
      bits |= of(operand);
    if (isa<train::ReadOp>(op))
      bits.set(parameter());
    auto loss = dyn_cast<tx::CrossEntropyOp>(op);
    if (int first = loss ? of(loss.getLabels()).find_first() : -1;
        first >= 0 && unsigned(first) < arguments)
      bits.set(crossEntropy());
    for (Value result : op.getResults()) {
      of(result) = bits;
      for (auto [i, value] : llvm::enumerate(results))
        if (value == result)
          of(result).set(firstResult() + i);
    }
  }

  unsigned arguments;
  ValueRange results;
  llvm::DenseMap<Value, llvm::SmallBitVector> origins;
};

/// Returns true for a tensor of floats that has no dimensions (`number`), or some.
bool isFloat(Value value, bool number) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType()) && (type.getRank() == 0) == number;
}

/// Returns why the number is a loss; "" if nothing suggests it.
std::string reasonFor(func::FuncOp forward, Origins &origins, Value number) {
  if (origins.comparesLabels(number))
    return "the model compares its scores with an input's labels itself";
  ValueRange results = Origins::returned(forward);
  if (llvm::none_of(results, [](Value each) { return isFloat(each, /*number=*/false); }))
    return "the model has no scores, but this one number";
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    bool scored = llvm::any_of(results, [&](Value each) {
      return isFloat(each, /*number=*/false) && origins.takesFrom(each, i);
    });
    if (origins.takesFrom(number, i) && !scored)
      return "it alone depends on input " + nameOf(forward, i);
  }
  return "";
}

} // namespace

std::optional<LossOutput> objective::findLossOutput(func::FuncOp forward) {
  Origins origins(forward);
  ValueRange results = Origins::returned(forward);
  std::optional<LossOutput> found;
  for (auto [i, value] : llvm::enumerate(results)) {
    if (!isFloat(value, /*number=*/true) || !origins.trains(value))
      continue;
    std::string reason = reasonFor(forward, origins, value);
    if (!reason.empty() && (!found || origins.takesFromResult(value, found->index)))
      found = LossOutput{unsigned(i), reason};
  }
  return found;
}
