//===- Activations.cpp - activations, most of them formulas -----------------------------------===//

#include "lib/Import/Operators/Math.h"

using namespace mlir;

namespace partita::importer {
namespace {

/// What a formula makes of x; it reads the attributes that it needs.
using Formula = FailureOr<Value> (*)(Node &node, Math &m, Value x);

template <Formula formula> LogicalResult activation(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  Tensor *x = node.input(0);
  if (!isFloat(x->type))
    return node.error() << "of " << typeText(*x) << ", expected floats";
  if (failed(node.emittable(x)))
    return failure();
  Math m(node);
  FailureOr<Value> result = formula(node, m, node.value(x));
  return failed(result) ? failure() : node.set(0, *result);
}

template <typename Op> FailureOr<Value> plain(Node &, Math &m, Value x) { return m.apply<Op>(x); }

FailureOr<Value> gelu(Node &node, Math &m, Value x) {
  std::string approximate = "none";
  if (failed(node.attribute("approximate", approximate)))
    return failure();
  if (approximate == "none")
    return m.apply<tx::GeluOp>(x);
  if (approximate == "tanh")
    return m.apply<tx::GeluTanhOp>(x);
  return FailureOr<Value>(node.error() << "attribute 'approximate' is " << quoted(approximate)
                                       << ", expected 'none' or 'tanh'");
}

/// x sigmoid(alpha x)
FailureOr<Value> swish(Node &node, Math &m, Value x) {
  float alpha = 1;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  return m.mul(x, m.apply<tx::SigmoidOp>(m.mul(x, alpha)));
}

/// above x where x > 0, below (e^(x / width) - 1) elsewhere; no overflow in the branch not taken.
Value exponentialUnit(Math &m, Value x, double above, double below, double width) {
  Value zero = m.like(x, 0);
  Value negative = m.apply<tx::MinOp>(x, zero);
  Value curve = m.mul(m.sub(m.apply<tx::ExpOp>(m.div(negative, width)), 1.0), below);
  return m.select(m.apply<tx::GreaterOp>(x, zero), m.mul(x, above), curve);
}

FailureOr<Value> elu(Node &node, Math &m, Value x) {
  float alpha = 1;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  return exponentialUnit(m, x, 1, alpha, 1);
}

FailureOr<Value> celu(Node &node, Math &m, Value x) {
  float alpha = 1;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  if (alpha == 0)
    return FailureOr<Value>(node.error() << "attribute 'alpha' is 0, by which it divides");
  return exponentialUnit(m, x, 1, alpha, alpha);
}

FailureOr<Value> selu(Node &node, Math &m, Value x) {
  float alpha = 1.67326319217681884765625f, gamma = 1.05070102214813232421875f;
  if (failed(node.attribute("alpha", alpha)) || failed(node.attribute("gamma", gamma)))
    return failure();
  return exponentialUnit(m, x, gamma, double(gamma) * alpha, 1);
}

FailureOr<Value> leakyRelu(Node &node, Math &m, Value x) {
  float alpha = 0.01f;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  return m.select(m.apply<tx::GreaterOp>(x, m.like(x, 0)), x, m.mul(x, alpha));
}

FailureOr<Value> thresholdedRelu(Node &node, Math &m, Value x) {
  float alpha = 1;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  return m.select(m.apply<tx::GreaterOp>(x, m.like(x, alpha)), x, m.like(x, 0));
}

/// max(0, min(1, alpha x + beta)); at a bound, which comes first, x gets no gradient, as in PyTorch.
Value hardSigmoidOf(Math &m, Value x, double alpha, double beta) {
  Value line = m.add(m.mul(x, alpha), beta);
  return m.apply<tx::MaxOp>(m.like(x, 0), m.apply<tx::MinOp>(m.like(x, 1), line));
}

FailureOr<Value> hardSigmoid(Node &node, Math &m, Value x) {
  float alpha = 0.2f, beta = 0.5f;
  if (failed(node.attribute("alpha", alpha)) || failed(node.attribute("beta", beta)))
    return failure();
  return hardSigmoidOf(m, x, alpha, beta);
}

FailureOr<Value> hardSwish(Node &, Math &m, Value x) {
  return m.mul(x, hardSigmoidOf(m, x, 1.0 / 6, 0.5));
}

FailureOr<Value> mish(Node &, Math &m, Value x) {
  return m.mul(x, m.apply<tx::TanhOp>(m.apply<tx::SoftplusOp>(x)));
}

FailureOr<Value> softsign(Node &, Math &m, Value x) {
  return m.div(x, m.add(m.apply<tx::AbsOp>(x), 1.0));
}

FailureOr<Value> quickGelu(Node &node, Math &m, Value x) {
  float alpha = 1.702f;
  if (failed(node.attribute("alpha", alpha)))
    return failure();
  return m.mul(x, m.apply<tx::SigmoidOp>(m.mul(x, asWritten(alpha))));
}

/// Op(x + bias), the bias along the last dimension.
template <typename Op> LogicalResult biased(Node &node) {
  if (failed(node.arity(1, 2)))
    return failure();
  Tensor *x = node.input(0), *bias = node.input(1);
  if (!isFloat(x->type) || (bias && (x->shape.empty() || bias->type != x->type ||
                                     bias->shape != Shape{x->shape.back()})))
    return node.error() << "of " << typeText(*x) << (bias ? " with bias " + typeText(*bias) : "")
                        << ", expected floats and a bias along their last dimension";
  if (failed(node.emittable(x)) || (bias && failed(node.emittable(bias))))
    return failure();
  Math m(node);
  Value value = node.value(x);
  return node.set(0, m.apply<Op>(bias ? m.add(value, node.value(bias)) : value));
}

/// x where x > 0, slope x elsewhere; the slope is broadcast to x.
LogicalResult pRelu(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  Tensor *x = node.input(0), *slope = node.input(1);
  Shape shape;
  if (!isFloat(x->type) || slope->type != x->type)
    return node.error() << "of " << typeText(*x) << " with slopes of " << typeText(*slope)
                        << ", expected floats of one type";
  if (failed(node.broadcastShape({x, slope}, shape)))
    return failure();
  if (shape != x->shape)
    return node.error() << "has slopes of shape " << shapeText(slope->shape) << " for "
                        << shapeText(x->shape);
  if (failed(node.emittable({x, slope})))
    return failure();
  Math m(node);
  Value v = node.value(x);
  return node.set(
      0, m.select(m.apply<tx::GreaterOp>(v, m.like(v, 0)), v, m.mul(v, node.value(slope))));
}

/// The swish of the first operand, times the second.
LogicalResult swiGlu(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  Tensor *gate = node.input(0), *linear = node.input(1);
  if (!isFloat(gate->type) || linear->type != gate->type || linear->shape != gate->shape)
    return node.error() << "of " << typeText(*gate) << " and " << typeText(*linear)
                        << ", expected floats of one type and shape";
  if (failed(node.emittable({gate, linear})))
    return failure();
  Math m(node);
  FailureOr<Value> gated = swish(node, m, node.value(gate));
  return failed(gated) ? failure() : node.set(0, m.mul(*gated, node.value(linear)));
}

const OpRow activationRows[] = {
    {"Gelu", "", 20, anyLater, activation<gelu>, OpEffect::Maps},
    {"Swish", "", 24, anyLater, activation<swish>, OpEffect::Maps},
    {"SwiGLU", "", 28, anyLater, swiGlu, OpEffect::Combines},
    {"Softplus", "", 1, anyLater, activation<plain<tx::SoftplusOp>>, OpEffect::Maps},
    {"Softsign", "", 1, anyLater, activation<softsign>, OpEffect::Maps},
    {"Elu", "", 6, anyLater, activation<elu>, OpEffect::Maps},
    {"Celu", "", 12, anyLater, activation<celu>, OpEffect::Maps},
    {"Selu", "", 6, anyLater, activation<selu>, OpEffect::Maps},
    {"LeakyRelu", "", 6, anyLater, activation<leakyRelu>, OpEffect::Maps},
    OpRow{"PRelu", "", 7, anyLater, pRelu, OpEffect::Combines}.learned(1), // the slope
    {"ThresholdedRelu", "", 10, anyLater, activation<thresholdedRelu>, OpEffect::Maps},
    {"HardSigmoid", "", 6, anyLater, activation<hardSigmoid>, OpEffect::Maps},
    {"HardSwish", "", 14, anyLater, activation<hardSwish>, OpEffect::Maps},
    {"Mish", "", 18, anyLater, activation<mish>, OpEffect::Maps},
    {"Gelu", "com.microsoft", 1, anyLater, activation<plain<tx::GeluOp>>, OpEffect::Maps},
    {"QuickGelu", "com.microsoft", 1, anyLater, activation<quickGelu>, OpEffect::Maps},
    {"FastGelu", "com.microsoft", 1, anyLater, biased<tx::GeluTanhOp>},
    {"BiasGelu", "com.microsoft", 1, anyLater, biased<tx::GeluOp>},
};

} // namespace

llvm::ArrayRef<OpRow> activationOps() { return activationRows; }

} // namespace partita::importer
