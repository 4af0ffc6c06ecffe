//===- Elementwise.cpp - one generated kernel per distinct scalar expression ------------------===//
//
// The op states its expression; the loop nest around it follows from how the operands lie in
// memory: neighbouring dimensions that all operands walk through alike become one loop, a broadcast
// operand stays where it is (stride 0), a splat constant is a literal in the text. A dense kernel
// has one loop, a bias that is added to rows two.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"
#include "partita/Lower/ScalarText.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// Loops over all operands at once, outermost first.
struct LoopNest {
  SmallVector<int64_t> sizes;
  SmallVector<SmallVector<int64_t>> strides; // per operand, per loop
};

LoopNest collapse(ArrayRef<View> views) {
  LoopNest nest;
  nest.strides.resize(views.size());
  for (size_t dim = 0; dim < views[0].shape.size(); ++dim) {
    int64_t size = views[0].shape[dim];
    if (size == 1)
      continue;
    bool joins = !nest.sizes.empty();
    for (auto [i, view] : llvm::enumerate(views))
      joins = joins && nest.strides[i].back() == view.strides[dim] * size;
    if (joins)
      nest.sizes.back() *= size;
    else
      nest.sizes.push_back(size);
    for (auto [i, view] : llvm::enumerate(views)) {
      if (joins)
        nest.strides[i].back() = view.strides[dim];
      else
        nest.strides[i].push_back(view.strides[dim]);
    }
  }
  if (nest.sizes.empty()) {
    nest.sizes.push_back(1);
    for (auto &strides : nest.strides)
      strides.push_back(1); // one element: the dense kernel will do
  }
  return nest;
}

/// A kernel's loop can walk through it: its last dimension is contiguous or repeated.
bool isWalkable(const View &view) {
  for (size_t dim = view.shape.size(); dim-- > 0;)
    if (view.shape[dim] != 1)
      return view.strides[dim] == 0 || view.strides[dim] == 1;
  return true;
}

/// The C++ name of what an element is computed with: of 16-bit floats floats.
StringRef elementText(Type element) {
  return isa<FloatType>(element) ? "float"
         : element.isInteger(64) ? "int64_t"
         : element.isInteger(32) ? "int32_t"
                                 : "bool";
}

/// A constant in an expression. The type of integers is written out: functions such as
/// `select` are found by it.
std::string literalText(TypedAttr value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    std::string text = floatLiteral(number.getValueAsDouble());
    return text[0] == '-' ? "(" + text + ")" : text;
  }
  APInt number = cast<IntegerAttr>(value).getValue();
  if (number.getBitWidth() == 1)
    return number.isZero() ? "false" : "true";
  if (number.isMinSignedValue()) // there is no such literal
    return "INT" + std::to_string(number.getBitWidth()) + "_MIN";
  return elementText(value.getType()).str() + "(" + std::to_string(number.getSExtValue()) + ")";
}

/// The C++ expression of an elementwise op; `text` has its operands.
std::string expressionOf(Operation *op, ArrayRef<std::string> text) {
  if (auto cast = dyn_cast<tx::CastOp>(op)) {
    Type element = cast.getType().getElementType();
    if (isa<FloatType>(element) && isa<FloatType>(cast.getX().getType().getElementType()))
      return text[0]; // what stores it rounds it
    return element.isInteger(1) ? "(" + text[0] + " != 0)"
                                : elementText(element).str() + "(" + text[0] + ")";
  }
  auto scalar = cast<ScalarInterface>(op);
  SmallVector<StringRef> names = scalar.getScalarOperands();
  return floatExpression(scalar.getScalarExpression(), [&](StringRef name) -> std::string {
    for (auto [i, known] : llvm::enumerate(names))
      if (known == name)
        return text[i];
    return name.str();
  });
}

/// The kernel that computes an op's results, being put together.
class LoopBuilder {
public:
  LoopBuilder(Operation *op, Lowering &l) : l(l) {
    for (OpResult result : op->getResults())
      if (l.hasMemory(result))
        add(result,
            op->getNumResults() == 1 ? "out" : "out" + std::to_string(result.getResultNumber()),
            outputs, outputTypes);
  }

  /// The text of an operand: a literal, or `$name` for its element. Operands that are the same memory, such
  /// as an activation and itself behind the barrier of a recomputation, are one.
  std::string input(Value operand, StringRef name) {
    if (TypedAttr value = l.literal(operand))
      return literalText(value);
    Type element = l.type(operand).getElementType();
    for (auto [i, type] : llvm::enumerate(inputTypes))
      if (size_t at = outputs.size() + i; buffers[at] == l.buffer(operand) &&
                                          views[at] == l.view(operand) &&
                                          cast<TypeAttr>(type).getValue() == element)
        return elementOf(element, cast<StringAttr>(inputs[i]).getValue());
    add(operand, name, inputs, inputTypes);
    return elementOf(element, name);
  }

  void launch(ArrayRef<std::string> locals, ArrayRef<std::string> expressions, StringRef name) {
    LoopNest nest = collapse(views);
    SmallVector<int64_t> steps, outer;
    for (ArrayRef<int64_t> strides : nest.strides) {
      steps.push_back(strides.back());
      outer.append(strides.begin(), strides.end() - 1);
    }
    OpBuilder &b = l.builder;
    SmallVector<StringRef> localRefs(locals.begin(), locals.end()),
        expressionRefs(expressions.begin(), expressions.end());
    OpBuilder atTop(l.shared.module.getBody(), l.shared.module.getBody()->begin());
    auto kernel = KernelOp::create(atTop, b.getUnknownLoc(), "kernel", nest.sizes.size(),
                                   b.getArrayAttr(outputs), b.getArrayAttr(outputTypes),
                                   b.getArrayAttr(inputs), b.getArrayAttr(inputTypes), steps,
                                   b.getStrArrayAttr(localRefs), b.getStrArrayAttr(expressionRefs));
    l.create<LaunchOp>(l.shared.kernel(kernel, name).getValue(), buffers, nest.sizes, outer);
  }

private:
  static std::string elementOf(Type type, StringRef name) {
    return isShortFloat(type) ? ("float($" + name + ")").str() : ("$" + name).str();
  }

  void add(Value tensor, const llvm::Twine &name, SmallVector<Attribute> &names,
           SmallVector<Attribute> &types) {
    buffers.push_back(l.buffer(tensor));
    views.push_back(l.view(tensor));
    names.push_back(l.builder.getStringAttr(name));
    types.push_back(TypeAttr::get(l.type(tensor).getElementType()));
  }

  Lowering &l;
  SmallVector<Value> buffers;
  SmallVector<View> views;
  SmallVector<Attribute> outputs, outputTypes, inputs, inputTypes;
};

LogicalResult lowerOne(Operation *op, Lowering &l, ArrayRef<StringRef> names) {
  LoopBuilder loop(op, l);
  SmallVector<std::string> operands;
  for (auto [operand, name] : llvm::zip(op->getOperands(), names))
    operands.push_back(loop.input(operand, name));
  loop.launch({}, {expressionOf(op, operands)}, ("map_" + op->getName().stripDialect()).str());
  return success();
}

template <typename Op> struct Elementwise : KernelInterface::ExternalModel<Elementwise<Op>, Op> {
  bool acceptsOperand(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsResult(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsLiteral(Operation *, unsigned) const { return true; }
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned) const {
    return llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()));
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerOne(op, l, cast<ScalarInterface>(op).getScalarOperands());
  }
};

struct Cast : KernelInterface::ExternalModel<Cast, tx::CastOp> {
  bool acceptsOperand(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsResult(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsLiteral(Operation *, unsigned) const { return true; }
  LogicalResult lower(Operation *op, Lowering &l) const { return lowerOne(op, l, {"x"}); }
};

/// Every op of the region is a local of the loop's body, then the outputs are stored: an output may
/// stand where an input stood. What is stored in 16 bits is rounded, also for the ops of the loop
/// that go on with it: they see what everybody else will; what is not stored is not rounded, unless
/// casts are the model's own.
struct Fusion : KernelInterface::ExternalModel<Fusion, tx::FusionOp> {
  bool acceptsOperand(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsResult(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsLiteral(Operation *, unsigned) const { return true; }
  bool needsResult(Operation *, unsigned) const { return false; }
  SmallVector<unsigned> inPlaceOperands(Operation *op, unsigned) const {
    return llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()));
  }

  LogicalResult lower(Operation *op, Lowering &l) const {
    auto fusion = cast<tx::FusionOp>(op);
    Block &body = fusion.getBody().front();
    LoopBuilder loop(op, l);
    llvm::DenseMap<Value, std::string> text;
    for (auto [i, argument, operand] : llvm::enumerate(body.getArguments(), fusion.getInputs()))
      text[argument] = loop.input(operand, inputName(i));
    SmallVector<std::string> locals, expressions;
    std::string name = "map";
    bool roundsCasts = areCastsOwn(l.shared.module);
    for (Operation &inner : body.without_terminator())
      if (failed(lowerInner(&inner, roundsCasts, text, locals, name)))
        return failure();
    for (auto [value, result] : llvm::zip(body.getTerminator()->getOperands(), op->getResults()))
      if (l.hasMemory(result))
        expressions.push_back(text[value]);
    loop.launch(locals, expressions, name);
    return success();
  }

private:
  /// a to h, then a8, a9, ...: letters after h count loops.
  static std::string inputName(size_t i) {
    return i < 8 ? std::string(1, static_cast<char>('a' + i)) : "a" + std::to_string(i);
  }

  /// Are all casts to 16 bits the model's own, or of the gradients of these? In a program whose parameters
  /// have 16 bits, others stand where results may be stored.
  static bool areCastsOwn(ModuleOp module) {
    return llvm::none_of(module.getOps<train::ParameterOp>(), [](train::ParameterOp parameter) {
      return isShortFloat(getElementTypeOrSelf(parameter.getType()));
    });
  }

  static LogicalResult lowerInner(Operation *inner, bool roundsCasts,
                                  llvm::DenseMap<Value, std::string> &text,
                                  SmallVector<std::string> &locals, std::string &name) {
    DenseElementsAttr constant;
    Value result = inner->getResult(0);
    Type element = cast<RankedTensorType>(result.getType()).getElementType();
    if (matchPattern(inner, m_Constant(&constant)) && constant.isSplat()) {
      text[result] = literalText(constant.getSplatValue<TypedAttr>());
      return success();
    }
    if (!tx::isElementwise(inner))
      return inner->emitOpError() << "has no scalar expression to put into a kernel";
    SmallVector<std::string> operands;
    for (Value operand : inner->getOperands())
      operands.push_back(text.lookup(operand));
    bool isStored =
        !result.hasOneUse() && llvm::any_of(inner->getUsers(), llvm::IsaPred<tx::FusedOp>);
    bool isOwn = tx::isOwnRounding(inner) || (roundsCasts && isa<tx::CastOp>(inner));
    bool rounds = isShortFloat(element) && (isStored || isOwn);
    if (auto cast = dyn_cast<tx::CastOp>(inner);
        cast && !rounds && isa<FloatType>(element) &&
        isa<FloatType>(cast.getX().getType().getElementType())) {
      text[result] = operands[0]; // a float all along
      return success();
    }
    std::string local = "t" + std::to_string(locals.size()), value = expressionOf(inner, operands);
    if (rounds)
      value = "float(" + cppName(element).str() + "(" + value + "))";
    locals.push_back("const " + elementText(element).str() + " " + local + " = " + value + ";");
    text[result] = local;
    name += ("_" + inner->getName().stripDialect()).str();
    return success();
  }
};

template <typename Op> void attachOne(MLIRContext *context) {
  if constexpr (Op::template hasTrait<ScalarInterface::Trait>())
    Op::template attachInterface<Elementwise<Op>>(*context);
}
template <typename... Ops> void attachAll(MLIRContext *context) { (attachOne<Ops>(context), ...); }

} // namespace

void rt::attachElementwiseKernels(MLIRContext *context) {
  using namespace partita::tx;
  attachAll<
#define GET_OP_LIST
#include "dialects/Tx/TxElementwise.cpp.inc"
      >(context);
  attachAll<
#define GET_OP_LIST
#include "dialects/Tx/TxRounding.cpp.inc"
      >(context);
  attachAll<
#define GET_OP_LIST
#include "dialects/Tx/TxActivation.cpp.inc"
      >(context);
  attachAll<tx::Fp8ScaleOp>(context);
  tx::CastOp::attachInterface<Cast>(*context);
  tx::FusionOp::attachInterface<Fusion>(*context);
}
