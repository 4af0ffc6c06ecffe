//===- Updates.cpp - updates in place, and norms ----------------------------------------------===//
//
// An optimizer's kernel is printed from its arithmetic (dialects/Train/Optimizers.td), one per set
// of element types. Kernels update in place: where an update's result stands elsewhere (somebody
// still reads the old value), the old value is copied there first.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Lower/Lowering.h"
#include "partita/Lower/ScalarText.h"
#include "runtime/include/partita_rt/shards.h"
#include <set>

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

/// The mesh axes that split the gradient's elements flat, and not the parameter's; outermost first.
SmallVector<int64_t> flatOver(Operation *parameter, Value gradient) {
  par::Layout shard = par::Layout::of(gradient.getType());
  auto local = parameter->getAttrOfType<TypeAttr>(RtDialect::kLocal);
  par::Layout own = local ? par::Layout::of(local.getValue()) : par::Layout();
  SmallVector<int64_t> numbers;
  ArrayRef<StringAttr> axes = par::MeshAttr::of(parameter).getAxes();
  for (StringAttr axis : shard.flat)
    if (!llvm::is_contained(own.flat, axis))
      numbers.push_back(pipe::axisNumber(parameter, llvm::find(axes, axis) - axes.begin()));
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

/// Elements of a tile of an update on the host: a mebibyte, from where on neither a copy nor the
/// arithmetic gets any faster by more.
int64_t tileOf(Operation *update) {
  int64_t elements = cast<RankedTensorType>(update->getOperand(0).getType()).getNumElements();
  return std::clamp<int64_t>(elements, 1, 1 << 18);
}

/// Two tiles of the gradient, where it lives on the device of the value, and of what it is rounded
/// to (transfer.h: stagingElements).
int64_t stagingOf(Operation *op) {
  if (!offload::isMadeOnHost(op))
    return 0;
  auto update = cast<train::OptimizerInterface>(op);
  auto width = [](Value value) {
    return value ? elementBytes(getElementTypeOrSelf(value.getType())) : 0;
  };
  int64_t bytes = width(update.getUpdatingGradient()) + width(update.getRounded()) +
                  (offload::isOnHost(update.getUpdatedValue()) ? 0 : 4);
  return 2 * llvm::divideCeil(tileOf(op) * bytes, 4);
}

//===------------------------------------------------------------------------------------------===//
// The kernel of an optimizer
//===------------------------------------------------------------------------------------------===//

/// The text of a kernel, being put together. A scalar comes as a double; the loop takes it as float
/// (`rate` as `rate_f`), an array's element is called `p_i`.
struct UpdateText {
  SmallVector<StringRef> values; // the value, the states, perhaps `parameter`, the gradient
  StringRef rounded;             // the value in 16 bits; empty where there is none
  RoundingAttr rounding;         // how it is made
  SmallVector<StringRef> scalars;
  SmallVector<Attribute> types; // of the values' elements
  bool hasScale = false, hasPredicate = false;

  /// Writes all arrays but the gradient's; with `squares` nothing but the sums of these elements'
  /// squares, and the largest of those of `largest`.
  UpdateKernelOp build(OpBuilder &b, ArrayRef<train::Assignment> preparations,
                       ArrayRef<train::Assignment> assignments, ArrayRef<StringRef> squares = {},
                       ArrayRef<StringRef> largest = {}) {
    for (StringRef value : values)
      if (value != rounded)
        statements.push_back("float " + element(value) + " = " +
                             (value == "g" && hasScale ? factor("scale") + " * " : "") +
                             value.str() + "[i];");
    for (const train::Assignment &each : assignments)
      assign(each);
    for (StringRef value : squares.empty() ? ArrayRef(values).drop_back() : ArrayRef<StringRef>())
      statements.push_back(value.str() + "[i] = " + stored(value) + ";");
    SmallVector<std::string> prepared;
    for (const train::Assignment &each : preparations)
      prepared.push_back(("const double " + each.target + " = " + each.expression + ";").str());
    auto elements = [&](ArrayRef<StringRef> names) {
      return names.empty() ? ArrayAttr()
                           : strings(b, SmallVector<std::string>(llvm::map_range(names, element)));
    };
    if (hasScale)
      scalars.push_back("scale");
    if (hasPredicate)
      scalars.push_back(UpdateKernelOp::kApply);
    if (isStochastic())
      scalars.append({UpdateKernelOp::kRoundingKey, UpdateKernelOp::kRoundingFirst});
    return UpdateKernelOp::create(
        b, b.getUnknownLoc(), b.getStringAttr("kernel"), b.getStrArrayAttr(values),
        b.getArrayAttr(types), b.getStrArrayAttr(scalars), strings(b, prepared),
        strings(b, factors), strings(b, statements), rounding,
        hasPredicate ? b.getUnitAttr() : UnitAttr(), elements(squares), elements(largest));
  }

private:
  void assign(const train::Assignment &each) {
    bool known = llvm::is_contained(values, each.target);
    std::string right = floatExpression(each.expression, [&](StringRef name) {
      bool isElement = llvm::is_contained(values, name) || locals.count(name.str());
      return isElement ? element(name) : factor(name);
    });
    statements.push_back((known ? "" : "const float ") + element(each.target) + " = " + right +
                         ";");
    if (!known)
      locals.insert(each.target.str());
  }
  /// What is stored of an array's element.
  std::string stored(StringRef value) const {
    if (value != rounded)
      return element(value);
    return isStochastic() ? "roundStochastically(p_i, uint16_t(mix64(key + uint64_t(i)) >> 48))"
                          : "p_i";
  }
  bool isStochastic() const { return rounding && rounding.getValue() == Rounding::Stochastic; }
  static std::string element(StringRef name) { return (name + "_i").str(); }
  std::string factor(StringRef name) {
    if (std::string text = name.str(); !llvm::is_contained(factors, text))
      factors.push_back(text);
    return (name + "_f").str();
  }
  static ArrayAttr strings(OpBuilder &b, ArrayRef<std::string> texts) {
    return b.getStrArrayAttr(SmallVector<StringRef>(texts.begin(), texts.end()));
  }

  SmallVector<std::string> statements, factors;
  std::set<std::string> locals;
};

/// How an update makes the 16 bits of its value; null if it makes none.
RoundingAttr roundingOf(train::OptimizerInterface update) {
  if (!update.getRounded())
    return {};
  return RoundingAttr::get(update->getContext(), update->hasAttr(amp::AmpDialect::kStochastic)
                                                     ? Rounding::Stochastic
                                                     : Rounding::Nearest);
}

/// The kernel of an update.
UpdateKernelOp buildKernel(OpBuilder &b, train::OptimizerInterface update) {
  UpdateText text;
  text.values.push_back("p");
  llvm::append_range(text.values, update.getStateNames());
  if (update.getRounded())
    text.values.push_back(text.rounded = "parameter");
  text.rounding = roundingOf(update);
  text.values.push_back("g");
  llvm::append_range(text.scalars, update.getScalarNames());
  for (train::Hyperparameter each : update.getHyperparameters())
    text.scalars.push_back(each.name);
  text.hasScale = bool(update.getGradientScale());
  text.hasPredicate = bool(update.getPredicate());
  for (Value value : update->getResults())
    text.types.push_back(TypeAttr::get(getElementTypeOrSelf(value.getType())));
  text.types.push_back(TypeAttr::get(getElementTypeOrSelf(update.getUpdatingGradient().getType())));
  return text.build(b, update.getPreparations(), update.getAssignments());
}

/// A number in memory as the argument of a kernel, times a factor.
StringRef scalarText(Lowering &l, double factor, llvm::StringSaver &saver) {
  return saver.save(Target::of(l.op).scalar(factor));
}

/// A hyperparameter as the argument of a kernel: the op's own, or the rank's.
StringRef hyperText(Lowering &l, StringRef name, double value, llvm::StringSaver &saver) {
  FloatAttr own = l.shared.unlessShared(name, l.builder.getF64FloatAttr(value));
  return saver.save(own ? doubleLiteral(own.getValueAsDouble())
                        : Target::of(l.op).hyperparameter(hyperField(name)));
}

/// What is updated is of 32 bits; gradients are of any type that kernels load.
LogicalResult checkFloats(Operation *op, ValueRange gradients) {
  for (Value operand : op->getOperands())
    if (!getElementTypeOrSelf(operand.getType()).isF32() && !llvm::is_contained(gradients, operand))
      return op->emitOpError() << "has no kernel on this target for " << operand.getType();
  return success();
}

/// The number of a shard's first element, as C++: those of a rank's whole share are numbered on, so
/// that it does not matter how data-parallel ranks divide it.
std::string firstElementText(Type shard, Operation *op) {
  par::MeshAttr mesh = par::MeshAttr::of(op);
  par::Layout layout = par::Layout::of(shard), share = layout.withoutFlat();
  auto number = [&](StringAttr axis) {
    return "rank.coordinates[" +
           std::to_string(
               pipe::axisNumber(op, llvm::find(mesh.getAxes(), axis) - mesh.getAxes().begin())) +
           "]";
  };
  auto add = [](const std::string &text, int64_t stride) {
    return " + " + text + " * " + std::to_string(stride) + ".0";
  };
  std::string text = "0.0";
  int64_t elements = 1;
  for (int64_t size : share.shape)
    elements *= size;
  auto local = share.localType(getElementTypeOrSelf(shard), mesh, [](const Twine &) {});
  int64_t left = succeeded(local) ? local->getNumElements() : elements;
  for (StringAttr axis : layout.flat) {
    left = partita_rt::flatShardSize(left, mesh.sizeOf(axis));
    text += add(number(axis), left);
  }
  for (const auto &splits : share.splits)
    for (const par::AxisSplit &split : splits) {
      text += add(number(split.axis), elements); // more than a share has: no number occurs twice
      elements *= mesh.sizeOf(split.axis);
    }
  return text;
}

/// What a call passes for the kernel's scalars: what stands in memory, the op's own
/// hyperparameters, those of the rank that the command line may change.
void passScalars(train::OptimizerInterface update, Lowering &l, SmallVector<StringRef> &texts,
                 SmallVector<Value> &pointers, llvm::StringSaver &saver) {
  double rateScale = update.getHyper("rate_scale");
  for (auto [name, value] : llvm::zip(update.getScalarNames(), update.getScalarValues())) {
    texts.push_back(scalarText(l, name == "rate" ? rateScale : 1, saver));
    pointers.push_back(l.buffer(value));
  }
  for (train::Hyperparameter each : update.getHyperparameters())
    texts.push_back(hyperText(l, each.name, update.getHyper(each.name), saver));
  for (Value value : {update.getGradientScale(), update.getPredicate()})
    if (value) {
      texts.push_back(scalarText(l, 1, saver));
      pointers.push_back(l.buffer(value));
    }
  if (auto number = update->getAttrOfType<IntegerAttr>(amp::AmpDialect::kStochastic)) {
    std::string key = std::to_string(number.getInt());
    if (update.getPredicate()) {
      pointers.push_back(l.buffer(update.getPredicate()));
      key += ", " + scalarText(l, 1, saver).str();
    }
    texts.push_back(saver.save(Target::of(l.op).roundingKey(key)));
    texts.push_back(saver.save(firstElementText(update.getRounded().getType(), update)));
  }
}

template <typename Op> struct Update : KernelInterface::ExternalModel<Update<Op>, Op> {
  int64_t workspaceElements(Operation *op) const { return stagingOf(op); }
  Space workspaceSpace(Operation *) const { return Space::Pinned; }
  Space resultSpace(Operation *op, unsigned result) const {
    return offload::isOnHost(op->getResult(result)) ? Space::Pinned : Space::Arena;
  }
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned result) const {
    std::optional<unsigned> updated = cast<train::OptimizerInterface>(op).getUpdatedOperand(result);
    return updated ? SmallVector<unsigned>{*updated} : SmallVector<unsigned>{};
  }
  StringRef resultName(Operation *, unsigned result) const {
    return result == 0                           ? "new"
           : result > Op::getStateNames().size() ? "rounded"
                                                 : Op::getStateNames()[result - 1];
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto update = cast<train::OptimizerInterface>(op);
    if (failed(checkFloats(op, update.getUpdatingGradient())))
      return failure();
    expose(l, update.getUpdatingGradient());
    SmallVector<Value> values, pointers;
    for (unsigned result = 0; result < update.getUpdates().size(); ++result)
      values.push_back(inheriting(l, result, *update.getUpdatedOperand(result)));
    if (Value rounded = update.getRounded())
      values.push_back(l.buffer(rounded));
    values.push_back(l.buffer(update.getUpdatingGradient()));
    llvm::BumpPtrAllocator memory;
    llvm::StringSaver saver(memory);
    SmallVector<StringRef> scalars;
    passScalars(update, l, scalars, pointers, saver);
    OpBuilder atTop(l.shared.module.getBody(), l.shared.module.getBody()->begin());
    FlatSymbolRefAttr kernel =
        l.shared.kernel(buildKernel(atTop, update), op->getName().stripDialect());
    bool onHost = offload::isMadeOnHost(op);
    l.create<UpdateOp>(kernel.getValue(), values, pointers, onHost ? l.scratch() : Value(),
                       l.elements(update.getUpdatedValue()), l.builder.getStrArrayAttr(scalars),
                       onHost ? tileOf(op) : 0, offload::isOnHost(update.getUpdatedValue()),
                       roundingOf(update));
    return success();
  }
};

//===------------------------------------------------------------------------------------------===//
// Norms
//===------------------------------------------------------------------------------------------===//

struct SquareSum : KernelInterface::ExternalModel<SquareSum, train::SquareSumOp> {
  StringRef resultName(Operation *, unsigned) const { return "squares"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    SmallVector<Value> values;
    SmallVector<int64_t> counts;
    for (Value value : op->getOperands()) {
      values.push_back(l.buffer(value));
      counts.push_back(l.elements(value));
    }
    l.create<rt::SquareSumOp>(l.result(0), values, counts);
    return success();
  }
};

struct Norm : KernelInterface::ExternalModel<Norm, train::NormOp> {
  StringRef resultName(Operation *, unsigned) const { return "norm"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    SmallVector<Value> squares =
        llvm::map_to_vector(op->getOperands(), [&](Value value) { return l.buffer(value); });
    SmallVector<int64_t> counts =
        llvm::map_to_vector(op->getOperands(), [&](Value value) { return l.elements(value); });
    l.create<rt::NormOp>(l.result(0), squares, counts);
    if (std::optional<ArrayAttr> names = cast<train::NormOp>(op).getParameters()) {
      SmallVector<int64_t> numbers;
      for (auto name : names->getAsRange<FlatSymbolRefAttr>()) {
        auto number = l.shared.parameterIndex.find(name.getValue());
        if (number == l.shared.parameterIndex.end())
          return op->emitOpError() << "names " << name << ", which is not a parameter";
        numbers.push_back(number->second);
      }
      l.create<FirstNonfiniteOp>(squares, counts, numbers);
    }
    bool scaled =
        llvm::any_of(op->getUsers(), [](Operation *user) { return isa<amp::UnscaleOp>(user); });
    if (!scaled) // else what is left of it without the loss scale is reported
      l.create<ReportOp>("gradientNorm", l.result(0), Value());
    return success();
  }
};

/// An optimizer's assignments but for the last one, which takes the step; then what is measured of them.
struct DirectionSquares
    : KernelInterface::ExternalModel<DirectionSquares, train::DirectionSquaresOp> {
  StringRef resultName(Operation *, unsigned result) const {
    return result == 0 ? "lengths" : "largest";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    if (failed(checkFloats(op, op->getOperand(1))))
      return failure();
    auto squares = cast<train::DirectionSquaresOp>(op);
    std::optional<RegisteredOperationName> name =
        train::findOptimizer(op->getContext(), squares.getOptimizer());
    auto *optimizer = name->getInterface<train::OptimizerInterface>();
    UpdateText text;
    text.values.push_back("p");
    llvm::append_range(text.values, optimizer->getStateNames());
    text.values.push_back("g");
    unsigned step = 2 + optimizer->getStateNames().size();
    SmallVector<unsigned> arrays = {0};
    llvm::append_range(arrays, llvm::seq(2u, step));
    arrays.push_back(1);
    SmallVector<Value> values = {l.result(0)}, pointers = {l.operand(step)};
    if (squares.getLargest())
      values.push_back(l.result(1));
    for (unsigned operand : arrays) {
      text.types.push_back(TypeAttr::get(getElementTypeOrSelf(op->getOperand(operand))));
      values.push_back(l.operand(operand));
    }
    text.scalars = {"t"};
    text.hasScale = op->getNumOperands() > step + 1;
    llvm::BumpPtrAllocator memory;
    llvm::StringSaver saver(memory);
    SmallVector<StringRef> scalars = {scalarText(l, 1, saver)};
    for (train::Hyperparameter each : optimizer->getHyperparameters()) {
      text.scalars.push_back(each.name);
      auto value = cast<FloatAttr>(squares.getHyper().get(each.name));
      scalars.push_back(hyperText(l, each.name, value.getValueAsDouble(), saver));
    }
    if (text.hasScale) {
      scalars.push_back(scalarText(l, 1, saver));
      pointers.push_back(l.operand(step + 1));
    }
    OpBuilder atTop(l.shared.module.getBody(), l.shared.module.getBody()->begin());
    SmallVector<train::Assignment> direction = optimizer->getAssignments(),
                                   largest = optimizer->getLargest();
    direction.pop_back();
    llvm::append_range(direction, largest);
    UpdateKernelOp kernel = text.build(
        atTop, optimizer->getPreparations(), direction, optimizer->getSquared(),
        llvm::map_to_vector(largest, [](const train::Assignment &each) { return each.target; }));
    l.create<UpdateOp>(
        l.shared.kernel(kernel, (squares.getOptimizer() + "_squares").str()).getValue(), values,
        pointers, Value(), l.elements(op->getOperand(0)), l.builder.getStrArrayAttr(scalars),
        /*tile=*/0, /*parameterOnHost=*/false, RoundingAttr());
    return success();
  }
};

/// Its states change in place.
struct FrozenRatio : KernelInterface::ExternalModel<FrozenRatio, train::FrozenRatioOp> {
  static constexpr unsigned kFirstState = 3; // among operands; among results 1
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned result) const {
    return result == 0 ? SmallVector<unsigned>{} : SmallVector<unsigned>{kFirstState + result - 1};
  }
  StringRef resultName(Operation *, unsigned result) const {
    return result == 0   ? "ratio"
           : result == 1 ? train::FrozenTrustRatioOp::kCoefficient
                         : train::FrozenTrustRatioOp::kFactor;
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto ratio = cast<train::FrozenRatioOp>(op);
    Value coefficient = inheriting(l, 1, kFirstState), factor = inheriting(l, 2, kFirstState + 1);
    l.create<rt::FrozenRatioOp>(l.result(0), coefficient, factor, l.buffer(ratio.getSquares()),
                                l.buffer(ratio.getLargest()), l.buffer(ratio.getT()),
                                ratio.getApply() ? l.buffer(ratio.getApply()) : Value(),
                                ratio.getFreezeAttr(), ratio.getLeastAttr(), ratio.getMostAttr(),
                                ratio.getCoeffBetaAttr(), ratio.getFactorMinAttr(),
                                ratio.getFactorMaxAttr(), ratio.getFactorThresholdAttr());
    return success();
  }
};

struct Ratio : KernelInterface::ExternalModel<Ratio, train::RatioOp> {
  StringRef resultName(Operation *, unsigned) const { return "ratio"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto ratio = cast<train::RatioOp>(op);
    l.create<rt::RatioOp>(l.result(0), l.operand(0), ratio.getLeastAttr(), ratio.getMostAttr());
    return success();
  }
};

struct Clip : KernelInterface::ExternalModel<Clip, train::ClipOp> {
  StringRef resultName(Operation *, unsigned) const { return "scale"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto clip = cast<train::ClipOp>(op);
    l.create<rt::ClipOp>(l.result(0), l.operand(0),
                         l.shared.unlessShared("max_norm", clip.getMaxNormAttr()));
    return success();
  }
};

template <typename... Ops> void attachAll(MLIRContext *context) {
  (Ops::template attachInterface<Update<Ops>>(*context), ...);
}

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
  using namespace partita::train;
  attachAll<
#define GET_OP_LIST
#include "dialects/Train/Optimizers.cpp.inc"
      >(context);
  train::SquareSumOp::attachInterface<SquareSum>(*context);
  train::NormOp::attachInterface<Norm>(*context);
  train::ClipOp::attachInterface<Clip>(*context);
  train::DirectionSquaresOp::attachInterface<DirectionSquares>(*context);
  train::RatioOp::attachInterface<Ratio>(*context);
  train::FrozenRatioOp::attachInterface<FrozenRatio>(*context);
  train::StepNumberOp::attachInterface<StepNumber>(*context);
  train::RandomKeyOp::attachInterface<RandomKey>(*context);
  train::LearningRateOp::attachInterface<LearningRate>(*context);
}
