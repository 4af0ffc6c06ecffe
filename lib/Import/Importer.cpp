//===- Importer.cpp - importOnnx --------------------------------------------------------------===//
//
// 1. --dim gives every input one shape. 2. Initializers become parameters (floats) or known
// tensors (the rest). 3. Each node, in the file's order, is handed to its row of the registry,
// which computes its results if all its inputs are known and emits `tx` otherwise.
// 4. What nothing uses is erased.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Importer.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Import/File/Devices.h"
#include "lib/Import/File/Node.h"
#include "lib/Import/FixedDims.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita {

FailureOr<OwningOpRef<ModuleOp>> importOnnx(llvm::StringRef path, const ImportOptions &options,
                                            MLIRContext *context) {
  context->loadDialect<func::FuncDialect, tx::TxDialect, train::TrainDialect>();
  auto file = importer::ModelFile::open(path, context);
  if (failed(file))
    return failure();
  importer::Importer importer(**file, options, context);
  if (options.keepGoing)
    return importer.run();
  // An error may be due to a dimension's size: it is reported after that has been found out.
  std::optional<std::pair<Location, std::string>> problem;
  FailureOr<OwningOpRef<ModuleOp>> module = [&] {
    ScopedDiagnosticHandler catcher(context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return failure(); // someone else's
      if (!problem)
        problem.emplace(diagnostic.getLocation(), diagnostic.str());
      return success();
    });
    return importer.run();
  }();
  if (succeeded(module) || !problem)
    return module;
  emitError(problem->first) << problem->second
                            << importer::explainFixedDims(**file, options, context,
                                                          importer.whyFailed,
                                                          importer.decidedWeights());
  return failure();
}

namespace importer {

/// Limits in proportion to the file's size, so that a small file cannot ask for much memory: nodes of
/// inlined function calls, elements of sequences (each node that inserts into a sequence makes
/// another), elements of folded tensors.
constexpr int64_t leastInlinedNodes = 1 << 12, bytesOfInlinedNode = 8;
constexpr int64_t leastListed = 1 << 22, bytesOfListed = 8;
constexpr int64_t leastFold = 1 << 14, mostFold = 1 << 24, masks = 64;

int64_t foldLimit(const ModelFile &file, const ImportOptions &options) {
  if (options.foldLimit)
    return options.foldLimit;
  uint64_t length = 1;
  for (const auto &[name, size] : options.dims)
    length = std::max(length, static_cast<uint64_t>(std::clamp<int64_t>(size, 1, mostFold)));
  uint64_t wanted = std::max(file.bytes(), masks * length * length);
  return static_cast<int64_t>(std::clamp<uint64_t>(wanted, leastFold, mostFold));
}

Importer::Importer(ModelFile &file, const ImportOptions &options, MLIRContext *context,
                   Weights *decided)
    : file(file), folder(0, 0), builder(context), options(options),
      ownWeights(decided ? nullptr : std::make_unique<Weights>(file, options)),
      weights(decided ? *decided : *ownWeights), devices(std::make_unique<Devices>(*this)) {}

Importer::~Importer() = default;

Tensor *Importer::create(HostTensor host) {
  Tensor &tensor = tensors.emplace_back();
  tensor.type = host.type();
  tensor.shape.assign(host.shape().begin(), host.shape().end());
  tensor.host = std::move(host);
  return &tensor;
}

static DType dtypeOf(Type type) {
  for (DType each : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32})
    if (mlirType(each, type.getContext()) == type)
      return each;
  return DType::boolean;
}

Tensor *Importer::create(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Tensor &tensor = tensors.emplace_back();
  tensor.type = dtypeOf(type.getElementType());
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  tensor.value = value;
  return &tensor;
}

bool Importer::mayList(int64_t count) {
  listed += count;
  return listed <= std::max<int64_t>(leastListed, file.bytes() / bytesOfListed);
}

Tensor *Importer::createSequence(DType type, llvm::ArrayRef<Tensor *> parts) {
  Tensor &tensor = tensors.emplace_back();
  tensor.type = type;
  tensor.sequence = std::make_shared<const llvm::SmallVector<Tensor *>>(parts);
  return &tensor;
}

FailureOr<OwningOpRef<ModuleOp>> Importer::run() {
  const onnx::ModelProto &model = file.model();
  for (const onnx::FunctionProto &function : model.functions()) {
    std::string key = functionKey(function.domain(), function.name(), function.overload());
    if (!functions.insert({key, &function}).second) {
      error() << "function " << quoted(function.name()) << " is defined twice";
      return failure();
    }
    if (failed(checkOpsets(function.opset_import(), functionOpsets[&function])))
      return failure();
  }
  if (model.opset_import_size() == 0) {
    error() << "not an ONNX file: it names no opset";
    return failure();
  }
  module = ModuleOp::create(file.location());
  (*module)->setAttr("train.model", builder.getStringAttr(file.path()));
  Frame frame;
  frame.opsets = &modelOpsets;
  if (failed(checkOpsets(model.opset_import(), modelOpsets)))
    return failure();
  if (std::vector<std::string> missing = listMissing(model, context()); !missing.empty()) {
    error() << llvm::join(missing, "; ");
    if (!options.keepGoing)
      return failure();
    broken = true;
    reportedMissing.insert_range(missing);
  }
  if (failed(devices->readConfigurations(model)) || failed(importInputs(frame)) ||
      failed(weights.decide()))
    return failure();
  if (failed(importInitializers(model.graph(), frame.scope)))
    return failure();
  folder = Folder(foldLimit(file, options), 16 * mostFold);
  maxInlinedNodes = std::max<int64_t>(leastInlinedNodes, file.bytes() / bytesOfInlinedNode);
  tieWeights(frame.scope);
  LogicalResult complete = success(succeeded(importNodes(model.graph().node(), frame)) &&
                                   succeeded(importOutputs(frame)));
  reportProblems();
  if (failed(complete) || broken)
    return failure();
  devices->describe(*module);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward.getBody().front())))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  llvm::StringSet<> read;
  forward.walk([&](train::ReadOp op) { read.insert(op.getSymbol()); });
  for (auto parameter : llvm::make_early_inc_range(module->getOps<train::ParameterOp>()))
    if (!read.contains(parameter.getSymName()))
      parameter.erase();
  llvm::StringSet<> used;
  for (auto parameter : module->getOps<train::ParameterOp>())
    if (auto initial = parameter.getInitialAttr())
      used.insert(initial.getFile().getValue());
  llvm::erase_if(noted, [&](Attribute file) {
    return !used.contains(cast<StringAttr>(cast<DictionaryAttr>(file).get("file")).getValue());
  });
  noteGuesses();
  if (!noted.empty())
    (*module)->setAttr(train::TrainDialect::kFiles, builder.getArrayAttr(noted));
  return std::move(module);
}

LogicalResult
Importer::checkOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports,
                      llvm::StringMap<int64_t> &opsets) {
  for (const onnx::OperatorSetIdProto &import : imports) {
    auto [it, isNew] = opsets.insert({canonicalDomain(import.domain()), import.version()});
    if (!isNew && it->second != import.version())
      return error() << "opset domain " << quoted(import.domain()) << " is imported as version "
                     << it->second << " and as version " << import.version();
    if (std::string problem = opsetProblem(it->first(), import.version()); !problem.empty())
      return error() << problem;
  }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Inputs and outputs (initializers: Initializers.cpp)
//===------------------------------------------------------------------------------------------===//

/// The values of an input that is the same in every run, if its type fits its role.
MaybeHost Importer::fixedInput(llvm::StringRef name, DType type, llvm::ArrayRef<int64_t> shape,
                               llvm::StringRef &role) {
  auto found =
      llvm::find_if(options.fixedInputs, [&](const auto &each) { return each.first == name; });
  if (found == options.fixedInputs.end())
    return std::nullopt;
  role = found->second;
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
      if (failed(define(*input, createLost())))
        return failure();
      continue;
    }
    if (!element)
      return error() << "input " << quoted(input->name()) << " has element type "
                     << dtypeName(number) << ", which is not supported";
    arguments.push_back(input);
    types.push_back(RankedTensorType::get(shape, element));
    StringAttr name = builder.getStringAttr(input->name());
    llvm::StringRef role = "input", fixedRole;
    fixed.push_back(fixedInput(input->name(), *type, shape, fixedRole));
    attributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(train::TrainDialect::kName, name),
         builder.getNamedAttr(train::TrainDialect::kRole,
                              builder.getStringAttr(fixed.back() ? fixedRole : role))}));
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
  if (tensor->lost || failed(loadInitializer(*tensor)))
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

//===------------------------------------------------------------------------------------------===//
// Nodes
//===------------------------------------------------------------------------------------------===//

const onnx::FunctionProto *Importer::findFunction(const onnx::NodeProto &node) const {
  return functions.lookup(functionKey(node.domain(), node.op_type(), node.overload()));
}

LogicalResult
Importer::importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                      Frame &frame) {
  for (const onnx::NodeProto &node : nodes) {
    if (succeeded(importNode(node, frame))) {
      ++whyFailed.done;
      continue;
    }
    if (!options.keepGoing)
      return failure();
    broken = true;
    loseResults(node, frame);
  }
  return success();
}

LogicalResult Importer::importNode(const onnx::NodeProto &proto, Frame &frame) {
  if (frame.caller && ++inlinedNodes > maxInlinedNodes)
    return error() << "the calls of functions amount to more than " << maxInlinedNodes
                   << " nodes, as many as a file of this size may have";
  llvm::StringRef domain = canonicalDomain(proto.domain());
  auto opset = frame.opsets->find(domain);
  int64_t version = opset == frame.opsets->end() ? 0 : opset->second;
  Node node(*this, proto, frame, version);
  bool behindLost = false;
  for (const std::string &input : proto.input()) {
    if (input.empty())
      continue;
    if (!frame.scope.defines(input))
      return node.error() << "its input " << quoted(input)
                          << " is not the result of a node before it, an initializer or an input";
    Tensor *tensor = frame.scope.find(input);
    if (tensor && failed(loadInitializer(*tensor))) {
      tensor->lost = true;
      return failure();
    }
    behindLost |= tensor && tensor->lost;
  }
  if (const onnx::FunctionProto *function = findFunction(proto))
    return success(succeeded(callFunction(*function, node)) && succeeded(devices->annotate(node)));
  const OpRow *row = findOp(domain, proto.op_type(), version);
  if (!row && options.keepGoing)
    return failure(); // reported with all others that are missing
  if (!row)
    return node.error() << "is not supported in opset " << version;
  for (const std::string &input : proto.input())
    if (Tensor *tensor = frame.scope.find(input);
        tensor && tensor->sequence && !row->takesSequences)
      return node.error() << "its input " << quoted(input)
                          << " is a sequence of tensors, expected one tensor";
  if (behindLost && row->takesSequences)
    return failure(); // stand-ins are no sequences
  if (behindLost) {
    tryStandIns(*row, proto, frame, version);
    return failure();
  }
  return runNode(*row, node);
}

/// Runs the operator's handler and checks the results.
static LogicalResult handle(const OpRow &row, Node &node) {
  if (failed(row.handler(node)))
    return failure();
  for (const std::string &output : node.proto.output())
    if (!output.empty() && !node.frame.scope.defines(output))
      return node.error() << "its result " << quoted(output) << " is not supported";
  for (const std::string &output : node.proto.output())
    if (Tensor *result = node.frame.scope.find(output);
        result && result->value && elementCount(result->shape) == 0)
      return node.error() << "its result is " << typeText(*result) << ", which has no elements";
  return success();
}

void Importer::noteNumbers(const Tensor *tensor) {
  constexpr int64_t mostInts = 8; // of a list of sizes
  if (!tensor || tensor->sequence)
    return;
  llvm::append_range(whyFailed.numbers, tensor->shape);
  if (tensor->host && !isFloat(tensor->type) && tensor->host->size() <= mostInts)
    llvm::append_range(whyFailed.numbers, tensor->host->ints());
}

LogicalResult Importer::runNode(const OpRow &row, Node &node) {
  if (!options.keepGoing) {
    if (succeeded(handle(row, node))) {
      batch.follow(node);
      return success(succeeded(node.checkAllRead()) && succeeded(devices->annotate(node)));
    }
    if (whyFailed.numbers.empty()) // of nested nodes, the innermost
      for (int64_t i = 0; i < node.inputCount(); ++i)
        noteNumbers(node.input(i));
    return failure();
  }
  // Later nodes are imported even if a check fails, as long as there are results.
  llvm::SmallVector<std::string> errors;
  LogicalResult result = catchErrors([&] { return handle(row, node); }, errors);
  if (succeeded(result))
    batch.follow(node);
  if (succeeded(result) && failed(catchErrors(
                               [&] {
                                 return success(succeeded(node.checkAllRead()) &&
                                                succeeded(devices->annotate(node)));
                               },
                               errors)))
    broken = true;
  for (const std::string &each : errors)
    noteProblem(node, each);
  return result;
}

LogicalResult Importer::callFunction(const onnx::FunctionProto &function, Node &call) {
  for (const Frame *frame = &call.frame; frame; frame = frame->caller)
    if (frame->function == &function)
      return call.error() << "function " << quoted(function.name()) << " calls itself";
  if (call.proto.input_size() > function.input_size() ||
      call.proto.output_size() > function.output_size())
    return call.error() << "has " << call.proto.input_size() << " inputs and "
                        << call.proto.output_size() << " results, the function has "
                        << function.input_size() << " and " << function.output_size();
  Frame frame;
  frame.opsets = &functionOpsets[&function];
  frame.caller = &call.frame;
  frame.function = &function;
  frame.prefix = call.name + "/";
  for (auto [index, input] : llvm::enumerate(function.input()))
    frame.scope.values[input] = call.input(index); // null where the call leaves it out
  for (const onnx::AttributeProto &attribute : function.attribute_proto())
    frame.functionAttributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto &attribute : call.proto.attribute())
    if (const onnx::AttributeProto *value = call.findAttribute(attribute.name()))
      frame.functionAttributes[attribute.name()] = value;
  if (failed(importNodes(function.node(), frame)))
    return failure();
  for (int i = 0; i < call.proto.output_size(); ++i) {
    if (!call.wants(i))
      continue;
    Tensor *result = frame.scope.find(function.output(i));
    if (!result)
      return call.error() << "function " << quoted(function.name())
                          << " does not compute its result " << quoted(function.output(i));
    if (failed(loadInitializer(*result)) || failed(call.set(i, result)))
      return failure();
  }
  return success();
}

} // namespace importer
} // namespace partita
