//===- NumericCheck.cpp - see NumericCheck.h --------------------------------------------------===//

#include "lib/Raise/NumericCheck.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "partita/Interp/Interpreter.h"
#include "partita/Interp/Random.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Threading.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::raise;

double raise::tolerance(Type elementType) {
  auto type = dyn_cast<FloatType>(elementType);
  return type && type.getFPMantissaWidth() < 24
             ? std::ldexp(1.0, 1 - static_cast<int>(type.getFPMantissaWidth()))
             : std::ldexp(1.0, -22);
}

static RankedTensorType typeLike(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(value.getType()));
}

/// The labels of `op`'s first result from those of its operands, by kind; none if it does not fit.
std::optional<Labels> NumericCheck::labelsOf(Operation *op) {
  const Labels *first = nullptr;
  for (Value operand : op->getOperands())
    if (auto found = labels.find(operand); found != labels.end()) {
      first = &found->second;
      break;
    }
  if (!first)
    return std::nullopt;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (isa<ScalarInterface, tx::CastOp, tx::DropoutOp, tx::SoftmaxOp>(op))
    return *first;
  if (auto transpose = dyn_cast<tx::TransposeOp>(op)) {
    Labels result;
    for (int64_t p : transpose.getPermutation())
      result.push_back((*first)[p]);
    return result;
  }
  if (isa<tx::ReshapeOp>(op))
    return regroup(*first, type.getShape(), oldSizes);
  if (isa<tx::ReduceMeanOp, tx::ReduceSumOp, tx::ReduceMaxOp>(op)) {
    auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef();
    Labels result;
    for (auto [i, dim] : llvm::enumerate(*first))
      if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
        result.push_back(dim);
    return result;
  }
  if (isa<tx::BatchMatMulOp>(op)) {
    if (!labels.count(op->getOperand(0)) || !labels.count(op->getOperand(1)))
      return std::nullopt;
    Labels result = labels[op->getOperand(0)];
    result.back() = labels[op->getOperand(1)].back();
    return result;
  }
  if (isa<tx::BroadcastOp>(op)) {
    if (repeatAtom && first->size() == static_cast<size_t>(type.getRank())) {
      Labels result = *first;
      auto from = cast<RankedTensorType>(op->getOperand(0).getType());
      for (auto [i, dim] : llvm::enumerate(result))
        if (dim.empty() && from.getDimSize(i) != type.getDimSize(i))
          dim.push_back(*repeatAtom);
      if (ArrayRef<int64_t>(shapeOf(result, oldSizes)) == type.getShape())
        return result;
    }
    // New dimensions get the labels of the first input, whose shape everything is broadcast to.
    const Labels &full = inputs.front().labels;
    if (shapeOf(full, oldSizes).size() != type.getShape().size())
      return std::nullopt;
    Labels result(type.getRank());
    for (int64_t i = 0, added = type.getRank() - static_cast<int64_t>(first->size());
         i < type.getRank(); ++i)
      result[i] = i >= added && !(*first)[i - added].empty() ? (*first)[i - added]
                  : type.getDimSize(i) == 1                  ? Labels::value_type()
                                                             : full[i];
    if (ArrayRef<int64_t>(shapeOf(result, oldSizes)) != type.getShape())
      return std::nullopt;
    return result;
  }
  return std::nullopt;
}

/// An operand that depends on nothing, over dimensions labelled `like`.
Value NumericCheck::fixedOperand(OpBuilder &builder, OpOperand &operand, const Labels &like) {
  SmallVector<int64_t> shape = shapeOf(like, newSizes);
  auto type = typeLike(operand.get(), shape);
  std::optional<double> splat = splatOf(operand.get());
  if (substitution.operand == &operand)
    splat = substitution.value;
  if (splat)
    return tx::createSplat(builder, builder.getUnknownLoc(), type, *splat);
  if (!element || ArrayRef<int64_t>(shapeOf(like, oldSizes)) !=
                      cast<RankedTensorType>(operand.get().getType()).getShape())
    return {};
  SmallVector<Attribute> elements;
  SmallVector<int64_t> index(shape.size());
  int64_t count = type.getNumElements();
  for (int64_t linear = 0; linear < count; ++linear) {
    int64_t rest = linear;
    for (int64_t d = shape.size() - 1; d >= 0; --d) {
      int64_t small = rest % shape[d], large = 0, unit = 1;
      rest /= shape[d];
      for (unsigned atom : llvm::reverse(like[d])) {
        large += small % newSizes[atom] * unit;
        small /= newSizes[atom];
        unit *= oldSizes[atom];
      }
      index[d] = large;
    }
    std::optional<double> value = element(operand.get(), index);
    if (!value)
      return {};
    Type elementType = type.getElementType();
    elements.push_back(
        isa<FloatType>(elementType)
            ? Attribute(builder.getFloatAttr(elementType, *value))
            : Attribute(builder.getIntegerAttr(elementType, static_cast<int64_t>(*value))));
  }
  return tx::ConstantOp::create(builder, builder.getUnknownLoc(), type,
                                DenseElementsAttr::get(type, elements));
}

Operation *NumericCheck::cloneOp(OpBuilder &builder, Operation *op) {
  std::optional<Labels> result = labelsOf(op);
  if (!result)
    return nullptr;
  if (op == squared) {
    Value value = mapped.lookup(op->getOperand(0));
    if (!value)
      return nullptr;
    Operation *square =
        tx::MulOp::create(builder, builder.getUnknownLoc(), ValueRange{value, value});
    mapped[op->getResult(0)] = square->getResult(0);
    labels[op->getResult(0)] = *result;
    return square;
  }
  OperationState state(builder.getUnknownLoc(), op->getName());
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = mapped.lookup(operand.get());
    if (!value && isa<ScalarInterface>(op))
      value = fixedOperand(builder, operand, *result);
    if (!value)
      return nullptr;
    state.addOperands(value);
  }
  // Operands must agree in shape wherever the op wants them to.
  if (op->hasTrait<OpTrait::SameOperandsAndResultShape>())
    for (Value operand : state.operands)
      if (cast<RankedTensorType>(operand.getType()).getShape() !=
          ArrayRef<int64_t>(shapeOf(*result, newSizes)))
        return nullptr;
  state.addTypes(typeLike(op->getResult(0), shapeOf(*result, newSizes)));
  state.addAttributes(op->getAttrs());
  Operation *copy = builder.create(state);
  mapped[op->getResult(0)] = copy->getResult(0);
  labels[op->getResult(0)] = *result;
  return copy;
}

Value NumericCheck::clone(OpBuilder &builder, ValueRange arguments) {
  mapped.clear();
  labels.clear();
  for (auto [input, argument] : llvm::zip_equal(inputs, arguments)) {
    mapped[input.leaf] = argument;
    labels[input.leaf] = input.labels;
  }
  for (Operation *op : subgraph.ops)
    if (!cloneOp(builder, op)) {
      stuckAt = op;
      return {};
    }
  return mapped.lookup(subgraph.root);
}

std::optional<double> NumericCheck::error(BuildReplacement build) {
  MLIRContext *context = subgraph.root.getContext();
  Location loc = UnknownLoc::get(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder(context);
  SmallVector<Type> types;
  for (const ScratchInput &input : inputs)
    types.push_back(typeLike(input.leaf, shapeOf(input.labels, newSizes)));
  // A candidate may fail to run (an integer division by zero, say): that is an answer, not an
  // error.
  uint64_t thread = llvm::get_threadid();
  ScopedDiagnosticHandler silence(
      context, [&](Diagnostic &) { return success(thread == llvm::get_threadid()); });
  for (StringRef name : {"candidate", "replacement"}) {
    builder.setInsertionPointToEnd(module->getBody());
    auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    Value result = name == "candidate" ? clone(builder, function.getArguments())
                                       : build(builder, function.getArguments());
    if (!result)
      return std::nullopt;
    func::ReturnOp::create(builder, loc, result);
    function.setFunctionType(builder.getFunctionType(types, result.getType()));
  }
  SmallVector<interp::Tensor> values;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto &tensor = values.emplace_back(cast<RankedTensorType>(types[i]));
    for (int64_t j = 0; j < tensor.size(); ++j)
      tensor.setNumber(j, input.mean + input.deviation * interp::standardNormal(
                                                             interp::randomKey(i, "raise"), j));
  }
  interp::Interpreter interpreter(*module);
  auto got = interpreter.call("candidate", values),
       wanted = interpreter.call("replacement", values);
  if (failed(got) || failed(wanted) || (*got)[0].shape != (*wanted)[0].shape)
    return std::nullopt;
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < (*wanted)[0].size(); ++i) {
    double a = (*got)[0].number(i), b = (*wanted)[0].number(i);
    if (!std::isfinite(a) || !std::isfinite(b))
      return std::nullopt;
    difference = std::max(difference, std::abs(a - b));
    largest = std::max(largest, std::abs(b));
  }
  return difference / std::max(largest, 1e-30);
}

std::string raise::numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", value);
  return text;
}

std::string raise::blameConstant(const Subgraph &subgraph, ArrayRef<double> canonical,
                                 function_ref<std::optional<double>(Substitution)> error,
                                 double tolerance) {
  for (Operation *op : subgraph.ops)
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<double> value = splatOf(operand.get());
      if (!value)
        continue;
      for (double usual : canonical) {
        if (usual == *value || std::abs(usual - *value) > 0.2 * std::abs(usual))
          continue;
        std::optional<double> changed = error({&operand, usual});
        if (changed && *changed <= tolerance)
          return llvm::formatv("operand {0} of {1} is {2}, it would be with {3}",
                               operand.getOperandNumber(), op->getName().getStringRef(),
                               numberText(*value), numberText(usual))
              .str();
      }
    }
  return {};
}
