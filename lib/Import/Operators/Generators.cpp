//===- Generators.cpp - Constant, ConstantOfShape, Range --------------------------------------===//

#include "lib/Import/File/Node.h"
#include <cmath>

using namespace mlir;

namespace partita::importer {
namespace {

FailureOr<HostTensor> readTensor(Node &node, const onnx::TensorProto &proto) {
  auto tensorError = [&] { return node.error(); };
  FailureOr<TensorData> data = node.importer.file.locate(proto, tensorError);
  if (failed(data))
    return failure();
  return node.importer.file.read(*data, tensorError);
}

/// Exactly one of the value attributes.
LogicalResult constant(Node &node) {
  const onnx::TensorProto *tensor = nullptr;
  int64_t integer = 0;
  float real = 0;
  Shape integers;
  llvm::SmallVector<float> reals;
  if (failed(node.arity(0, 0)) || failed(node.attribute("value", tensor)) ||
      failed(node.attribute("value_int", integer)) || failed(node.attribute("value_float", real)) ||
      failed(node.attribute("value_ints", integers)) ||
      failed(node.attribute("value_floats", reals)))
    return failure();
  if (tensor) {
    FailureOr<HostTensor> host = readTensor(node, *tensor);
    return failed(host) ? failure() : node.set(0, *host);
  }
  if (node.has("value_int"))
    return node.set(0, HostTensor::scalarInt(DType::i64, integer));
  if (node.has("value_float"))
    return node.set(0, HostTensor::scalar(DType::f32, real));
  if (node.has("value_ints"))
    return node.set(0, HostTensor::vector(integers));
  if (node.has("value_floats")) {
    HostBuffer buffer(DType::f32, {static_cast<int64_t>(reals.size())});
    for (auto [i, value] : llvm::enumerate(reals))
      buffer.putDouble(i, value);
    return node.set(0, buffer.finish());
  }
  return node.error() << "has no value that is a tensor, a number or a list of numbers";
}

LogicalResult constantOfShape(Node &node) {
  const onnx::TensorProto *tensor = nullptr;
  Shape shape;
  if (failed(node.arity(1, 1)) || failed(node.attribute("value", tensor)) ||
      failed(node.knownInts(0, "the shape", shape)))
    return failure();
  if (!elementCount(shape))
    return node.error() << "shape " << shapeText(shape) << " is not possible";
  HostTensor value = HostTensor::scalar(DType::f32, 0);
  if (tensor) {
    FailureOr<HostTensor> host = readTensor(node, *tensor);
    if (failed(host))
      return failure();
    if (host->size() != 1)
      return node.error() << "attribute 'value' has " << host->size() << " elements, expected 1";
    value = *host->viewAs({});
  }
  return node.set(0, value.broadcast(shape));
}

/// ceil((limit - start) / delta) elements, none if that is negative.
LogicalResult range(Node &node) {
  int64_t stash = 1; // compute 16-bit floats in float32
  if (failed(node.arity(3, 3)) || failed(node.attribute("stash_type", stash)))
    return failure();
  DType type = node.input(0)->type;
  if (stash != 1 && is16Bit(type))
    return node.error() << "attribute 'stash_type' is " << stash << ", only 1 is supported";
  for (int64_t i = 0; i < 3; ++i) {
    Tensor *each = node.input(i);
    if (!each->host)
      return node.notKnown("its range");
    if (each->host->size() != 1 || each->type != type || type == DType::boolean)
      return node.error() << "input " << i << " is " << typeText(*each)
                          << ", expected three numbers of one type";
  }
  const HostTensor &start = *node.input(0)->host, &limit = *node.input(1)->host,
                   &delta = *node.input(2)->host;
  double span = limit.onlyDouble() - start.onlyDouble(), step = delta.onlyDouble();
  double count = std::ceil(span / step);
  if (step == 0 || std::isnan(count) || count > 9e15)
    return node.error() << "ranges over " << span << " in steps of " << step;
  int64_t size = count > 0 ? static_cast<int64_t>(count) : 0;
  MaybeHost host;
  if (isFloat(type))
    host = node.folder().range(type, start.onlyDouble(), step, size);
  else
    host = node.folder().rangeInt(type, start.onlyInt(), delta.onlyInt(), size);
  if (host)
    return node.set(0, *host);
  Type element = mlirType(type, node.importer.context());
  if (!element || !elementCount({size}))
    return node.error() << "has " << size << " elements, which is too many";
  return node.set(0, tx::IotaOp::create(node.builder(), node.loc,
                                        RankedTensorType::get({size}, element),
                                        node.builder().getF64FloatAttr(start.onlyDouble()),
                                        node.builder().getF64FloatAttr(step)));
}

const OpRow generatorRows[] = {
    {"Constant", "", 1, anyLater, constant},
    {"ConstantOfShape", "", 9, anyLater, constantOfShape},
    {"Range", "", 11, anyLater, range},
};

} // namespace

llvm::ArrayRef<OpRow> generatorOps() { return generatorRows; }

} // namespace partita::importer
