//===- Dims.cpp - binding symbolic dimensions -------------------------------------------------===//
//
// A dimension of an input is a number in the file, a name, or nothing. `--dim` gives the latter
// two a size, by the file's name (which binds all dimensions of that name) or by INPUT.AXIS.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Importer.h"

using namespace mlir;

namespace partita::importer {

llvm::SmallVector<const onnx::ValueInfoProto *> realInputs(const onnx::GraphProto &graph) {
  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  llvm::SmallVector<const onnx::ValueInfoProto *> inputs;
  for (const onnx::ValueInfoProto &input : graph.input())
    if (!initializers.contains(input.name()))
      inputs.push_back(&input);
  return inputs;
}

std::string axisName(const onnx::ValueInfoProto &input, int axis) {
  return input.name() + "." + std::to_string(axis);
}

namespace {

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

class Binder {
public:
  Binder(const onnx::GraphProto &graph, EmitError emitError)
      : inputs(realInputs(graph)), emitError(emitError) {
    for (const onnx::ValueInfoProto *input : inputs)
      for (int axis = 0; axis < shapeProto(*input).dim_size(); ++axis)
        addName(*input, axis);
  }

  LogicalResult bind(const ImportOptions &options, llvm::SmallVectorImpl<Shape> &shapes) {
    if (failed(checkOptions(options)))
      return failure();
    llvm::SmallVector<std::string> unbound;
    for (const onnx::ValueInfoProto *input : inputs) {
      if (!input->type().has_tensor_type() || !input->type().tensor_type().has_shape())
        return emitError() << "input " << quoted(input->name())
                           << " is not a tensor of known rank: export the model with its shape";
      Shape &shape = shapes.emplace_back();
      for (int axis = 0; axis < shapeProto(*input).dim_size(); ++axis)
        if (failed(bindAxis(*input, axis, shape, unbound)))
          return failure();
      if (unbound.empty() && !elementCount(shape))
        return emitError() << "input " << quoted(input->name()) << " of shape " << shapeText(shape)
                           << " is too large";
    }
    if (unbound.empty())
      return success();
    InFlightDiagnostic diagnostic = emitError();
    diagnostic << (unbound.size() == 1 ? "this dimension has no size: "
                                       : "these dimensions have no size: ")
               << llvm::join(unbound, ", ") << "; give each one with --dim NAME=SIZE";
    return diagnostic;
  }

private:
  static const onnx::TensorShapeProto &shapeProto(const onnx::ValueInfoProto &input) {
    return input.type().tensor_type().shape();
  }

  void addName(const onnx::ValueInfoProto &input, int axis) {
    const auto &dim = shapeProto(input).dim(axis);
    if (!dim.dim_param().empty() && known.insert(dim.dim_param()).second)
      names.push_back(quoted(dim.dim_param()));
    known.insert(axisName(input, axis));
    names.push_back(quoted(axisName(input, axis)) +
                    (dim.has_dim_value() ? " (" + std::to_string(dim.dim_value()) + ")" : ""));
  }

  LogicalResult checkOptions(const ImportOptions &options) {
    for (const auto &[name, size] : options.dims) {
      if (!known.contains(name)) {
        InFlightDiagnostic diagnostic = emitError() << "--dim names " << quoted(name);
        if (names.empty())
          return diagnostic << ", but the model's inputs have no dimensions";
        return diagnostic << ", but the model's dimensions are " << llvm::join(names, ", ");
      }
      if (size < 1)
        return emitError() << "--dim " << name << "=" << size << ": a dimension is at least 1";
      auto [it, isNew] = sizes.insert({name, size});
      if (!isNew && it->second != size)
        return emitError() << "--dim gives " << quoted(name) << " twice, as " << it->second
                           << " and as " << size;
    }
    return success();
  }

  LogicalResult bindAxis(const onnx::ValueInfoProto &input, int axis, Shape &shape,
                         llvm::SmallVectorImpl<std::string> &unbound) {
    const auto &dim = shapeProto(input).dim(axis);
    std::string byAxis = axisName(input, axis);
    auto atAxis = sizes.find(byAxis);
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return emitError() << "dimension " << axis << " of input " << quoted(input.name()) << " is "
                           << dim.dim_value();
      if (atAxis != sizes.end() && atAxis->second != dim.dim_value())
        return emitError() << "dimension " << axis << " of input " << quoted(input.name()) << " is "
                           << dim.dim_value() << " in the model, --dim gives " << atAxis->second
                           << ": export it with a dynamic dimension";
      shape.push_back(dim.dim_value());
      return success();
    }
    auto byName = dim.dim_param().empty() ? sizes.end() : sizes.find(dim.dim_param());
    if (byName != sizes.end() && atAxis != sizes.end() && byName->second != atAxis->second)
      return emitError() << "--dim gives dimension " << axis << " of input " << quoted(input.name())
                         << " two sizes, " << byName->second << " as " << quoted(dim.dim_param())
                         << " and " << atAxis->second << " as " << quoted(byAxis);
    if (byName != sizes.end() || atAxis != sizes.end()) {
      shape.push_back(byName != sizes.end() ? byName->second : atAxis->second);
      return success();
    }
    shape.push_back(1);
    std::string text = dim.dim_param().empty()
                           ? quoted(byAxis)
                           : quoted(dim.dim_param()) + " (" + quoted(byAxis) + ")";
    if (!llvm::is_contained(unbound, text))
      unbound.push_back(text);
    return success();
  }

  llvm::SmallVector<const onnx::ValueInfoProto *> inputs;
  EmitError emitError;
  llvm::StringSet<> known;
  llvm::SmallVector<std::string> names;
  llvm::StringMap<int64_t> sizes;
};

} // namespace

LogicalResult bindDims(const onnx::GraphProto &graph, const ImportOptions &options,
                       EmitError emitError, llvm::SmallVectorImpl<Shape> &shapes) {
  return Binder(graph, emitError).bind(options, shapes);
}

llvm::StringRef Importer::dimOfSize(int64_t size) const {
  llvm::StringRef found;
  for (const auto &[name, given] : options.dims) {
    if (given == size && !found.empty())
      return "";
    if (given == size)
      found = name;
  }
  return found;
}

} // namespace partita::importer
