//===- KeepGoing.cpp - reporting all errors of a model, not only the first --------------------===//
//
// A report continues after a node that failed. Its results are unavailable: a node that needs them cannot
// be imported, but it can have errors of its own. It is tried with several stand-ins for unavailable
// inputs, of different types and shapes. An unsupported attribute, and an error with the same text for
// every stand-in, are not due to the unavailable inputs and are reported; other errors may be, and are
// not. An axis that no stand-in has is an error too, unless the unavailable tensor had more dimensions
// than tensors of Transformers have.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Import/File/Node.h"
#include "lib/Import/Importer.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace partita::importer {

Tensor *Importer::createUnavailable() {
  Tensor &tensor = tensors.emplace_back();
  tensor.unavailable = true;
  return &tensor;
}

/// Most operators return the type and shape of their first input.
void Importer::markUnavailable(const onnx::NodeProto &proto, Frame &frame) {
  Tensor *like = proto.input_size() ? frame.scope.find(proto.input(0)) : nullptr;
  for (const std::string &output : proto.output()) {
    if (output.empty())
      continue;
    Tensor *&result = frame.scope.values[output];
    if (result && result->unavailable)
      continue; // a guess from stand-ins
    result = createUnavailable();
    if (!like || (like->unavailable && !like->isGuessed))
      continue;
    result->isGuessed = true;
    result->type = like->type;
    result->shape = like->shape;
  }
}

LogicalResult Importer::catchErrors(llvm::function_ref<LogicalResult()> body,
                                    llvm::SmallVectorImpl<std::string> &errors) {
  ScopedDiagnosticHandler catcher(context(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure(); // someone else's
    errors.push_back(diagnostic.str());
    return success();
  });
  return body();
}

/// A value of the program that stands for one that is unavailable.
static Tensor *valueStandIn(Importer &importer, DType type, llvm::ArrayRef<int64_t> shape) {
  auto ranked = RankedTensorType::get(shape, mlirType(type, importer.context()));
  return importer.create(tx::createSplat(importer.builder, importer.file.location(), ranked, 0));
}

/// Various types and ranks; no size occurs twice, so errors that mention a size differ.
Tensor *Importer::standIn(size_t number) {
  if (standIns.empty()) {
    for (const Shape &shape : {Shape{}, {3}, {2, 5}, {2, 7, 4}, {2, 11, 6, 8}, {2, 10, 12, 14, 16}})
      standIns.push_back(valueStandIn(*this, DType::f32, shape));
    standIns.push_back(valueStandIn(*this, DType::i64, {2, 9}));
    standIns.push_back(valueStandIn(*this, DType::boolean, {2, 13}));
    standIns.push_back(create(HostTensor::vector({1})));
  }
  return number < standIns.size() ? standIns[number] : nullptr;
}

void Importer::tryStandIns(const OpRow &row, const onnx::NodeProto &proto, Frame &frame,
                           int64_t version) {
  bool hasBranches = false;
  for (const onnx::AttributeProto &attribute : proto.attribute())
    if (attribute.has_g()) {
      hasBranches = true;
      (void)checkSupported(attribute.g().node(), frame);
    }
  if (hasBranches)
    return;
  llvm::SetVector<llvm::StringRef> names;
  for (const std::string &input : proto.input())
    if (Tensor *tensor = frame.scope.find(input); tensor && tensor->unavailable)
      names.insert(input);
  bool hasGuess = llvm::all_of(names, [&](llvm::StringRef name) {
    Tensor *tensor = frame.scope.find(name);
    return tensor->isGuessed && mlirType(tensor->type, context()) &&
           elementCount(tensor->shape).value_or(0) > 0;
  });
  std::optional<std::string> common;
  for (size_t number = 0; hasGuess || standIn(number); hasGuess = false) {
    Frame inner;
    inner.scope.parent = &frame.scope;
    inner.opsets = frame.opsets;
    inner.caller = frame.caller;
    inner.function = frame.function;
    inner.functionAttributes = frame.functionAttributes;
    inner.prefix = frame.prefix;
    for (llvm::StringRef name : names) {
      Tensor *unavailable = frame.scope.find(name);
      inner.scope.values[name] =
          hasGuess ? valueStandIn(*this, unavailable->type, unavailable->shape) : standIn(number);
    }
    number += !hasGuess;
    Node node(*this, proto, inner, version);
    node.hasStandIns = true;
    llvm::SmallVector<std::string> errors, attributes;
    if (succeeded(catchErrors([&] { return row.handler(node); }, errors))) {
      if (failed(catchErrors([&] { return node.checkAllRead(); }, attributes)))
        noteProblem(node, attributes.front());
      for (const std::string &output : proto.output())
        if (Tensor *result = inner.scope.values.lookup(output)) {
          Tensor *guess = frame.scope.values[output] = createUnavailable();
          guess->isGuessed = true;
          guess->type = result->type;
          guess->shape = result->shape;
        }
      return;
    }
    std::string text = errors.empty() ? std::string() : errors.front();
    if (common && *common != text)
      common = "";
    else
      common = text;
  }
  if (common && !common->empty())
    noteProblem(Node(*this, proto, frame, version), *common);
}

/// Drops what was already reported for a function's node, without the prefix of its callers' names.
void Importer::noteProblem(const Node &node, llvm::StringRef text) {
  llvm::StringRef rest = text, name = node.name;
  if (name.consume_front(node.frame.prefix) && rest.consume_front("node " + quoted(node.name)) &&
      reportedMissing.contains(("node " + quoted(name) + rest).str())) {
    broken = true;
    return;
  }
  noteProblem(node.name, text);
}

void Importer::noteProblem(llvm::StringRef nodeName, llvm::StringRef text) {
  broken = true;
  if (reportedMissing.contains(text))
    return;
  llvm::StringRef key = text;
  key.consume_front("node " + quoted(nodeName));
  auto [it, isNew] = problemOf.try_emplace(key, problems.size());
  if (isNew)
    problems.push_back({text.str()});
  else
    ++problems[it->second].others;
}

/// Reports each problem once: a model has many equal layers.
void Importer::reportProblems() {
  for (const Problem &each : problems) {
    InFlightDiagnostic diagnostic = error();
    diagnostic << each.text;
    if (each.others)
      diagnostic << "; the same of " << each.others
                 << (each.others == 1 ? " more node" : " more nodes");
  }
}

} // namespace partita::importer
