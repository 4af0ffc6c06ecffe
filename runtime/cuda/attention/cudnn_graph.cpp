// Attention as operations of cuDNN (cudnn_graph.h).

#include "cuda/attention/cudnn_graph.h"

#ifdef PARTITA_RT_CUDNN

namespace partita_rt::cuda {

CudnnGraph::CudnnGraph(const CudnnLibrary &library, const FusedShape &shape)
    : library(library), shape(shape),
      type(shape.dtype == DType::Float16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16) {
  if (shape.backward)
    backward();
  else
    forward();
  graph.emplace_back(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.back()
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(steps.size()),
           steps.data())
      .finalize();
}

//===-- Tensors -----------------------------------------------------------------------------===//

CudnnGraph::Value CudnnGraph::value(int64_t operand, cudnnDataType_t type, const Layout &layout,
                                    bool number) {
  bool isOwn = operand < 0;
  CudnnDescriptor &tensor = parts.emplace_back(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, layout.strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, isOwn ? next++ : operand)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t(16));
  if (isOwn)
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  else
    given.push_back(operand);
  if (number)
    tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  tensor.finalize();
  return {tensor.handle(), layout.sizes, layout.strides};
}

CudnnGraph::Value CudnnGraph::own(cudnnDataType_t type, const Sizes &sizes) {
  Sizes strides{sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  return value(-1, type, {sizes, strides});
}

CudnnGraph::Value CudnnGraph::number(int64_t operand) {
  return value(operand, CUDNN_DATA_FLOAT, {{1, 1, 1, 1}, {1, 1, 1, 1}}, true);
}

/// [batch, heads, sequence] floats.
CudnnGraph::Value CudnnGraph::statistics(int64_t operand) {
  return value(
      operand, CUDNN_DATA_FLOAT,
      {{shape.batch, shape.heads, shape.sequence, 1}, {shape.rowsOfBatch, shape.sequence, 1, 1}});
}

CudnnGraph::Layout CudnnGraph::heads(const FusedShape::Strides &strides, int64_t heads,
                                     int64_t rows, int64_t width) const {
  return {{shape.batch, heads, rows, width}, {strides.batch, strides.head, strides.row, 1}};
}

CudnnGraph::Layout CudnnGraph::transposed(const Layout &l) {
  return {{l.sizes[0], l.sizes[1], l.sizes[3], l.sizes[2]},
          {l.strides[0], l.strides[1], l.strides[3], l.strides[2]}};
}

//===-- Operations --------------------------------------------------------------------------===//

void CudnnGraph::addOperation(CudnnDescriptor &operation) {
  operation.finalize();
  steps.push_back(operation.handle());
}

/// c = a b for each head; if b has fewer heads, several of a's share one.
void CudnnGraph::matmul(const Value &a, const Value &b, const Value &c) {
  CudnnDescriptor &kind = parts.emplace_back(library, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  addOperation(parts.emplace_back(library, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
                   .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.tensor)
                   .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.tensor)
                   .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.tensor)
                   .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind.handle()));
}

CudnnGraph::Value CudnnGraph::matmul(const Value &a, const Value &b, cudnnDataType_t type) {
  Value c = own(type, {a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[3]});
  matmul(a, b, c);
  return c;
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Value &x, const Value *b,
                           const Value *condition, const Value &y, cudnnDataType_t math,
                           int64_t axis) {
  CudnnDescriptor &kind = parts.emplace_back(library, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, math);
  if (axis >= 0)
    kind.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  kind.finalize();
  CudnnDescriptor &operation =
      parts.emplace_back(library, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind.handle())
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.tensor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.tensor);
  if (b)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->tensor);
  if (condition)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, condition->tensor);
  addOperation(operation);
}

CudnnGraph::Value CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Value &x) {
  Value y = own(CUDNN_DATA_FLOAT, x.sizes);
  pointwise(mode, x, nullptr, nullptr, y);
  return y;
}

CudnnGraph::Value CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Value &x, const Value &b) {
  Value y = own(CUDNN_DATA_FLOAT, x.sizes);
  pointwise(mode, x, &b, nullptr, y);
  return y;
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, const Value &x, const Value &y) {
  CudnnDescriptor &kind = parts.emplace_back(library, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op)
      .finalize();
  addOperation(parts.emplace_back(library, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
                   .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind.handle())
                   .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.tensor)
                   .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.tensor));
}

CudnnGraph::Value CudnnGraph::overRows(cudnnReduceTensorOp_t op, const Value &x) {
  Value y = own(CUDNN_DATA_FLOAT, {x.sizes[0], x.sizes[1], x.sizes[2], 1});
  reduce(op, x, y);
  return y;
}

CudnnGraph::Value CudnnGraph::relaid(const Value &x, cudnnDataType_t type, const Layout &layout) {
  Value y = value(-1, type, layout);
  addOperation(parts.emplace_back(library, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
                   .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.tensor)
                   .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.tensor));
  return y;
}

/// Sets scores of keys after their query to -inf.
CudnnGraph::Value CudnnGraph::hideLaterKeys(const Value &scores) {
  Value queries = own(CUDNN_DATA_INT32, scores.sizes), keys = own(CUDNN_DATA_INT32, scores.sizes);
  Value seen = own(CUDNN_DATA_BOOLEAN, scores.sizes), left = own(CUDNN_DATA_FLOAT, scores.sizes);
  Value hidden = number(kCudnnHidden);
  pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, queries, CUDNN_DATA_FLOAT, 2);
  pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, keys, CUDNN_DATA_FLOAT, 3);
  pointwise(CUDNN_POINTWISE_CMP_GE, queries, &keys, nullptr, seen, CUDNN_DATA_BOOLEAN);
  pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, &hidden, &seen, left);
  return left;
}

//===-- Attention ---------------------------------------------------------------------------===//

/// S = scale Q K^T;  m = max(S);  P = exp(S - m);  l = sum(P);  out = (P / l) V;  m + log(l)
void CudnnGraph::forward() {
  const FusedShape &s = shape;
  int64_t keyHeads = s.heads / s.groups;
  Value q = value(kFusedQ, type, heads(s.q, s.heads, s.sequence, s.headDim));
  Value keys = value(kFusedK, type, transposed(heads(s.k, keyHeads, s.keySequence, s.headDim)));
  Value v = value(kFusedV, type, heads(s.v, keyHeads, s.keySequence, s.valueDim));
  Value out = value(kFusedOut, type, heads(s.out, s.heads, s.sequence, s.valueDim));
  Value scale = number(kCudnnScale);

  Value scores = matmul(q, keys, CUDNN_DATA_FLOAT);
  scores = pointwise(CUDNN_POINTWISE_MUL, scores, scale);
  if (s.causal)
    scores = hideLaterKeys(scores);
  Value largest = overRows(CUDNN_REDUCE_TENSOR_MAX, scores);
  Value weights = pointwise(CUDNN_POINTWISE_EXP, pointwise(CUDNN_POINTWISE_SUB, scores, largest));
  Value total = overRows(CUDNN_REDUCE_TENSOR_ADD, weights);
  // Part of the pattern, even if it is not needed.
  Value log = pointwise(CUDNN_POINTWISE_LOG, total);
  Value stats = s.stats ? statistics(kFusedStats) : own(CUDNN_DATA_FLOAT, total.sizes);
  pointwise(CUDNN_POINTWISE_ADD, largest, &log, nullptr, stats);
  Value probabilities = own(type, scores.sizes);
  pointwise(CUDNN_POINTWISE_DIV, weights, &total, nullptr, probabilities);
  matmul(probabilities, v, out);
}

/// Computes the gradient of keys or values: a b for each head, summed over the heads that share
/// them.
void CudnnGraph::sumOfHeads(const Value &a, const Value &b, const Value &gradient) {
  if (shape.groups == 1)
    return matmul(a, b, gradient);
  reduce(CUDNN_REDUCE_TENSOR_ADD, matmul(a, b, type), gradient);
}

int64_t CudnnGraph::dqSumsBytes() const {
  return shape.backward && !shape.deterministic
             ? 4 * shape.batch * shape.heads * shape.sequence * shape.headDim
             : 0;
}

/// dQ is deterministic if it is a plain matmul: cuDNN keeps dS, rounded, in its workspace. Else the
/// matmul's result is a float tensor in memory, to which blocks of keys add in any order.
void CudnnGraph::queryGradient(const Value &ds, const Value &keys, const Value &dq) {
  if (shape.deterministic)
    return matmul(ds, keys, dq);
  int64_t row = shape.headDim, head = shape.sequence * row;
  Value sums = value(kCudnnDqSums, CUDNN_DATA_FLOAT,
                     heads({shape.heads * head, head, row}, shape.heads, shape.sequence, row));
  matmul(ds, keys, sums);
  pointwise(CUDNN_POINTWISE_IDENTITY, sums, nullptr, nullptr, dq);
}

/// delta = sum(dO O);  P = exp(scale Q K^T - log-sum-exp);  dV = P^T dO;  dP = dO V^T
/// dS = scale P (dP - delta);  dK = dS^T Q;  dQ = dS K
void CudnnGraph::backward() {
  const FusedShape &s = shape;
  int64_t keyHeads = s.heads / s.groups;
  Layout ofKeys = transposed(heads(s.k, keyHeads, s.keySequence, s.headDim));
  Layout ofValues = transposed(heads(s.v, keyHeads, s.keySequence, s.valueDim));
  Value q = value(kFusedQ, type, heads(s.q, s.heads, s.sequence, s.headDim));
  Value keys = value(kFusedK, type, ofKeys), values = value(kFusedV, type, ofValues);
  Value out = value(kFusedOut, type, heads(s.out, s.heads, s.sequence, s.valueDim));
  Value dout = value(kFusedDout, type, heads(s.dout, s.heads, s.sequence, s.valueDim));
  Value dq = value(kFusedDq, type, heads(s.dq, s.heads, s.sequence, s.headDim));
  Value dk = value(kFusedDk, type, heads(s.dk, keyHeads, s.keySequence, s.headDim));
  Value dv = value(kFusedDv, type, heads(s.dv, keyHeads, s.keySequence, s.valueDim));
  Value stats = statistics(kFusedStats), delta = statistics(kFusedDelta);
  Value scale = number(kCudnnScale), one = number(kCudnnOne);

  Value sum = overRows(CUDNN_REDUCE_TENSOR_ADD, pointwise(CUDNN_POINTWISE_MUL, dout, out));
  pointwise(CUDNN_POINTWISE_MUL, sum, &one, nullptr, delta); // in place of dropout's factor

  Value scores = matmul(q, keys, CUDNN_DATA_FLOAT);
  scores = pointwise(CUDNN_POINTWISE_MUL, scores, scale);
  scores = pointwise(CUDNN_POINTWISE_SUB, scores, stats);
  if (s.causal)
    scores = hideLaterKeys(scores);
  Value p = pointwise(CUDNN_POINTWISE_EXP, scores);
  Layout flipped = transposed({p.sizes, p.strides});
  sumOfHeads(relaid(p, type, flipped), dout, dv);

  Value dp = matmul(dout, values, CUDNN_DATA_FLOAT);
  Value ds = pointwise(CUDNN_POINTWISE_MUL, pointwise(CUDNN_POINTWISE_SUB, dp, delta), p);
  ds = pointwise(CUDNN_POINTWISE_MUL, ds, scale);
  sumOfHeads(relaid(ds, type, flipped), q, dk);
  queryGradient(ds, relaid(keys, type, transposed(ofKeys)), dq);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDNN
