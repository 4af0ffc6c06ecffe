//===- Nodes.cpp - each node is handed to its row of the registry -----------------------------===//

#include "lib/Import/File/Devices.h"
#include "lib/Import/File/Node.h"
#include "lib/Import/Importer.h"

using namespace mlir;

namespace partita::importer {

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
    markUnavailable(node, frame);
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
  bool behindUnavailable = false;
  for (const std::string &input : proto.input()) {
    if (input.empty())
      continue;
    if (!frame.scope.defines(input))
      return node.error() << "its input " << quoted(input)
                          << " is not the result of a node before it, an initializer or an input";
    Tensor *tensor = frame.scope.find(input);
    if (tensor && failed(loadInitializer(*tensor))) {
      tensor->unavailable = true;
      return failure();
    }
    behindUnavailable |= tensor && tensor->unavailable;
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
  if (behindUnavailable && row->takesSequences)
    return failure(); // stand-ins are no sequences
  if (behindUnavailable) {
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

} // namespace partita::importer
