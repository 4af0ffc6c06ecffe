//===- Optimizer.cpp - updates, in place ------------------------------------------------------===//
//
// The kernels update in place. Where an update's result stands elsewhere (somebody still reads the
// old value), the old value is copied there first.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// The result's memory, holding the operand's value.
Value inheriting(Lowering &l, unsigned result, unsigned operand) {
  Value from = l.op->getOperand(operand), to = l.op->getResult(result);
  if (!l.samePlace(from, to))
    l.copy(l.buffer(to), l.view(to), from);
  return l.buffer(to);
}

/// The mesh axes that split the gradient's elements flat, and not the parameter's.
SmallVector<int64_t> flatOver(Operation *parameter, Value gradient) {
  par::Layout piece = par::Layout::of(gradient.getType());
  auto local = parameter->getAttrOfType<TypeAttr>(RtDialect::kLocal);
  par::Layout own = local ? par::Layout::of(local.getValue()) : par::Layout();
  SmallVector<int64_t> numbers;
  for (auto [number, axis] : llvm::enumerate(par::MeshAttr::of(parameter).getAxes()))
    if (llvm::is_contained(piece.flat, axis) && !llvm::is_contained(own.flat, axis))
      numbers.push_back(static_cast<int64_t>(number));
  return numbers;
}

/// Shows the gradient to the host, which compares it when asked to.
void expose(Lowering &l, Value gradient) {
  FlatSymbolRefAttr name = train::updatedParameter(l.op);
  auto index = name ? l.shared.parameterIndex.find(name.getValue()) : l.shared.parameterIndex.end();
  if (index == l.shared.parameterIndex.end())
    return;
  Operation *parameter = SymbolTable::lookupNearestSymbolFrom(l.op, name);
  l.create<ExposeGradientOp>(l.buffer(gradient), index->second, flatOver(parameter, gradient));
}

/// Null when the rank's table carries this value, so that the command line can change it.
FloatAttr unlessShared(FloatAttr value, std::optional<double> shared) {
  return shared && value.getValueAsDouble() == *shared ? FloatAttr() : value;
}

LogicalResult checkFloat(Operation *op, Value parameter) {
  if (cast<RankedTensorType>(parameter.getType()).getElementType().isF32())
    return success();
  return op->emitOpError() << "has no kernel on this target for " << parameter.getType();
}

/// Elements of a tile of an update on the host: a mebibyte, from where on neither a copy nor the
/// arithmetic gets any faster by more.
int64_t tileOf(Operation *update) {
  int64_t elements = cast<RankedTensorType>(update->getOperand(0).getType()).getNumElements();
  return std::clamp<int64_t>(elements, 1, 1 << 18);
}

/// Two tiles of the gradient and, where it lives on the device, of the value (transfer.h).
int64_t stagingOf(Operation *update) {
  if (!offload::isMadeOnHost(update))
    return 0;
  return 2 * tileOf(update) * (offload::isOnHost(update->getOperand(0)) ? 1 : 2);
}

struct AdamW : KernelInterface::ExternalModel<AdamW, train::AdamWOp> {
  int64_t workspaceElements(Operation *op) const { return stagingOf(op); }
  Space workspaceSpace(Operation *) const { return Space::Pinned; }
  Space resultSpace(Operation *op, unsigned result) const {
    return offload::isOnHost(op->getResult(result)) ? Space::Pinned : Space::Arena;
  }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return {train::updatedOperand(result)};
  }
  StringRef resultName(Operation *, unsigned result) const {
    return ArrayRef<StringRef>{"new", "m", "v"}[result];
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto adamw = cast<train::AdamWOp>(op);
    if (failed(checkFloat(op, adamw.getValue())))
      return failure();
    expose(l, adamw.getGradient());
    Value value = inheriting(l, 0, 0), m = inheriting(l, 1, 2), v = inheriting(l, 2, 3);
    Value gradient = l.buffer(adamw.getGradient()), rate = l.buffer(adamw.getRate()),
          step = l.buffer(adamw.getStep());
    int64_t n = l.elements(adamw.getValue());
    FloatAttr beta1 = unlessShared(adamw.getBeta1Attr(), l.shared.beta1),
              beta2 = unlessShared(adamw.getBeta2Attr(), l.shared.beta2),
              epsilon = unlessShared(adamw.getEpsilonAttr(), l.shared.epsilon),
              decay = unlessShared(adamw.getDecayAttr(), l.shared.decay);
    if (offload::isMadeOnHost(op))
      l.create<AdamWOnHostOp>(value, m, v, gradient, rate, step, l.scratch(), n, tileOf(op),
                              offload::isOnHost(adamw.getValue()), beta1, beta2, epsilon, decay);
    else
      l.create<rt::AdamWOp>(value, m, v, gradient, rate, step, n, beta1, beta2, epsilon, decay);
    return success();
  }
};

struct Sgd : KernelInterface::ExternalModel<Sgd, train::SgdOp> {
  int64_t workspaceElements(Operation *op) const { return stagingOf(op); }
  Space workspaceSpace(Operation *) const { return Space::Pinned; }
  Space resultSpace(Operation *op, unsigned result) const {
    return offload::isOnHost(op->getResult(result)) ? Space::Pinned : Space::Arena;
  }
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {0}; }
  StringRef resultName(Operation *, unsigned) const { return "new"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto sgd = cast<train::SgdOp>(op);
    if (failed(checkFloat(op, sgd.getValue())))
      return failure();
    expose(l, sgd.getGradient());
    Value value = inheriting(l, 0, 0), gradient = l.buffer(sgd.getGradient()),
          rate = l.buffer(sgd.getRate());
    int64_t n = l.elements(sgd.getValue());
    FloatAttr decay = unlessShared(sgd.getDecayAttr(), l.shared.decay);
    if (offload::isMadeOnHost(op))
      l.create<SgdOnHostOp>(value, gradient, rate, l.scratch(), n, tileOf(op),
                            offload::isOnHost(sgd.getValue()), decay);
    else
      l.create<rt::SgdOp>(value, gradient, rate, n, decay);
    return success();
  }
};

struct LearningRate : KernelInterface::ExternalModel<LearningRate, train::LearningRateOp> {
  Space resultSpace(Operation *, unsigned) const { return Space::Control; }
  LogicalResult lower(Operation *op, Lowering &l) const { return success(); }
};

struct StepNumber : KernelInterface::ExternalModel<StepNumber, train::StepNumberOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<rt::StepNumberOp>(l.result(0));
    return success();
  }
};

struct RandomKey : KernelInterface::ExternalModel<RandomKey, train::RandomKeyOp> {
  StringRef resultName(Operation *, unsigned) const { return "key"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    l.create<rt::RandomKeyOp>(l.result(0));
    return success();
  }
};

} // namespace

void rt::attachUpdates(MLIRContext *context) {
  train::AdamWOp::attachInterface<AdamW>(*context);
  train::SgdOp::attachInterface<Sgd>(*context);
  train::StepNumberOp::attachInterface<StepNumber>(*context);
  train::RandomKeyOp::attachInterface<RandomKey>(*context);
  train::LearningRateOp::attachInterface<LearningRate>(*context);
}
