//===- DroppedParameters.cpp ------------------------------------------------------------------===//

#include "lib/Import/Weights/DroppedParameters.h"
#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/File/ProgramValues.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::importer {

namespace {

/// The modules around a node, from the model ("") to the one whose code it is.
using Path = std::vector<std::string>;

const Path model = {""};

Path pathOf(const onnx::NodeProto &node) {
  const std::string *text = valueOf(node.metadata_props(), scopesKey);
  std::optional<Path> path = text ? parsePythonList(*text) : std::nullopt;
  if (!path || path->size() < 2)
    return model;
  path->pop_back(); // the node itself
  return *path;
}

/// A parameter's name is its module's path and its own name there; npos + 1 is 0.
llvm::StringRef ownName(llvm::StringRef name) { return name.substr(name.rfind('.') + 1); }
llvm::StringRef moduleOf(llvm::StringRef name) {
  return name.drop_back(ownName(name).size()).rtrim('.');
}

/// Where data reached a removed operation, and where it left it.
struct Removed {
  llvm::StringRef operation;
  Path from, to;
};

/// Was the operation in the code of this module? Data comes there from a module inside or around it, and
/// goes on to one; what passes from one module inside it to itself stays in that one.
bool mayBeIn(const Removed &removed, llvm::StringRef module) {
  auto depth = [&](const Path &path) { return llvm::find(path, module) - path.begin(); };
  size_t shared = 0;
  while (shared < removed.from.size() && shared < removed.to.size() &&
         removed.from[shared] == removed.to[shared])
    ++shared;
  for (const Path *path : {&removed.from, &removed.to})
    if (size_t at = depth(*path); at < path->size() && shared <= at + 1)
      return true;
  return false;
}

class DroppedFinder {
public:
  DroppedFinder(const onnx::GraphProto &graph, const Origins &origins,
                llvm::ArrayRef<std::string> nowhere)
      : graph(graph), origins(origins), nowhere(nowhere), program(graph) {}

  DroppedParameters run() {
    readValues();
    for (const onnx::NodeProto &node : graph.node()) {
      findRemoved(node);
      findTied(node);
    }
    DroppedParameters found;
    for (const std::string &parameter : nowhere) {
      if (tied.contains(parameter))
        continue;
      std::string module = callerOf(moduleOf(parameter));
      auto removed =
          llvm::find_if(operations, [&](const Removed &each) { return mayBeIn(each, module); });
      if (removed == operations.end())
        continue;
      if (found.parameters.empty())
        found.operation = removed->operation.str();
      found.parameters.push_back(parameter);
    }
    return found;
  }

private:
  void readValues() {
    for (const onnx::ValueInfoProto &input : graph.input())
      paths[input.name()] = model;
    for (const onnx::ValueInfoProto &output : graph.output())
      results.insert(output.name());
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      tensors.insert(tensor.name());
      if (!origins.of(tensor.name()).parameters.empty())
        paths[tensor.name()] = model;
    }
    for (const onnx::NodeProto &node : graph.node()) {
      Path path = pathOf(node);
      modules.insert_range(path);
      for (const std::string &output : node.output())
        paths[output] = path;
    }
  }

  void findRemoved(const onnx::NodeProto &node) {
    std::optional<ProgramCall> call = callOf(node);
    if (!call)
      return;
    auto instead = llvm::find_if(node.input(),
                                 [&](const std::string &input) { return isUnnamed(input, *call); });
    if (instead != node.input().end())
      for (const ProgramCall::Argument &argument : program.missing(*call))
        if (operationMaking(argument.name).hasNeutralNumber())
          operations.push_back({argument.name, paths.lookup(*instead), pathOf(node)});
    for (const std::string &output : node.output())
      if (results.contains(output) && output != call->result && !program.isDiscrete(output) &&
          operationMaking(output).hasNeutralNumber())
        operations.push_back({output, pathOf(node), model});
  }

  /// Does the node read a float value of the program, or a parameter, which its call does not name?
  bool isUnnamed(llvm::StringRef value, const ProgramCall &call) const {
    if (!paths.contains(value) || program.isDiscrete(value))
      return false;
    if (isInnerName(value) && !tensors.contains(value)) // made by the same call
      return false;
    const std::vector<std::string> &parameters = origins.of(value).parameters;
    return llvm::none_of(call.arguments, [&](const ProgramCall::Argument &argument) {
      return argument.name == value ||
             llvm::is_contained(parameters, program.targetOf(argument.name));
    });
  }

  /// A parameter that stands for one of the node's module.
  void findTied(const onnx::NodeProto &node) {
    std::string module = pathOf(node).back();
    for (const std::string &input : node.input())
      for (const std::string &parameter : origins.of(input).parameters) {
        llvm::StringRef other = moduleOf(parameter);
        if (module.empty() || other == module || other.starts_with(module + "."))
          continue;
        std::string name = module + "." + ownName(parameter).str();
        if (llvm::is_contained(nowhere, name))
          tied.insert(name);
      }
  }

  /// The module, or the next one around it that has nodes left.
  std::string callerOf(llvm::StringRef module) const {
    while (!module.empty() && !modules.contains(module))
      module = moduleOf(module);
    return module.str();
  }

  const onnx::GraphProto &graph;
  const Origins &origins;
  llvm::ArrayRef<std::string> nowhere;
  ProgramValues program;
  llvm::StringMap<Path> paths; ///< of where values are made; not of constants
  llvm::StringSet<> tensors, results, modules;
  llvm::StringSet<> tied;
  std::vector<Removed> operations;
};

} // namespace

DroppedParameters findDropped(const onnx::GraphProto &graph, const Origins &origins,
                              llvm::ArrayRef<std::string> nowhere) {
  return nowhere.empty() ? DroppedParameters() : DroppedFinder(graph, origins, nowhere).run();
}

} // namespace partita::importer
