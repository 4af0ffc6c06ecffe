//===- DetachNotes.cpp - gradients that the model stops ----------------------------------------===//
//
// detach() is an Identity in ONNX, which exporters remove. Dynamo's record still names it: among the
// operations that a folded tensor was computed by, as the operation of an Identity, or, where the
// Identity is gone, as "%detach" among the arguments of the call that a node was made for. No op
// here stops a gradient, so the gradient flows. TorchScript leaves no trace, but x + (y - x) computes
// y in a roundabout way, unless it was x + (y - x).detach().
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/File/ProgramValues.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace partita::importer {

namespace {

/// Parameters and nodes' results through which the model lets no gradient pass.
class DetachFinder {
public:
  DetachFinder(const onnx::GraphProto &graph, const Origins &origins,
               llvm::function_ref<bool(llvm::StringRef)> isTrained)
      : graph(graph), origins(origins), isTrained(isTrained), program(graph) {}

  void run() {
    for (const onnx::NodeProto &node : graph.node()) {
      for (const std::string &input : node.input())
        if (isTrained(input) && origins.of(input).detached)
          tensors.insert(input);
      if (std::optional<ProgramCall> call = callOf(node))
        read(node, *call);
      if (!stopsGradients(node) &&
          llvm::any_of(node.input(), [&](const std::string &input) { return hasGradient(input); }))
        computed.insert_range(node.output());
    }
  }

  llvm::SetVector<llvm::StringRef> tensors, values;

private:
  bool hasGradient(llvm::StringRef value) const {
    return isTrained(value) || computed.contains(value);
  }

  static bool stopsGradients(const onnx::NodeProto &node) {
    OpEffect effect = effectOf(node);
    return effect == OpEffect::Tests || effect == OpEffect::Finds || effect == OpEffect::Measures;
  }

  void add(llvm::StringRef value) {
    if (isTrained(value))
      tensors.insert(value);
    else if (computed.contains(value))
      values.insert(value);
  }

  void read(const onnx::NodeProto &node, const ProgramCall &call) {
    if (call.operation == "detach") {
      for (const std::string &input : node.input())
        add(input);
      return;
    }
    bool isDetachGone = false, isOtherGone = false;
    for (const ProgramCall::Argument &argument : program.missing(call))
      (isDetached(argument.name) ? isDetachGone : isOtherGone) = true;
    if (!isDetachGone)
      return;
    for (const std::string &input : node.input()) {
      // Made inside the decomposition, of the detached argument if that is the only one that is gone.
      bool isInner = isInnerName(computedName(input));
      if (isInner && (isOtherGone || !isTrained(input)))
        continue;
      if (llvm::count(node.input(), input) > timesNamed(input, call))
        add(input);
    }
  }

  /// By its own name, or by that which the program has for the parameter.
  int64_t timesNamed(llvm::StringRef value, const ProgramCall &call) const {
    return llvm::count_if(call.arguments, [&](const ProgramCall::Argument &argument) {
      llvm::StringRef target = program.targetOf(argument.name);
      return argument.name == value || target == value ||
             llvm::is_contained(origins.of(value).parameters, target);
    });
  }

  const onnx::GraphProto &graph;
  const Origins &origins;
  llvm::function_ref<bool(llvm::StringRef)> isTrained;
  ProgramValues program;
  llvm::StringSet<> computed; ///< from parameters, with a gradient
};

/// Nodes x + (y - x) and x - (x - y), where x is computed from a parameter.
std::vector<std::string> straightThrough(const onnx::GraphProto &graph,
                                         llvm::function_ref<bool(llvm::StringRef)> isTrained) {
  llvm::StringMap<const onnx::NodeProto *> differences;
  llvm::StringSet<> computed;
  std::vector<std::string> found;
  for (const onnx::NodeProto &node : graph.node()) {
    if (llvm::any_of(node.input(), [&](const std::string &input) {
          return isTrained(input) || computed.contains(input);
        }))
      computed.insert_range(node.output());
    if (node.input_size() != 2 || node.output_size() != 1)
      continue;
    const OpRow &facts = factsOf(node);
    bool isSum = !facts.inverts;
    if (facts.effect != OpEffect::Adds)
      continue;
    if (!isSum)
      differences[node.output(0)] = &node;
    for (int at : {0, 1}) {
      const std::string &x = node.input(at);
      const onnx::NodeProto *difference = differences.lookup(node.input(1 - at));
      if (difference && difference->input(isSum) == x && (isSum || at == 0) &&
          (isTrained(x) || computed.contains(x)))
        found.push_back(node.name());
    }
  }
  return found;
}

} // namespace

/// A straight-through estimator, x + (round(x) - x).detach(), has the gradient of x.
void NoteFinder::noteStraightThrough() {
  if (exporter == Exporter::Dynamo) // noteDetached reads the record
    return;
  std::vector<std::string> nodes =
      straightThrough(graph, [&](llvm::StringRef name) { return hasGradient(name); });
  bool isOne = nodes.size() == 1;
  if (!nodes.empty())
    noteBeside(
        (isOne ? "node " : "nodes ") + listed(nodes) + (isOne ? " adds" : " add") +
            " to x the difference of another value and x, as x + (y - x).detach() does (a "
            "straight-through estimator): TorchScript does not record detach(), and the "
            "gradient is that of y here, of a rounded value zero; in PyTorch it is that of x",
        {});
}

void NoteFinder::noteDetached() {
  if (exporter != Exporter::Dynamo)
    return;
  auto isTrained = [&](llvm::StringRef name) { return hasGradient(name); };
  DetachFinder finder(graph, origins, isTrained);
  finder.run();
  std::vector<std::string> tensors, parameters, values, joined;
  for (llvm::StringRef name : finder.tensors) {
    if (origins.of(name).parameters.size() > 1) {
      joined.push_back(name.str());
      continue;
    }
    llvm::StringRef origin = weights.originOf(name);
    std::string called = (origin.empty() ? name : origin).str();
    tensors.push_back(name.str());
    if (!llvm::is_contained(parameters, called))
      parameters.push_back(called);
  }
  for (llvm::StringRef name : finder.values)
    values.push_back(name.str());
  bool isOne = parameters.size() == 1;
  if (!parameters.empty())
    noteBeside(
        (isOne ? "parameter " : "parameters ") + listed(parameters) + (isOne ? " is" : " are") +
            " read through detach(), which import does not follow: " +
            (isOne ? "it gets" : "they get") + " a gradient from there too; use --freeze " +
            quoted(parameters.front()) + " if " + (isOne ? "it" : "the first") + " has no other",
        std::move(tensors));
  if (!joined.empty())
    noteBeside(
        oneOf(joined) + " was folded from parameters " +
            listed(origins.of(joined.front()).parameters) +
            ", of which at least one was read through detach(), which import does not follow: all "
            "get a gradient from there; to learn which, " +
            unfolded() + "; use --freeze " + quoted(joined.front()) + " if all were",
        joined);
  if (!values.empty())
    noteBeside("the model calls detach() on " +
                   std::string(values.size() == 1 ? "value " : "values ") + listed(values) +
                   ", which import does not follow: gradients flow through there, unlike in "
                   "PyTorch; use --freeze for parameters that have no other gradient",
               {});
}

} // namespace partita::importer
