//===- Linear.cpp - MatMul and Gemm -----------------------------------------------------------===//

#include "lib/Import/File/Node.h"

using namespace mlir;

namespace partita::importer {
namespace {

LogicalResult checkFloats(Node &node, llvm::ArrayRef<Tensor *> tensors) {
  for (Tensor *tensor : tensors)
    if (!isFloat(tensor->type) || tensor->type != tensors[0]->type)
      return node.error() << "of " << typeText(*tensors[0]) << " and " << typeText(*tensor)
                          << ", expected floats of one type";
  return node.emittable(tensors);
}

LogicalResult innerSizes(Node &node, const Tensor &a, const Tensor &b) {
  return node.error() << "inner sizes differ: " << shapeText(a.shape) << " times "
                      << shapeText(b.shape);
}

Value scaled(Node &node, Value x, float factor) {
  if (factor == 1)
    return x;
  return node.emit<tx::MulOp>({x, tx::createSplat(node.builder(), node.loc, x.getType(), factor)});
}

/// A weight (two dimensions) multiplies the last dimension of anything; two batches of matrices
/// are broadcast to one batch shape. A vector counts as a matrix with one row or column.
LogicalResult matmul(Node &node, Tensor *a, Tensor *b, float alpha) {
  if (failed(checkFloats(node, {a, b})))
    return failure();
  if (a->shape.empty() || b->shape.empty())
    return node.error() << "of a scalar";
  Shape aShape(a->shape), bShape(b->shape);
  bool aVector = aShape.size() == 1, bVector = bShape.size() == 1;
  if (aVector)
    aShape.insert(aShape.begin(), 1);
  if (bVector)
    bShape.push_back(1);
  int64_t inner = aShape.back();
  if (inner != bShape[bShape.size() - 2])
    return innerSizes(node, *a, *b);
  Tensor aBatch, bBatch;
  aBatch.shape.assign(aShape.begin(), aShape.end() - 2);
  bBatch.shape.assign(bShape.begin(), bShape.end() - 2);
  Shape batch;
  if (failed(node.broadcastShape({&aBatch, &bBatch}, batch)))
    return failure();
  Shape shape(batch);
  if (!aVector)
    shape.push_back(aShape[aShape.size() - 2]);
  if (!bVector)
    shape.push_back(bShape.back());
  if (!elementCount(shape))
    return node.error() << "its result would have shape " << shapeText(shape)
                        << ", which is too large";
  Value left = node.reshape(node.value(a), aShape), right = node.reshape(node.value(b), bShape);
  if (bShape.size() == 2)
    return node.set(
        0, node.reshape(scaled(node, node.emit<tx::MatMulOp>({left, right}), alpha), shape));
  auto batched = [&](Value x, const Shape &matrix) {
    Shape full(batch);
    full.append(matrix.end() - 2, matrix.end());
    return node.broadcast(x, full);
  };
  Value matmul = node.emit<tx::BatchMatMulOp>({batched(left, aShape), batched(right, bShape)});
  return node.set(0, node.reshape(scaled(node, matmul, alpha), shape));
}

LogicalResult matMul(Node &node) {
  return failed(node.arity(2, 2)) ? failure() : matmul(node, node.input(0), node.input(1), 1);
}

/// onnxruntime's: alpha A' B', the last two dimensions of either transposed.
LogicalResult fusedMatMul(Node &node) {
  int64_t transposed[2] = {0, 0}, batchA = 0, batchB = 0;
  float alpha = 1;
  if (failed(node.arity(2, 2)) || failed(node.attribute("transA", transposed[0])) ||
      failed(node.attribute("transB", transposed[1])) ||
      failed(node.attribute("transBatchA", batchA)) ||
      failed(node.attribute("transBatchB", batchB)) || failed(node.attribute("alpha", alpha)))
    return failure();
  if (batchA || batchB)
    return node.error() << "with attribute 'transBatchA' or 'transBatchB' is not supported";
  Tensor *operands[2] = {node.input(0), node.input(1)};
  if (failed(checkFloats(node, operands)))
    return failure();
  for (int i = 0; i < 2; ++i) {
    int64_t rank = operands[i]->shape.size();
    if (!transposed[i] || rank < 2)
      continue;
    Shape permutation(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
    std::swap(permutation[rank - 1], permutation[rank - 2]);
    operands[i] = node.importer.create(node.transpose(node.value(operands[i]), permutation));
  }
  return matmul(node, operands[0], operands[1], alpha);
}

/// alpha A' B' + beta C
FailureOr<Value> gemmValue(Node &node) {
  int64_t transA = 0, transB = 0;
  float alpha = 1, beta = 1;
  if (failed(node.arity(2, 3)) || failed(node.attribute("transA", transA)) ||
      failed(node.attribute("transB", transB)) || failed(node.attribute("alpha", alpha)) ||
      failed(node.attribute("beta", beta)))
    return failure();
  Tensor *a = node.input(0), *b = node.input(1), *c = node.input(2);
  if (failed(checkFloats(node,
                         c ? llvm::ArrayRef<Tensor *>{a, b, c} : llvm::ArrayRef<Tensor *>{a, b})))
    return failure();
  if (a->shape.size() != 2 || b->shape.size() != 2)
    return FailureOr<Value>(node.error() << "of " << shapeText(a->shape) << " and "
                                         << shapeText(b->shape) << ", expected two matrices");
  if (a->shape[transA ? 0 : 1] != b->shape[transB ? 1 : 0])
    return FailureOr<Value>(innerSizes(node, *a, *b));
  Shape shape{a->shape[transA ? 1 : 0], b->shape[transB ? 0 : 1]};
  if (!elementCount(shape))
    return FailureOr<Value>(node.error() << "its result would have shape " << shapeText(shape)
                                         << ", which is too large");
  if (c) {
    Tensor target;
    target.shape = shape;
    Shape common;
    if (failed(node.broadcastShape({&target, c}, common)))
      return failure();
    if (common != shape)
      return FailureOr<Value>(node.error() << "adds " << shapeText(c->shape)
                                           << " to a matmul of shape " << shapeText(shape));
  }
  Value left = node.value(a), right = node.value(b);
  if (transA)
    left = node.transpose(left, {1, 0});
  Value matmul =
      transB ? node.emit<tx::MatMulNTOp>({left, right}) : node.emit<tx::MatMulOp>({left, right});
  matmul = scaled(node, matmul, alpha);
  if (!c || beta == 0)
    return matmul;
  Value bias = node.broadcast(scaled(node, node.value(c), beta), shape);
  return node.emit<tx::AddOp>({matmul, bias});
}

LogicalResult gemm(Node &node) {
  FailureOr<Value> result = gemmValue(node);
  return failed(result) ? failure() : node.set(0, *result);
}

/// onnxruntime's: a Gemm and the activation after it, an operator of the default domain whose
/// attributes have a prefix here.
LogicalResult fusedGemm(Node &node) {
  std::string name;
  if (failed(node.attribute("activation", name)))
    return failure();
  onnx::NodeProto proto;
  proto.set_name(node.name);
  proto.set_op_type(name);
  proto.add_input("matmul");
  proto.add_output("result");
  for (const char *attribute : {"alpha", "beta", "gamma"}) {
    float value = 0;
    std::string prefixed = std::string("activation_") + attribute;
    if (!node.has(prefixed))
      continue;
    if (failed(node.attribute(prefixed, value)))
      return failure();
    onnx::AttributeProto &copy = *proto.add_attribute();
    copy.set_name(attribute);
    copy.set_type(1); // a float
    copy.set_f(value);
  }
  FailureOr<Value> matmul = gemmValue(node);
  if (failed(matmul))
    return failure();
  if (name.empty())
    return node.set(0, *matmul);
  auto opset = node.frame.opsets->find("");
  int64_t version = opset == node.frame.opsets->end() ? 0 : opset->second;
  const OpRow *row = findOp("", name, version);
  if (!row || row->effect != OpEffect::Maps)
    return node.error() << "attribute 'activation' is " << quoted(name)
                        << ", which is not supported in opset " << version;
  Frame frame;
  frame.opsets = node.frame.opsets;
  frame.scope.values["matmul"] = node.importer.create(*matmul);
  Node activation(node.importer, proto, frame, version);
  if (failed(row->handler(activation)) || failed(activation.checkAllRead()))
    return failure();
  return node.set(0, frame.scope.find("result"));
}

const OpRow linearRows[] = {
    OpRow{"MatMul", "", 1, anyLater, matMul, OpEffect::Contracts}.weighted(1),
    OpRow{"Gemm", "", 7, anyLater, gemm}.weighted(1).biased(2),
    {"FusedMatMul", "com.microsoft", 1, anyLater, fusedMatMul},
    {"FusedGemm", "com.microsoft", 1, anyLater, fusedGemm},
};

} // namespace

llvm::ArrayRef<OpRow> linearOps() { return linearRows; }

} // namespace partita::importer
