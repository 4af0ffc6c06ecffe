//===- InputsAndOutputs.cpp - the arguments and results of @forward ---------------------------===//

#include "dialects/Train/Roles.h"
#include "dialects/Train/Train.h"
#include "lib/Import/Importer.h"

using namespace mlir;

namespace partita::importer {

/// The role of an input that is the same in every run; "" of others.
llvm::StringRef Importer::fixedRole(llvm::StringRef name, Type type) const {
  auto bound = llvm::find_if(options.inputs, [&](const auto &each) { return each.first == name; });
  if (bound != options.inputs.end())
    return train::isFixedRole(bound->second) ? llvm::StringRef(bound->second) : "";
  bool isMask = train::usualRole(name, type) == "ones";
  return options.masksAreOnes && isMask ? "ones" : "";
}

/// The values of an input with that role, if its type fits it.
static MaybeHost valuesOf(llvm::StringRef role, DType type, llvm::ArrayRef<int64_t> shape) {
  if (role == "ones" || role == "zeros")
    return (isFloat(type) ? HostTensor::scalar(type, role == "ones")
                          : HostTensor::scalarInt(type, role == "ones"))
        .broadcast(shape);
  if (role != "positions" || isFloat(type) || type == DType::boolean || shape.empty())
    return std::nullopt;
  HostBuffer buffer(type, {shape.back()});
  for (int64_t i = 0; i < shape.back(); ++i)
    buffer.putInt(i, i);
  return buffer.finish().broadcast(shape);
}

LogicalResult Importer::importInputs(Frame &frame) {
  const onnx::GraphProto &graph = file.model().graph();
  llvm::SmallVector<Shape> shapes;
  if (failed(bindDims(graph, options, [&] { return error(); }, shapes)))
    return failure();
  llvm::SmallVector<const onnx::ValueInfoProto *> inputs = realInputs(graph);
  batch.bind(inputs, shapes);
  llvm::SmallVector<Type> types;
  llvm::SmallVector<DictionaryAttr> attributes;
  llvm::SmallVector<Location> locations;
  llvm::SmallVector<const onnx::ValueInfoProto *> arguments;
  llvm::SmallVector<MaybeHost> fixed; // of the arguments
  auto define = [&](const onnx::ValueInfoProto &input, Tensor *tensor) -> LogicalResult {
    if (frame.scope.values.insert({input.name(), tensor}).second)
      return success();
    return error() << "input " << quoted(input.name()) << " is listed twice";
  };
  for (auto [input, shape] : llvm::zip_equal(inputs, shapes)) {
    int64_t number = input->type().tensor_type().elem_type();
    std::optional<DType> type = dtypeFromOnnx(number);
    if (type && elementCount(shape) == 0) { // no argument: there is nothing to pass
      if (failed(define(*input, create(HostBuffer(*type, shape).finish()))))
        return failure();
      continue;
    }
    Type element = type ? mlirType(*type, context()) : Type();
    if (!element && number != 0 && options.keepGoing) { // listMissing has reported it
      if (failed(define(*input, createUnavailable())))
        return failure();
      continue;
    }
    if (!element)
      return error() << "input " << quoted(input->name()) << " has element type "
                     << dtypeName(number) << ", which is not supported";
    arguments.push_back(input);
    types.push_back(RankedTensorType::get(shape, element));
    StringAttr name = builder.getStringAttr(input->name());
    llvm::StringRef role = fixedRole(input->name(), types.back());
    fixed.push_back(valuesOf(role, *type, shape));
    attributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(train::TrainDialect::kName, name),
         builder.getNamedAttr(
             train::TrainDialect::kRole,
             builder.getStringAttr(fixed.back() ? role : StringRef(train::kUndecidedRole)))}));
    locations.push_back(NameLoc::get(name, file.location()));
  }
  builder.setInsertionPointToEnd(module->getBody());
  forward =
      func::FuncOp::create(builder, file.location(), train::nameOf(train::EntryPoint::Forward),
                           builder.getFunctionType(types, {}));
  train::set(forward, train::EntryPoint::Forward);
  Block *body = builder.createBlock(&forward.getBody(), {}, types, locations);
  forward.setAllArgAttrs(attributes);
  for (auto [input, argument, known] : llvm::zip_equal(arguments, body->getArguments(), fixed))
    if (Tensor *tensor = known ? create(*known) : create(argument); failed(define(*input, tensor)))
      return failure();
    else
      batch.begin(*input, *tensor);
  return success();
}

LogicalResult Importer::importOutput(const onnx::ValueInfoProto &output, const Frame &frame,
                                     llvm::SmallVectorImpl<Value> &results,
                                     llvm::SmallVectorImpl<DictionaryAttr> &attributes) {
  Tensor *tensor = frame.scope.find(output.name());
  if (!tensor)
    return error() << "output " << quoted(output.name()) << " is not computed by any node";
  if (tensor->unavailable || failed(loadInitializer(*tensor)))
    return failure();
  if (tensor->sequence)
    return error() << "output " << quoted(output.name()) << " is a sequence of tensors, "
                   << "which a program cannot return";
  const onnx::TensorShapeProto &declared = output.type().tensor_type().shape();
  bool fits = declared.dim_size() == static_cast<int>(tensor->shape.size());
  for (int i = 0; fits && i < declared.dim_size(); ++i)
    fits = !declared.dim(i).has_dim_value() || declared.dim(i).dim_value() == tensor->shape[i];
  if (output.type().tensor_type().has_shape() && !fits) {
    for (const auto &dim : declared.dim())
      if (dim.has_dim_value())
        whyFailed.numbers.push_back(dim.dim_value());
    whyFailed.shapesClash = true;
    return error() << "output " << quoted(output.name()) << " has shape "
                   << shapeText(tensor->shape) << ", which is not what the model declares for it";
  }
  if (!mlirType(tensor->type, context()))
    return error() << "output " << quoted(output.name()) << " has element type "
                   << dtypeName(tensor->type) << ", which is not supported";
  results.push_back(materialize(tensor, file.location()));
  attributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(train::TrainDialect::kName, builder.getStringAttr(output.name()))));
  return success();
}

LogicalResult Importer::importOutputs(const Frame &frame) {
  const onnx::GraphProto &graph = file.model().graph();
  llvm::SmallVector<Value> results;
  llvm::SmallVector<DictionaryAttr> attributes;
  if (graph.output_size() == 0)
    return error() << "the graph has no outputs";
  for (const onnx::ValueInfoProto &output : graph.output()) {
    if (succeeded(importOutput(output, frame, results, attributes))) {
      ++whyFailed.done;
      continue;
    }
    if (!options.keepGoing)
      return failure();
    broken = true;
  }
  if (broken)
    return failure();
  func::ReturnOp::create(builder, file.location(), results);
  forward.setFunctionType(
      builder.getFunctionType(forward.getArgumentTypes(), ValueRange(results).getTypes()));
  forward.setAllResultAttrs(attributes);
  return success();
}

} // namespace partita::importer
