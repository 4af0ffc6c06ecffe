//===- Node.cpp -------------------------------------------------------------------------------===//

#include "lib/Import/File/Node.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::importer {

namespace {

/// ONNX's numbers of attribute types, and their names for messages.
enum AttributeType {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7
};

const char *attributeTypeName(int type) {
  static const char *const names[] = {"nothing",  "a float", "an integer", "a string",
                                      "a tensor", "a graph", "floats",     "integers",
                                      "strings",  "tensors", "graphs"};
  return type >= 0 && type < static_cast<int>(std::size(names)) ? names[type] : "something else";
}

/// Old files leave the type out: infer it from the field that is set.
int attributeType(const onnx::AttributeProto &attribute) {
  if (attribute.type() != 0)
    return attribute.type();
  if (attribute.has_f())
    return kFloat;
  if (attribute.has_i())
    return kInt;
  if (attribute.has_s())
    return kString;
  if (attribute.has_t())
    return kTensor;
  if (attribute.has_g())
    return kGraph;
  if (attribute.floats_size())
    return kFloats;
  return attribute.ints_size() ? kInts : 0;
}

std::string displayName(const onnx::NodeProto &proto, const Frame &frame) {
  std::string full = frame.prefix + nodeName(proto).str();
  // Calls of calls must not multiply a long name.
  constexpr size_t longest = 256;
  return full.size() <= longest ? full : full.substr(0, longest - 3) + "...";
}

} // namespace

llvm::StringRef nodeName(const onnx::NodeProto &proto) {
  llvm::StringRef name = proto.name();
  for (const std::string &output : proto.output())
    if (name.empty())
      name = output;
  return name.empty() ? llvm::StringRef(proto.op_type()) : name;
}

llvm::ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

std::string typeText(const Tensor &tensor) {
  return shapeText(tensor.shape) + " of " + dtypeName(tensor.type);
}

Node::Node(Importer &importer, const onnx::NodeProto &proto, Frame &frame, int64_t version)
    : importer(importer), proto(proto), frame(frame), version(version),
      name(displayName(proto, frame)),
      loc(NameLoc::get(StringAttr::get(importer.context(), name), importer.file.location())) {}

InFlightDiagnostic Node::error() {
  // At the file's location: the node's would print its name again.
  std::string type = quoted(proto.op_type());
  InFlightDiagnostic diagnostic = importer.error();
  diagnostic << "node " << quoted(name) << " (" << llvm::StringRef(type).drop_front().drop_back()
             << "): ";
  return diagnostic;
}

//===------------------------------------------------------------------------------------------===//
// Attributes
//===------------------------------------------------------------------------------------------===//

const onnx::AttributeProto *Node::findAttribute(llvm::StringRef key) {
  for (const onnx::AttributeProto &attribute : proto.attribute()) {
    if (attribute.name() != key)
      continue;
    read.push_back(attribute.name());
    if (attribute.ref_attr_name().empty())
      return &attribute;
    auto it = frame.functionAttributes.find(attribute.ref_attr_name());
    return it == frame.functionAttributes.end() ? nullptr : it->second;
  }
  return nullptr;
}

bool Node::has(llvm::StringRef key) { return findAttribute(key) != nullptr; }

static LogicalResult checkType(Node &node, const onnx::AttributeProto &attribute, int wanted,
                               llvm::StringRef key) {
  int type = attributeType(attribute);
  // An empty list carries no sign of its type in files that leave the type out.
  if (type == wanted || (type == 0 && (wanted == kInts || wanted == kFloats)))
    return success();
  return node.error() << "attribute '" << key << "' is " << attributeTypeName(type) << ", expected "
                      << attributeTypeName(wanted);
}

LogicalResult Node::attribute(llvm::StringRef key, int64_t &value) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  value = found->i();
  return checkType(*this, *found, kInt, key);
}

LogicalResult Node::attribute(llvm::StringRef key, float &value) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  value = found->f();
  return checkType(*this, *found, kFloat, key);
}

LogicalResult Node::attribute(llvm::StringRef key, std::string &value) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  value = found->s();
  return checkType(*this, *found, kString, key);
}

LogicalResult Node::attribute(llvm::StringRef key, Shape &values) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  values.assign(found->ints().begin(), found->ints().end());
  return checkType(*this, *found, kInts, key);
}

LogicalResult Node::attribute(llvm::StringRef key, llvm::SmallVector<float> &values) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  values.assign(found->floats().begin(), found->floats().end());
  return checkType(*this, *found, kFloats, key);
}

LogicalResult Node::attribute(llvm::StringRef key, const onnx::TensorProto *&value) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  value = &found->t();
  return checkType(*this, *found, kTensor, key);
}

LogicalResult Node::attribute(llvm::StringRef key, const onnx::GraphProto *&value) {
  const onnx::AttributeProto *found = findAttribute(key);
  if (!found)
    return success();
  value = &found->g();
  return checkType(*this, *found, kGraph, key);
}

LogicalResult Node::checkAllRead() {
  std::vector<std::string> others;
  for (const onnx::AttributeProto &attribute : proto.attribute())
    if (!llvm::is_contained(read, llvm::StringRef(attribute.name())))
      others.push_back(quoted(attribute.name()));
  if (others.empty())
    return success();
  return error() << (others.size() == 1 ? "attribute " : "attributes ") << llvm::join(others, ", ")
                 << (others.size() == 1 ? " is not supported" : " are not supported");
}

//===------------------------------------------------------------------------------------------===//
// Inputs and results
//===------------------------------------------------------------------------------------------===//

Tensor *Node::input(int64_t index) {
  if (index >= proto.input_size() || proto.input(index).empty())
    return nullptr;
  return frame.scope.find(proto.input(index));
}

LogicalResult Node::arity(int64_t least, int64_t most) {
  if (inputCount() < least || inputCount() > most) {
    InFlightDiagnostic diagnostic = error() << "has " << inputCount() << " inputs, expected ";
    if (most == anyLater)
      return diagnostic << least << " or more";
    if (least == most)
      return diagnostic << least;
    return diagnostic << least << " to " << most;
  }
  for (int64_t i = 0; i < least; ++i)
    if (!input(i))
      return error() << "input " << i << " is missing";
  return success();
}

LogicalResult Node::notKnown(const char *what, const char *remedy) {
  return error() << what << " depends on the values of the model's input: shapes and indices must "
                 << "be known when --dim has bound all dimensions" << remedy;
}

LogicalResult Node::knownInts(int64_t index, const char *what, Shape &values) {
  Tensor *tensor = input(index);
  if (!tensor)
    return error() << what << " (input " << index << ") is missing";
  if (!tensor->host)
    return notKnown(what);
  if (isFloat(tensor->type) || tensor->shape.size() > 1 || tensor->host->size() > 1024)
    return error() << what << " is " << typeText(*tensor) << ", expected a short list of integers";
  values.assign(tensor->host->ints());
  return success();
}

LogicalResult Node::knownInt(int64_t index, const char *what, int64_t &value) {
  Shape values;
  if (failed(knownInts(index, what, values)))
    return failure();
  if (values.size() != 1)
    return error() << what << " has " << values.size() << " elements, expected 1";
  value = values[0];
  return success();
}

bool Node::allKnown() {
  for (int64_t i = 0; i < inputCount(); ++i)
    if (Tensor *tensor = input(i); tensor && !tensor->host)
      return false;
  return true;
}

LogicalResult Node::set(int64_t index, Tensor *tensor) {
  if (!wants(index))
    return success();
  if (!frame.scope.values.insert({proto.output(index), tensor}).second)
    return error() << "its result " << quoted(proto.output(index))
                   << " is defined twice: a tensor, an input or another node of the graph has this "
                      "name";
  return success();
}

LogicalResult Node::set(int64_t index, Value value) {
  return wants(index) ? set(index, importer.create(value)) : success();
}

LogicalResult Node::set(int64_t index, HostTensor host) {
  return wants(index) ? set(index, importer.create(std::move(host))) : success();
}

//===------------------------------------------------------------------------------------------===//
// Emission
//===------------------------------------------------------------------------------------------===//

LogicalResult Node::emittable(llvm::ArrayRef<Tensor *> tensors) {
  for (Tensor *tensor : tensors) {
    if (elementCount(tensor->shape) == 0)
      return error() << "computes on " << typeText(*tensor) << ", which has no elements";
    if (!mlirType(tensor->type, importer.context()))
      return error() << "cannot compute on " << dtypeName(tensor->type)
                     << " at run time, only on float, double, float16, bfloat16, int32, int64 and "
                        "bool";
  }
  return success();
}

static RankedTensorType withShape(Value x, llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(x.getType()));
}

Value Node::broadcast(Value x, llvm::ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  DenseElementsAttr splat;
  if (matchPattern(x, m_Constant(&splat)) && splat.isSplat())
    return tx::ConstantOp::create(builder(), loc, withShape(x, shape),
                                  splat.resizeSplat(withShape(x, shape)));
  return tx::BroadcastOp::create(builder(), loc, withShape(x, shape), x);
}

Value Node::reshape(Value x, llvm::ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return tx::ReshapeOp::create(builder(), loc, withShape(x, shape), x);
}

Value Node::transpose(Value x, llvm::ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return x;
  Shape shape;
  for (int64_t from : permutation)
    shape.push_back(shapeOf(x)[from]);
  return tx::TransposeOp::create(builder(), loc, withShape(x, shape), x, permutation);
}

Value Node::slice(Value x, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<int64_t> strides) {
  if (shapeOf(x) == sizes)
    return x;
  return tx::SliceOp::create(builder(), loc, withShape(x, sizes), x, offsets, strides);
}

LogicalResult Node::normalizeAxis(int64_t &axis, int64_t rank) {
  // The same text for all stand-ins, so an axis that none of them has is reported.
  if (hasStandIns && (axis < -mostStandInDims || axis >= mostStandInDims))
    return error() << "axis " << axis << " is outside a tensor of " << mostStandInDims
                   << " dimensions or fewer";
  if (axis < -rank || axis >= rank)
    return error() << "axis " << axis << " is outside a tensor of " << rank << " dimensions";
  axis += axis < 0 ? rank : 0;
  return success();
}

LogicalResult Node::broadcastShape(llvm::ArrayRef<Tensor *> tensors, Shape &shape) {
  shape.clear();
  for (Tensor *tensor : tensors)
    if (tensor->shape.size() > shape.size())
      shape.insert(shape.begin(), tensor->shape.size() - shape.size(), 1);
  for (Tensor *tensor : tensors) {
    size_t shift = shape.size() - tensor->shape.size();
    for (auto [i, dim] : llvm::enumerate(tensor->shape)) {
      int64_t &common = shape[shift + i];
      if (common == 1)
        common = dim;
      else if (dim != 1 && dim != common) {
        importer.whyFailed.shapesClash = true;
        importer.whyFailed.clash = {common, dim};
        InFlightDiagnostic diagnostic = error() << "shapes do not broadcast: ";
        llvm::interleaveComma(tensors, diagnostic,
                              [&](Tensor *each) { diagnostic << shapeText(each->shape); });
        return diagnostic;
      }
    }
  }
  if (!elementCount(shape))
    return error() << "its result would have shape " << shapeText(shape) << ", which is too large";
  return success();
}

double asWritten(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", static_cast<double>(value));
  double wide = std::strtod(text, nullptr);
  return static_cast<float>(wide) == value ? wide : static_cast<double>(value);
}

} // namespace partita::importer
