//===- BatchDims.cpp --------------------------------------------------------------------------===//

#include "lib/Import/BatchDims.h"
#include "lib/Import/File/Exporter.h"
#include "lib/Import/File/Node.h"
#include "lib/Import/Importer.h"

using namespace mlir;

namespace partita::importer {

static std::string dimName(const onnx::ValueInfoProto &input, int axis) {
  const std::string &name = input.type().tensor_type().shape().dim(axis).dim_param();
  return name.empty() ? axisName(input, axis) : name;
}

static bool isBound(const onnx::ValueInfoProto &input, int axis) {
  const onnx::TensorShapeProto &shape = input.type().tensor_type().shape();
  return axis < shape.dim_size() && !shape.dim(axis).has_dim_value();
}

void BatchDims::bind(llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
                     llvm::ArrayRef<Shape> shapes) {
  for (auto [input, shape] : llvm::zip_equal(inputs, shapes))
    if (name.empty() && isBound(*input, 0)) {
      name = dimName(*input, 0);
      size = shape[0];
    }
  for (auto [input, shape] : llvm::zip_equal(inputs, shapes))
    for (int axis = 1; axis < static_cast<int>(shape.size()); ++axis)
      if (isBound(*input, axis) && shape[axis] > 1 && dimName(*input, axis) != name)
        others.push_back({dimName(*input, axis), shape[axis]});
}

void BatchDims::begin(const onnx::ValueInfoProto &input, Tensor &tensor) const {
  tensor.hasBatch = tensor.value && isBound(input, 0) && dimName(input, 0) == name;
}

/// Does the shape have another bound dimension besides the batch, or is dimension 0 a multiple of
/// batch x one?
bool BatchDims::holdsOther(llvm::ArrayRef<int64_t> shape) const {
  return llvm::any_of(others, [&](const auto &other) {
    return llvm::is_contained(shape.drop_front(), other.second) ||
           (shape.front() / size) % other.second == 0;
  });
}

/// Do rows of the result, leading dimensions of size 1 aside, combine several samples?
bool BatchDims::mixes(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const {
  to = to.drop_while([](int64_t dim) { return dim == 1; });
  return holdsOther(from) && !to.empty() && to.front() % size != 0;
}

/// The dimensions with the sizes that the constant shape `wanted` gives them, if with these sizes it
/// changes nothing: "'batch' at 2". Where dimensions have equal sizes: "'batch' or 'sequence' at 2".
std::string BatchDims::fixedDims(llvm::ArrayRef<int64_t> from,
                                 llvm::ArrayRef<int64_t> wanted) const {
  if (from.size() != wanted.size() || llvm::count(wanted, -1) > 1)
    return {};
  std::string text;
  for (auto [axis, dims] : llvm::enumerate(llvm::zip_equal(from, wanted))) {
    auto [here, inFile] = dims;
    if (inFile == -1 || inFile == 0 || inFile == here)
      continue;
    std::string names = axis == 0 ? quoted(name) : std::string();
    for (const auto &[other, length] : others)
      if (axis > 0 && here == length && !llvm::StringRef(names).contains(quoted(other)))
        names += (names.empty() ? "" : " or ") + quoted(other);
    if (names.empty())
      return {};
    text += (text.empty() ? "" : " and ") + names + " at " + std::to_string(inFile);
  }
  return text;
}

void BatchDims::follow(Node &node) {
  if (!isActive() || !canonicalDomain(node.proto.domain()).empty())
    return;
  llvm::StringRef op = node.proto.op_type();
  llvm::SmallVector<Tensor *> inputs;
  for (int64_t i = 0; i < node.inputCount(); ++i)
    if (Tensor *input = node.input(i))
      inputs.push_back(input);
  bool isMeasured = effectOf(node.proto) == OpEffect::Measures ||
                    llvm::any_of(inputs, [](const Tensor *each) { return each->isMeasured; });
  bool hasBatch = llvm::any_of(inputs, [](const Tensor *each) { return each->hasBatch; });
  if (op == "Transpose" && hasBatch) {
    Shape permutation;
    hasBatch = succeeded(node.attribute("perm", permutation)) && !permutation.empty() &&
               permutation.front() == 0;
  }
  for (const std::string &output : node.proto.output()) {
    Tensor *result = output.empty() ? nullptr : node.frame.scope.find(output);
    if (!result || llvm::is_contained(inputs, result))
      continue; // the same as an input
    result->isMeasured |= isMeasured;
    result->hasBatch |=
        hasBatch && result->value && !result->shape.empty() && result->shape.front() % size == 0;
    if (op != "Reshape" || !inputs.front()->hasBatch || isMeasured ||
        !mixes(inputs.front()->shape, result->shape))
      continue;
    if (!first.empty()) {
      ++more;
      continue;
    }
    const Shape &from = inputs.front()->shape;
    Shape wanted;
    if (failed(node.knownInts(1, "the shape", wanted)))
      wanted.clear();
    std::string fixed = fixedDims(from, wanted);
    bool isOne = !llvm::StringRef(fixed).contains(" and ");
    first = "node " + quoted(node.name) + " (Reshape): its constant shape turns " +
            shapeText(from) + " into " + shapeText(result->shape) +
            ", so that dimension 0 is not " + quoted(name) +
            " any more and samples are mixed; the export has probably fixed " +
            (fixed.empty() ? "a dimension: declare each one that varies"
                           : fixed + (isOne ? ": declare it" : ": declare them")) +
            " " + inDynamicShapes(isOne);
  }
}

std::string BatchDims::warning() const {
  return more == 0 ? first
                   : first + " (" + std::to_string(more) +
                         (more == 1 ? " more node does so)" : " more nodes do so)");
}

} // namespace partita::importer
