//===- Optimizers.cpp - what all optimizers have in common ------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

#include "dialects/Train/TrainInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Train/Optimizers.cpp.inc"

std::string train::optimizerRule(size_t states, unsigned operands, unsigned results) {
  std::string rule = "*, *";
  for (size_t i = 0; i < states; ++i)
    rule += ", *";
  for (size_t i = 2 + states; i < operands; ++i)
    rule += ", "; // a scalar
  rule += " -> *";
  for (unsigned i = 1; i < results; ++i)
    rule += ", *";
  return rule;
}

LogicalResult train::verifyOptimizer(Operation *op) {
  auto update = cast<OptimizerInterface>(op);
  size_t states = update.getStateNames().size(),
         least = 2 + states + update.getScalarNames().size();
  if (op->getNumOperands() < least || op->getNumOperands() > least + 2)
    return op->emitOpError() << "takes a value, a gradient, " << states << " states, "
                             << update.getScalarNames().size()
                             << " scalars and perhaps a scale and a predicate, not "
                             << op->getNumOperands() << " operands";
  auto bits = [](Value value) {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
    return element ? element.getWidth() : 0;
  };
  Value rounded = update.getRounded();
  if (op->getNumResults() < 1 + states || op->getNumResults() > 2 + states)
    return op->emitOpError() << "has " << op->getNumResults() << " results for a value and "
                             << states << " states";
  if (rounded && bits(rounded) >= bits(update.getUpdatedValue()))
    return op->emitOpError() << "rounds " << update.getUpdatedValue().getType() << " to "
                             << rounded.getType() << ", which has no fewer bits";
  for (Hyperparameter hyper : update.getHyperparameters())
    if (!std::isfinite(update.getHyper(hyper.name)))
      return op->emitOpError() << hyper.name << " is not a finite number";
  return success();
}

/// Checks that there is one parameter name for each of `count` values.
static LogicalResult checkNames(Operation *op, std::optional<ArrayAttr> parameters, int64_t count,
                                StringRef what) {
  if (parameters && static_cast<int64_t>(parameters->size()) != count)
    return op->emitOpError() << "names " << parameters->size() << " parameters for " << count << " "
                             << what;
  return success();
}

LogicalResult GlobalNormOp::verify() {
  return checkNames(*this, getParameters(), getValues().size(), "gradients");
}

LogicalResult NormOp::verify() {
  int64_t sums = 0;
  for (Type type : getSquares().getTypes()) {
    if (!cast<RankedTensorType>(type).hasStaticShape())
      return emitOpError() << "of " << type << ": how many sums these are is unknown";
    sums += cast<RankedTensorType>(type).getDimSize(0);
  }
  return checkNames(*this, getParameters(), sums, "sums");
}

LogicalResult SquareSumOp::verify() {
  if (cast<RankedTensorType>(getSum().getType()).getDimSize(0) !=
      static_cast<int64_t>(getValues().size()))
    return emitOpError() << "of " << getValues().size() << " tensors has as many sums, not "
                         << getSum().getType();
  SmallVector<StringAttr> partial = par::Layout::of(getSum().getType()).partial;
  llvm::sort(partial, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  for (Value value : getValues()) {
    if (par::splittingAxes(value.getType()) != partial)
      return emitOpError() << "of " << value.getType() << " cannot be " << getSum().getType()
                           << ": it is a partial sum over the axes that split its operands, and "
                              "those alone";
  }
  return success();
}

LogicalResult DirectionSquaresOp::verify() {
  std::optional<RegisteredOperationName> name = findOptimizer(getContext(), getOptimizer());
  auto *optimizer = name ? name->getInterface<OptimizerInterface>() : nullptr;
  if (!optimizer || optimizer->getSquared().empty())
    return emitOpError() << "of " << getOptimizerAttr() << ": no optimizer with a ratio";
  size_t least = 3 + optimizer->getStateNames().size(); // a value, a gradient, states, t
  if (getValues().size() != least && getValues().size() != least + 1)
    return emitOpError() << "of " << getOptimizerAttr() << " takes " << least
                         << " operands and perhaps a scale, not " << getValues().size();
  auto hasSize = [](Value value, size_t size) {
    return cast<RankedTensorType>(value.getType()).getDimSize(0) == static_cast<int64_t>(size);
  };
  size_t largest = optimizer->getLargest().size();
  if (!hasSize(getSums(), optimizer->getSquared().size()) || bool(getLargest()) != (largest > 0) ||
      (getLargest() && !hasSize(getLargest(), largest)))
    return emitOpError() << "of " << getOptimizerAttr() << " has " << optimizer->getSquared().size()
                         << " sums and " << largest << " maxima, not " << (*this)->getResultTypes();
  for (Hyperparameter hyper : optimizer->getHyperparameters())
    if (!isa_and_nonnull<FloatAttr>(getHyper().get(hyper.name)))
      return emitOpError() << "has no number " << hyper.name;
  return success();
}

FlatSymbolRefAttr train::updatedParameter(Operation *update) {
  Value value = update->getOperand(OptimizerInterface::kValue);
  if (StateOp master = stateReadBy(value))
    return master.getOfAttr();
  return parameterReadBy(value);
}

StateOp train::stateReadBy(Value value) {
  auto read = value.getDefiningOp<ReadOp>();
  return read ? SymbolTable::lookupNearestSymbolFrom<StateOp>(read, read.getSymbolAttr())
              : StateOp();
}

SmallVector<StateOp> train::stateSymbols(OptimizerInterface update) {
  SmallVector<StateOp> symbols;
  for (unsigned result = 0; result < update.getUpdates().size(); ++result)
    if (StateOp state = stateReadBy(update->getOperand(*update.getUpdatedOperand(result))))
      symbols.push_back(state);
  return symbols;
}

template <typename... Ops> static std::vector<OptimizerRow> rowsOf() {
  std::vector<OptimizerRow> rows{
      {Ops::getOperationName().split('.').second, Ops::getHyperparameters(), Ops::getScalarNames(),
       Ops::getWithMomentum(), Ops::getSummedState(), Ops::freezesRatio()}...};
  llvm::sort(rows, [](auto &a, auto &b) { return a.name < b.name; });
  return rows;
}

ArrayRef<OptimizerRow> train::optimizers() {
  static const std::vector<OptimizerRow> rows = rowsOf<
#define GET_OP_LIST
#include "dialects/Train/Optimizers.cpp.inc"
      >();
  return rows;
}

std::optional<RegisteredOperationName> train::findOptimizer(MLIRContext *context, StringRef kind) {
  std::string mnemonic = kind.str();
  llvm::replace(mnemonic, '-', '_');
  auto name = RegisteredOperationName::lookup(
      (TrainDialect::getDialectNamespace() + "." + mnemonic).str(), context);
  return name && name->hasInterface<OptimizerInterface>() ? name : std::nullopt;
}
