//===- Elementwise.cpp - one generated kernel per distinct scalar expression
//-----------------------------===//
//
// The op states its expression; the loop nest around it follows from how the operands lie in
// memory: neighbouring dimensions that all operands walk through alike become one loop, a broadcast
// operand stays where it is (stride 0), a splat constant is a literal in the text. A dense kernel
// has one loop, a bias that is added to rows two.
//
//===------------------------------------------------------------------------------------------------===//

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

std::string literalText(double value, Type element) {
  if (element.isF32())
    return floatLiteral(value);
  if (isa<FloatType>(element))
    return doubleLiteral(value);
  return element.isInteger(1) ? (value != 0 ? "true" : "false")
                              : std::to_string(static_cast<int64_t>(value));
}

LogicalResult checkTypes(Operation *op) {
  auto check = [&](Value value) -> LogicalResult {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    if (element.isF32() || element.isInteger(64) || element.isInteger(32) || element.isInteger(1))
      return success();
    return op->emitOpError() << "has no kernel on this target for " << value.getType();
  };
  for (Value value : op->getOperands())
    if (failed(check(value)))
      return failure();
  return check(op->getResult(0));
}

/// Launches `expression` over the op's operands, whose names in it are `names`.
LogicalResult lowerExpression(Operation *op, Lowering &l, StringRef expression,
                              ArrayRef<StringRef> names) {
  if (failed(checkTypes(op)))
    return failure();
  OpBuilder &b = l.builder;
  Value result = op->getResult(0);
  SmallVector<Value> buffers = {l.result(0)};
  SmallVector<View> views = {l.view(result)};
  SmallVector<Attribute> inputs, inputTypes;
  llvm::StringMap<std::string> literals;
  for (auto [operand, name] : llvm::zip(op->getOperands(), names)) {
    Type element = l.type(operand).getElementType();
    if (std::optional<double> value = l.literal(operand)) {
      literals[name] = literalText(*value, element);
      continue;
    }
    buffers.push_back(l.buffer(operand));
    views.push_back(l.view(operand));
    inputs.push_back(b.getStringAttr(name));
    inputTypes.push_back(TypeAttr::get(element));
  }
  std::string text = floatExpression(expression, [&](StringRef name) -> std::string {
    auto literal = literals.find(name);
    return literal == literals.end() ? ("$" + name).str() : literal->second;
  });
  LoopNest nest = collapse(views);
  SmallVector<int64_t> steps, outer;
  for (ArrayRef<int64_t> strides : nest.strides) {
    steps.push_back(strides.back());
    outer.append(strides.begin(), strides.end() - 1);
  }
  Type element = l.type(result).getElementType();
  OpBuilder atTop(l.shared.module.getBody(), l.shared.module.getBody()->begin());
  auto kernel = KernelOp::create(atTop, b.getUnknownLoc(), "kernel", nest.sizes.size(),
                                 b.getStrArrayAttr({"out"}), b.getTypeArrayAttr({element}),
                                 b.getArrayAttr(inputs), b.getArrayAttr(inputTypes), steps,
                                 b.getStrArrayAttr({}), b.getStrArrayAttr({text}));
  FlatSymbolRefAttr symbol = l.shared.kernel(kernel, ("map_" + op->getName().stripDialect()).str());
  l.create<LaunchOp>(symbol.getValue(), buffers, nest.sizes, outer);
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
    auto scalar = cast<ScalarInterface>(op);
    return lowerExpression(op, l, scalar.getScalarExpression(), scalar.getScalarOperands());
  }
};

struct Cast : KernelInterface::ExternalModel<Cast, tx::CastOp> {
  bool acceptsOperand(Operation *, unsigned, const View &view) const { return isWalkable(view); }
  bool acceptsLiteral(Operation *, unsigned) const { return true; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    Type element = cast<tx::CastOp>(op).getType().getElementType();
    StringRef expression = element.isInteger(1)    ? "x != 0"
                           : element.isF32()       ? "float(x)"
                           : element.isInteger(32) ? "int32_t(x)"
                                                   : "int64_t(x)";
    return lowerExpression(op, l, expression, {"x"});
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
#include "dialects/Tx/TxActivation.cpp.inc"
      >(context);
  tx::CastOp::attachInterface<Cast>(*context);
}
