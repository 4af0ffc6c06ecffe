//===- Elementwise.cpp - arithmetic, functions of one number, casts ---------------------------===//

#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/Operators/Math.h"
#include "lib/Import/Operators/Scalars.h"
#include "lib/Import/Roundings.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// Folds when everything is known and small enough.
bool fold(Node &node, DType type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<Tensor *> tensors,
          const ScalarFunction &function, LogicalResult &result) {
  llvm::SmallVector<HostTensor> hosts;
  for (Tensor *tensor : tensors) {
    if (!tensor->host)
      return false;
    hosts.push_back(*tensor->host);
  }
  MaybeHost host = node.folder().elementwise(type, shape, hosts, function);
  if (!host)
    return false;
  result = node.set(0, *host);
  return true;
}

LogicalResult onlyAtImport(Node &node, const Tensor &tensor) {
  return node.error() << "on " << typeText(tensor)
                      << " that depends on the model's input is not supported";
}

/// Op is void for operators that `tx` does not have: these must fold.
template <typename Op, const ScalarFunction &function> LogicalResult unary(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  Tensor *x = node.input(0);
  LogicalResult result = success();
  if (fold(node, x->type, x->shape, x, function, result))
    return result;
  if constexpr (std::is_void_v<Op>) {
    return onlyAtImport(node, *x);
  } else {
    if (!isFloat(x->type))
      return onlyAtImport(node, *x);
    if (failed(node.emittable(x)))
      return failure();
    return node.set(0, node.emit<Op>(node.value(x)));
  }
}

/// Of integers too, by a formula of comparisons.
template <typename Op, const ScalarFunction &function, Value (*ofInts)(Math &, Value)>
LogicalResult unaryOrInts(Node &node) {
  Tensor *x = node.inputCount() == 1 ? node.input(0) : nullptr;
  if (!x || x->host || isFloat(x->type) || x->type == DType::boolean)
    return unary<Op, function>(node);
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  return node.set(0, ofInts(m, node.value(x)));
}

Value absoluteInts(Math &m, Value x) { return m.apply<tx::MaxOp>(x, m.negate(x)); }
Value signOfInts(Math &m, Value x) {
  Value one = m.like(x, 1), zero = m.like(x, 0);
  Value below = m.select(m.apply<tx::LessOp>(x, zero), m.negate(one), zero);
  return m.select(m.apply<tx::GreaterOp>(x, zero), one, below);
}

/// Checks two operands of one type and broadcasts their shapes.
LogicalResult sameTypes(Node &node, llvm::ArrayRef<Tensor *> tensors, Shape &shape) {
  for (Tensor *tensor : tensors)
    if (tensor->type != tensors[0]->type)
      return node.error() << "operands have different types: " << typeText(*tensors[0]) << " and "
                          << typeText(*tensor);
  return node.broadcastShape(tensors, shape);
}

template <typename Op, const ScalarFunction &function>
FailureOr<Tensor *> combine(Node &node, Tensor *a, Tensor *b) {
  Shape shape;
  if (failed(sameTypes(node, {a, b}, shape)))
    return failure();
  if (a->host && b->host)
    if (MaybeHost host = node.folder().elementwise(a->type, shape, {*a->host, *b->host}, function))
      return node.importer.create(*host);
  if constexpr (std::is_void_v<Op>) {
    return onlyAtImport(node, a->host ? *b : *a);
  } else {
    if (failed(node.emittable({a, b})))
      return failure();
    if (a->type == DType::boolean)
      return FailureOr<Tensor *>(node.error() << "on bool is not supported");
    return node.importer.create(node.emit<Op>(
        {node.broadcast(node.value(a), shape), node.broadcast(node.value(b), shape)}));
  }
}

template <typename Op, const ScalarFunction &function> LogicalResult binary(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  FailureOr<Tensor *> result = combine<Op, function>(node, node.input(0), node.input(1));
  return failed(result) ? failure() : node.set(0, *result);
}

/// All inputs by `combineTwo`, from the first one on.
FailureOr<Tensor *>
accumulate(Node &node, llvm::function_ref<FailureOr<Tensor *>(Tensor *, Tensor *)> combineTwo) {
  if (failed(node.arity(1, anyLater)))
    return failure();
  FailureOr<Tensor *> result = node.input(0);
  for (int64_t i = 1; i < node.inputCount(); ++i) {
    if (!node.input(i))
      return FailureOr<Tensor *>(node.error() << "input " << i << " is missing");
    result = combineTwo(*result, node.input(i));
    if (failed(result))
      return failure();
  }
  return result;
}

template <typename Op, const ScalarFunction &function> FailureOr<Tensor *> accumulate(Node &node) {
  return accumulate(node, [&](Tensor *a, Tensor *b) { return combine<Op, function>(node, a, b); });
}

template <typename Op, const ScalarFunction &function> LogicalResult variadic(Node &node) {
  FailureOr<Tensor *> result = accumulate<Op, function>(node);
  return failed(result) ? failure() : node.set(0, *result);
}

/// Of integers whose divisor is known: never by zero.
LogicalResult checkDivisor(Node &node) {
  Tensor *b = node.input(1);
  if (!b || isFloat(b->type) || !b->host)
    return success();
  bool hasZero = false;
  HostTensor distinct = b->host->withoutRepeats();
  forEachElement(distinct.shape(), {&distinct},
                 [&](llvm::ArrayRef<int64_t> at) { hasZero |= distinct.toInt(at[0]) == 0; });
  if (hasZero)
    return node.error() << "divides by zero";
  return success();
}

LogicalResult divide(Node &node) {
  if (failed(node.arity(2, 2)) || failed(checkDivisor(node)))
    return failure();
  return isFloat(node.input(0)->type) ? binary<tx::DivOp, scalars::div>(node)
                                      : binary<tx::QuotientOp, scalars::div>(node);
}

/// a - b floor(a / b) of floats: the remainder, and b more where their signs differ.
LogicalResult floatModulo(Node &node) {
  FailureOr<Tensor *> rest =
      combine<tx::RemainderOp, scalars::mod>(node, node.input(0), node.input(1));
  if (failed(rest) || (*rest)->host)
    return failed(rest) ? failure() : node.set(0, *rest);
  Math m(node);
  Value r = node.value(*rest), b = node.value(node.input(1));
  Value signs = m.mul(m.apply<tx::SignOp>(r), m.apply<tx::SignOp>(b));
  return node.set(0, m.select(m.apply<tx::LessOp>(signs, m.like(signs, 0)), m.add(r, b), r));
}

LogicalResult modulo(Node &node) {
  constexpr int64_t floorsFloats = 28; // since this opset
  int64_t likeC = 0;
  if (failed(node.arity(2, 2)) || failed(node.attribute("fmod", likeC)) ||
      failed(checkDivisor(node)))
    return failure();
  if (!likeC && isFloat(node.input(0)->type))
    return node.version >= floorsFloats
               ? floatModulo(node)
               : node.error() << "of floats needs attribute 'fmod' = 1 in opset " << node.version;
  return likeC ? binary<tx::RemainderOp, scalars::fmod>(node)
               : binary<tx::ModuloOp, scalars::mod>(node);
}

/// The sum divided by their number.
LogicalResult mean(Node &node) {
  FailureOr<Tensor *> sum = accumulate<tx::AddOp, scalars::add>(node);
  if (failed(sum))
    return failure();
  if (!isFloat((*sum)->type))
    return onlyAtImport(node, **sum);
  if (node.inputCount() == 1)
    return node.set(0, *sum);
  if (failed(node.emittable(*sum)))
    return failure();
  return node.set(0, Math(node).div(node.value(*sum), static_cast<double>(node.inputCount())));
}

/// What gets the gradient where the operands of a maximum or minimum are equal.
enum class Tie { Value, Bound, Both };

/// As PyTorch has it: a clamp passes the gradient on at its bounds, hardtanh and relu6 do not, and
/// maximum and minimum send half of it to each. Where nothing is recorded, a Clip is a clamp, unless it
/// is relu6's.
Tie tieOf(Node &node, Tensor *low = nullptr, Tensor *high = nullptr) {
  std::optional<ProgramCall> call = callOf(node.proto);
  llvm::StringRef operation = call ? call->operation : "";
  if (operation.starts_with("hardtanh") || operation.starts_with("relu6"))
    return Tie::Bound;
  if (operation.starts_with("clamp") || operation.starts_with("clip"))
    return Tie::Value;
  if (node.proto.op_type() != "Clip")
    return Tie::Both;
  auto is = [](Tensor *bound, double number) {
    return bound && bound->host && bound->host->size() == 1 && isFloat(bound->type) &&
           bound->host->onlyDouble() == number;
  };
  return !call && is(low, 0) && is(high, 6) ? Tie::Bound : Tie::Value;
}

template <typename Op, const ScalarFunction &function>
FailureOr<Tensor *> extreme(Node &node, Tensor *x, Tensor *bound, Tie tie) {
  if (tie == Tie::Bound)
    std::swap(x, bound);
  FailureOr<Tensor *> result = combine<Op, function>(node, x, bound);
  if (succeeded(result) && tie == Tie::Both && isFloat((*result)->type) && !(*result)->host)
    if (auto op = (*result)->value.template getDefiningOp<Op>())
      op.setShared(true);
  return result;
}

template <typename Op, const ScalarFunction &function> LogicalResult extremes(Node &node) {
  Tie tie = tieOf(node);
  FailureOr<Tensor *> result = accumulate(
      node, [&](Tensor *a, Tensor *b) { return extreme<Op, function>(node, a, b, tie); });
  return failed(result) ? failure() : node.set(0, *result);
}

/// max(low, min(high, x)), the bounds as inputs since opset 11; where they cross, all is `high`.
LogicalResult clip(Node &node) {
  if (failed(node.arity(1, node.version < 11 ? 1 : 3)))
    return failure();
  Tensor *x = node.input(0), *low = node.input(1), *high = node.input(2);
  if (node.version < 11) {
    float least = -std::numeric_limits<float>::infinity(), most = -least;
    if (failed(node.attribute("min", least)) || failed(node.attribute("max", most)))
      return failure();
    if (!isFloat(x->type))
      return onlyAtImport(node, *x);
    low = node.importer.create(HostTensor::scalar(x->type, least));
    high = node.importer.create(HostTensor::scalar(x->type, most));
  }
  for (Tensor *bound : {low, high})
    if (bound && (*elementCount(bound->shape) != 1 || bound->shape.size() > x->shape.size()))
      return node.error() << "has a bound that is " << typeText(*bound) << ", expected a scalar";
  FailureOr<Tensor *> result = x;
  Tie tie = tieOf(node, low, high);
  if (low)
    result = extreme<tx::MaxOp, scalars::maximum>(node, *result, low, tie);
  if (succeeded(result) && high)
    result = extreme<tx::MinOp, scalars::minimum>(node, *result, high, tie);
  return failed(result) ? failure() : node.set(0, *result);
}

/// Exporters write logsigmoid as the logarithm of a sigmoid, which underflows; -softplus(-x) is
/// the same.
LogicalResult logarithm(Node &node) {
  Tensor *x = node.inputCount() == 1 ? node.input(0) : nullptr;
  auto sigmoid = x && x->value ? x->value.getDefiningOp<tx::SigmoidOp>() : nullptr;
  if (!sigmoid)
    return unary<tx::LogOp, scalars::log>(node);
  Math m(node);
  return node.set(0, m.negate(m.apply<tx::SoftplusOp>(m.negate(sigmoid.getX()))));
}

LogicalResult negate(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  Tensor *x = node.input(0);
  if (x->host || isFloat(x->type))
    return unary<tx::NegOp, scalars::neg>(node);
  if (failed(node.emittable(x)))
    return failure();
  Value zero = tx::createSplat(node.builder(), node.loc, node.value(x).getType(), 0);
  return node.set(0, node.emit<tx::SubOp>({zero, node.value(x)}));
}

/// The exponents of LayerNorm and GELU become products: cheaper, and one spelling less to raise.
LogicalResult power(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  Tensor *x = node.input(0), *exponent = node.input(1);
  Shape shape;
  if (failed(node.broadcastShape({x, exponent}, shape)))
    return failure();
  LogicalResult result = success();
  if (fold(node, x->type, shape, {x, exponent}, scalars::pow, result))
    return result;
  if (x->type == DType::boolean)
    return onlyAtImport(node, *x);
  if (failed(node.emittable({x, exponent})))
    return failure();
  Math m(node);
  Value base = node.broadcast(node.value(x), shape);
  if (!isFloat(x->type)) { // exact in double precision up to 2^53
    Type wide = node.builder().getF64Type();
    Value power = m.apply<tx::PowOp>(m.cast(base, wide), m.cast(node.value(exponent), wide));
    return node.set(0, m.cast(power, getElementTypeOrSelf(base.getType())));
  }
  if (exponent->host && exponent->host->size() == 1) {
    double known = exponent->host->onlyDouble();
    if (known == 0) // the general gradient, 0 times a reciprocal, is NaN at zero
      return node.set(0, m.like(base, 1));
    if (known == 1)
      return node.set(0, base);
    if (known == 2)
      return node.set(0, node.emit<tx::MulOp>({base, base}));
    if (known == 3)
      return node.set(0, node.emit<tx::MulOp>({node.emit<tx::MulOp>({base, base}), base}));
    if (known == 0.5)
      return node.set(0, node.emit<tx::SqrtOp>(base));
    if (known == -0.5)
      return node.set(0, node.emit<tx::RsqrtOp>(base));
    if (known == -1)
      return node.set(0, node.emit<tx::ReciprocalOp>(base));
  }
  Value power = node.value(exponent);
  Type element = getElementTypeOrSelf(base.getType());
  if (getElementTypeOrSelf(power.getType()) != element)
    power = tx::CastOp::create(node.builder(), node.loc,
                               RankedTensorType::get(shapeOf(power), element), power);
  return node.set(0, node.emit<tx::PowOp>({base, node.broadcast(power, shape)}));
}

FailureOr<Tensor *> castTo(Node &node, Tensor *x, DType type) {
  if (x->type == type)
    return x;
  if (x->host)
    if (MaybeHost host = node.folder().cast(*x->host, type))
      return node.importer.create(*host);
  Type element = mlirType(type, node.importer.context());
  if (!element)
    return FailureOr<Tensor *>(node.error() << "to " << dtypeName(type)
                                            << " is not supported on values that depend on the "
                                               "model's input, which are "
                                            << valueTypeNames(node.importer.context())
                                            << ": cast to one of these types, and bound or round "
                                               "the numbers by clamp() and round()");
  if (failed(node.emittable(x)))
    return failure();
  auto cast = tx::CastOp::create(node.builder(), node.loc, RankedTensorType::get(x->shape, element),
                                 node.value(x));
  cast->setAttr(kCastNode, node.builder().getStringAttr(node.name));
  return node.importer.create(cast);
}

LogicalResult castOp(Node &node) {
  int64_t to = 0, saturate = 1;
  std::string roundMode; // the last two matter for 8-bit floats only, which are refused
  if (failed(node.arity(1, 1)) || failed(node.attribute("to", to)) ||
      failed(node.attribute("saturate", saturate)) ||
      failed(node.attribute("round_mode", roundMode)))
    return failure();
  std::optional<DType> type = dtypeFromOnnx(to);
  if (!type)
    return node.error() << "to " << dtypeName(to) << " is not supported, only to "
                        << valueTypeNames(node.importer.context());
  FailureOr<Tensor *> result = castTo(node, node.input(0), *type);
  return failed(result) ? failure() : node.set(0, *result);
}

LogicalResult castLike(Node &node) {
  int64_t saturate = 1;
  if (failed(node.arity(2, 2)) || failed(node.attribute("saturate", saturate)))
    return failure();
  FailureOr<Tensor *> result = castTo(node, node.input(0), node.input(1)->type);
  return failed(result) ? failure() : node.set(0, *result);
}

const OpRow elementwiseRows[] = {
    // Before opset 7 operands broadcast by an attribute.
    {"Add", "", 7, anyLater, binary<tx::AddOp, scalars::add>, OpEffect::Adds},
    OpRow{"Sub", "", 7, anyLater, binary<tx::SubOp, scalars::sub>, OpEffect::Adds}.inverting(),
    {"Mul", "", 7, anyLater, binary<tx::MulOp, scalars::mul>, OpEffect::Scales},
    OpRow{"Div", "", 7, anyLater, divide, OpEffect::Scales}.inverting(),
    {"Mod", "", 10, anyLater, modulo, OpEffect::Combines},
    {"Pow", "", 7, anyLater, power, OpEffect::Powers},
    {"Max", "", 8, anyLater, extremes<tx::MaxOp, scalars::maximum>, OpEffect::Bounds},
    {"Min", "", 8, anyLater, extremes<tx::MinOp, scalars::minimum>, OpEffect::Bounds},
    {"Sum", "", 8, anyLater, variadic<tx::AddOp, scalars::add>, OpEffect::Combines},
    {"Mean", "", 8, anyLater, mean, OpEffect::Combines},
    {"Clip", "", 6, anyLater, clip, OpEffect::Maps},
    {"Neg", "", 6, anyLater, negate, OpEffect::Negates},
    {"Abs", "", 6, anyLater, unaryOrInts<tx::AbsOp, scalars::absolute, absoluteInts>,
     OpEffect::Maps},
    {"Sign", "", 9, anyLater, unaryOrInts<tx::SignOp, scalars::sign, signOfInts>, OpEffect::Maps},
    {"Exp", "", 6, anyLater, unary<tx::ExpOp, scalars::exp>, OpEffect::Maps},
    {"Log", "", 6, anyLater, logarithm, OpEffect::Maps},
    {"Sqrt", "", 6, anyLater, unary<tx::SqrtOp, scalars::sqrt>, OpEffect::Maps},
    {"Reciprocal", "", 6, anyLater, unary<tx::ReciprocalOp, scalars::reciprocal>, OpEffect::Maps},
    {"Tanh", "", 6, anyLater, unary<tx::TanhOp, scalars::tanh>, OpEffect::Maps},
    {"Erf", "", 9, anyLater, unary<tx::ErfOp, scalars::erf>, OpEffect::Maps},
    {"Sigmoid", "", 6, anyLater, unary<tx::SigmoidOp, scalars::sigmoid>, OpEffect::Maps},
    {"Relu", "", 6, anyLater, unary<tx::ReluOp, scalars::relu>, OpEffect::Maps},
    {"Cos", "", 7, anyLater, unary<tx::CosOp, scalars::cos>, OpEffect::Turns},
    {"Sin", "", 7, anyLater, unary<tx::SinOp, scalars::sin>, OpEffect::Turns},
    {"Floor", "", 6, anyLater, unary<tx::FloorOp, scalars::floor>, OpEffect::Maps},
    {"Ceil", "", 6, anyLater, unary<tx::CeilOp, scalars::ceil>, OpEffect::Maps},
    {"Round", "", 11, anyLater, unary<tx::RoundOp, scalars::round>, OpEffect::Maps},
    {"Cast", "", 6, anyLater, castOp, OpEffect::Renames},
    {"CastLike", "", 15, anyLater, castLike, OpEffect::Renames},
};

} // namespace

llvm::ArrayRef<OpRow> elementwiseOps() { return elementwiseRows; }

} // namespace partita::importer
