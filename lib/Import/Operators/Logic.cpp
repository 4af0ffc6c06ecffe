//===- Logic.cpp - comparisons, logic and Where -----------------------------------------------===//

#include "lib/Import/Operators/Math.h"
#include "lib/Import/Operators/Scalars.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// A comparison or a logical operator of two operands; the result is bool.
template <typename Op, const ScalarFunction &function> LogicalResult compare(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  Tensor *a = node.input(0), *b = node.input(1);
  Shape shape;
  if (a->type != b->type)
    return node.error() << "operands have different types: " << typeText(*a) << " and "
                        << typeText(*b);
  if (!function.takesFloats() && a->type != DType::boolean)
    return node.error() << "has operands of type " << dtypeName(a->type) << ", expected bool";
  if (failed(node.broadcastShape({a, b}, shape)))
    return failure();
  if (a->host && b->host)
    if (MaybeHost host =
            node.folder().elementwise(DType::boolean, shape, {*a->host, *b->host}, function))
      return node.set(0, *host);
  if constexpr (std::is_void_v<Op>) {
    return node.error() << "on values that depend on the model's input is not supported";
  } else {
    if (failed(node.emittable({a, b})))
      return failure();
    return node.set(0, node.emit<Op>({node.broadcast(node.value(a), shape),
                                      node.broadcast(node.value(b), shape)}));
  }
}

template <typename Op, const ScalarFunction &function> LogicalResult test(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  Tensor *x = node.input(0);
  if (isFloat(x->type) != function.takesFloats())
    return node.error() << "has an operand of type " << dtypeName(x->type);
  if (x->host)
    if (MaybeHost host = node.folder().elementwise(DType::boolean, x->shape, *x->host, function))
      return node.set(0, *host);
  if (failed(node.emittable(x)))
    return failure();
  if (!function.takesFloats() && x->type != DType::boolean)
    return node.error() << "has an operand of type " << dtypeName(x->type) << ", expected bool";
  return node.set(0, node.emit<Op>(node.value(x)));
}

/// Not equal.
LogicalResult exclusiveOr(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  Tensor *a = node.input(0), *b = node.input(1);
  if (node.allKnown() || a->type != DType::boolean || b->type != DType::boolean)
    return compare<void, scalars::logicalXor>(node);
  Shape shape;
  if (failed(node.broadcastShape({a, b}, shape)) || failed(node.emittable({a, b})))
    return failure();
  Math m(node);
  return node.set(0, m.apply<tx::NotOp>(m.apply<tx::EqualOp>(node.value(a), node.value(b))));
}

LogicalResult isInf(Node &node) {
  int64_t negative = 1, positive = 1;
  if (failed(node.arity(1, 1)) || failed(node.attribute("detect_negative", negative)) ||
      failed(node.attribute("detect_positive", positive)))
    return failure();
  Tensor *tensor = node.input(0);
  if (!isFloat(tensor->type))
    return node.error() << "has an operand of type " << dtypeName(tensor->type);
  if (failed(node.emittable(tensor)))
    return failure();
  Math m(node);
  Value x = node.value(tensor);
  double infinity = std::numeric_limits<double>::infinity();
  if (positive && negative)
    return node.set(0, m.apply<tx::EqualOp>(m.apply<tx::AbsOp>(x), m.like(x, infinity)));
  if (!positive && !negative)
    return node.set(0, m.constant(node.builder().getI1Type(), shapeOf(x), 0));
  return node.set(0, m.apply<tx::EqualOp>(x, m.like(x, positive ? infinity : -infinity)));
}

LogicalResult where(Node &node) {
  if (failed(node.arity(3, 3)))
    return failure();
  Tensor *condition = node.input(0), *a = node.input(1), *b = node.input(2);
  if (condition->type != DType::boolean || a->type != b->type)
    return node.error() << "selects between " << typeText(*a) << " and " << typeText(*b) << " by "
                        << typeText(*condition) << ", expected one type and a bool";
  Shape shape;
  if (failed(node.broadcastShape({condition, a, b}, shape)))
    return failure();
  if (condition->host && a->host && b->host)
    if (MaybeHost host = node.folder().select(shape, *condition->host, *a->host, *b->host))
      return node.set(0, *host);
  // A mask that lets everything through (or nothing) selects nothing.
  if (condition->host && condition->host->distinctSize() == 1) {
    Tensor *chosen = condition->host->onlyInt() ? a : b;
    if (chosen->shape == shape)
      return node.set(0, chosen);
  }
  if (failed(node.emittable({condition, a, b})))
    return failure();
  llvm::SmallVector<Value> operands;
  for (Tensor *tensor : {condition, a, b})
    operands.push_back(node.broadcast(node.value(tensor), shape));
  return node.set(0, node.emit<tx::SelectOp>(operands));
}

const OpRow logicRows[] = {
    {"Equal", "", 7, anyLater, compare<tx::EqualOp, scalars::equal>, OpEffect::Tests},
    {"Less", "", 7, anyLater, compare<tx::LessOp, scalars::less>, OpEffect::Tests},
    {"LessOrEqual", "", 12, anyLater, compare<tx::LessEqualOp, scalars::lessEqual>,
     OpEffect::Tests},
    {"Greater", "", 7, anyLater, compare<tx::GreaterOp, scalars::greater>, OpEffect::Tests},
    {"GreaterOrEqual", "", 12, anyLater, compare<tx::GreaterEqualOp, scalars::greaterEqual>,
     OpEffect::Tests},
    {"And", "", 7, anyLater, compare<tx::AndOp, scalars::logicalAnd>, OpEffect::Tests},
    {"Or", "", 7, anyLater, compare<tx::OrOp, scalars::logicalOr>, OpEffect::Tests},
    {"Xor", "", 7, anyLater, exclusiveOr, OpEffect::Tests},
    {"Not", "", 1, anyLater, test<tx::NotOp, scalars::logicalNot>, OpEffect::Tests},
    {"IsNaN", "", 9, anyLater, test<tx::IsNanOp, scalars::isNan>, OpEffect::Tests},
    {"IsInf", "", 10, anyLater, isInf, OpEffect::Tests},
    {"Where", "", 9, anyLater, where, OpEffect::Chooses},
};

} // namespace

llvm::ArrayRef<OpRow> logicOps() { return logicRows; }

} // namespace partita::importer
