//===- Manifest.cpp - what is known of a program before it runs, as JSON ----------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "lib/Emit/Tables.h"
#include "partita/Analysis/Collectives.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;
namespace json = llvm::json;

namespace {

/// JSON text is UTF-8; names in a model need not be.
std::string utf8(StringRef bytes) {
  return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes);
}

StringRef string(DictionaryAttr entry, StringRef key) {
  auto attribute = dyn_cast_or_null<StringAttr>(entry.get(key));
  return attribute ? attribute.getValue() : "";
}
int64_t number(DictionaryAttr entry, StringRef key) {
  auto attribute = dyn_cast_or_null<IntegerAttr>(entry.get(key));
  return attribute ? attribute.getInt() : 0;
}

json::Array shapeOf(ArrayRef<int64_t> shape) {
  json::Array result;
  for (int64_t size : shape)
    result.push_back(size);
  return result;
}

std::string placementText(Type type) {
  Attribute encoding = cast<RankedTensorType>(type).getEncoding();
  if (!encoding)
    return "invariant";
  std::string text;
  llvm::raw_string_ostream(text) << encoding;
  return text;
}

json::Object planOf(ModuleOp module) {
  json::Object result;
  auto plan = module->getAttrOfType<train::PlanAttr>(train::TrainDialect::kPlan);
  if (!plan)
    return result;
  for (NamedAttribute option : plan.getOptions()) {
    std::string text;
    if (auto value = dyn_cast<StringAttr>(option.getValue()))
      text = value.getValue().str();
    else
      llvm::raw_string_ostream(text) << option.getValue();
    result[option.getName().getValue()] = utf8(text);
  }
  return result;
}

json::Array meshOf(par::MeshAttr mesh) {
  json::Array axes;
  for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
    axes.push_back(json::Object{{"axis", axis.getValue()}, {"size", size}});
  return axes;
}

json::Array collectivesOf(DictionaryAttr program, par::MeshAttr mesh) {
  json::Array result;
  for (DictionaryAttr entry :
       cast<ArrayAttr>(program.get("collectives")).getAsRange<DictionaryAttr>()) {
    json::Array tensors;
    for (StringAttr name : cast<ArrayAttr>(entry.get("tensors")).getAsRange<StringAttr>())
      tensors.push_back(utf8(name.getValue()));
    result.push_back(json::Object{{"function", string(entry, "function")},
                                  {"kind", string(entry, "kind")},
                                  {"axis", string(entry, "axis")},
                                  {"ranks", mesh.sizeOf(string(entry, "axis"))},
                                  {"calls", number(entry, "calls")},
                                  {"bytes", number(entry, "bytes")},
                                  {"tensors", std::move(tensors)},
                                  {"why", utf8(string(entry, "reason"))}});
  }
  return result;
}

json::Array reasonsOf(ModuleOp module) {
  json::Array result;
  for (const analysis::Collective &collective : analysis::collectivesOf(module))
    result.push_back(collective.toJson());
  return result;
}

class Memory {
public:
  explicit Memory(ModuleOp module) : module(module) {}

  json::Object describe(int64_t arena, int64_t persistent) {
    auto ledger = module->getAttrOfType<DictionaryAttr>(rt::RtDialect::kLedger);
    json::Array buffers;
    json::Object functions;
    int64_t parameters = 0, states = 0;
    if (ledger) {
      parameters = number(ledger, "parameters");
      states = number(ledger, "optimizer_states");
      persistentBuffers(buffers);
      for (NamedAttribute entry : ledger)
        if (auto function = dyn_cast<DictionaryAttr>(entry.getValue()))
          functions[entry.getName().getValue()] =
              functionOf(function, buffers, entry.getName() == "train_step");
    }
    return json::Object{{"persistent", persistent},          {"parameters", parameters},
                        {"optimizer_states", states},        {"arena", arena},
                        {"functions", std::move(functions)}, {"ledger", std::move(buffers)}};
  }

private:
  /// Parameters and states live as long as the program.
  void persistentBuffers(json::Array &buffers) {
    for (Operation &op : *module.getBody()) {
      auto at = op.getAttrOfType<rt::AtAttr>(rt::RtDialect::kAt);
      auto type = op.getAttrOfType<TypeAttr>(rt::RtDialect::kLocal);
      if (!at || !type)
        continue;
      auto tensor = cast<RankedTensorType>(type.getValue());
      buffers.push_back(json::Object{
          {"name", utf8(SymbolTable::getSymbolName(&op).getValue())},
          {"kind", isa<train::ParameterOp>(op) ? "parameter" : "state"},
          {"bytes", tensor.getNumElements() * rt::elementBytes(tensor.getElementType())},
          {"offset", at.getOffset()}});
    }
  }

  static json::Object functionOf(DictionaryAttr function, json::Array &buffers, bool listed) {
    json::Object result;
    for (StringRef key :
         {"arena", "peak", "activations", "gradients", "communication", "workspace"})
      result[key] = number(function, key);
    result["at"] = utf8(string(function, "at"));
    if (listed)
      for (DictionaryAttr buffer :
           cast<ArrayAttr>(function.get("buffers")).getAsRange<DictionaryAttr>())
        buffers.push_back(json::Object{{"name", utf8(string(buffer, "name"))},
                                       {"kind", string(buffer, "kind")},
                                       {"bytes", number(buffer, "bytes")},
                                       {"offset", number(buffer, "offset")},
                                       {"begin", number(buffer, "begin")},
                                       {"end", number(buffer, "end")}});
    return result;
  }

  ModuleOp module;
};

json::Array parametersOf(ModuleOp module) {
  json::Array result;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    auto local = cast<RankedTensorType>(
        parameter->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
    result.push_back(
        json::Object{{"name", utf8(parameter.getSymName())},
                     {"shape", shapeOf(cast<RankedTensorType>(parameter.getType()).getShape())},
                     {"local", shapeOf(local.getShape())},
                     {"placement", placementText(local)},
                     {"bytes", local.getNumElements() * rt::elementBytes(local.getElementType())}});
  }
  return result;
}

/// Where initial values come from, as the files were.
json::Array filesOf(ModuleOp module) {
  json::Array result;
  for (const KnownFile &file : knownFiles(module))
    result.push_back(json::Object{
        {"file", utf8(file.name)}, {"bytes", file.bytes}, {"fingerprint", file.fingerprint}});
  return result;
}

json::Array inputsOf(DictionaryAttr program) {
  json::Array result;
  for (DictionaryAttr input : cast<ArrayAttr>(program.get("inputs")).getAsRange<DictionaryAttr>()) {
    Type type = cast<TypeAttr>(input.get("type")).getValue();
    result.push_back(json::Object{{"name", utf8(string(input, "name"))},
                                  {"role", string(input, "role")},
                                  {"shape", shapeOf(par::wholeType(type).getShape())},
                                  {"local", shapeOf(cast<RankedTensorType>(type).getShape())},
                                  {"placement", placementText(type)}});
  }
  return result;
}

} // namespace

LogicalResult partita::printManifest(ModuleOp module, const EmitOptions &options,
                                     llvm::raw_ostream &os) {
  auto program = required<DictionaryAttr>(module, rt::RtDialect::kProgram);
  auto arena = required<IntegerAttr>(module, rt::RtDialect::kArenaBytes);
  auto persistent = required<IntegerAttr>(module, rt::RtDialect::kPersistentBytes);
  if (!program || !arena || !persistent)
    return failure();
  auto mesh = par::MeshAttr::of(module);
  auto objective = module->getAttrOfType<StringAttr>(train::TrainDialect::kObjective);
  json::Object manifest{{"program", options.program},
                        {"model", utf8(options.model)},
                        {"target", "cpu"},
                        {"plan", planOf(module)},
                        {"objective", objective ? utf8(objective.getValue()) : ""},
                        {"mesh", meshOf(mesh)},
                        {"ranks", mesh.rankCount()},
                        {"accumulate", number(program, "accumulate")},
                        {"optimizer", string(program, "optimizer")},
                        {"inputs", inputsOf(program)},
                        {"files", filesOf(module)},
                        {"parameters", parametersOf(module)},
                        {"collectives", collectivesOf(program, mesh)},
                        {"explained", reasonsOf(module)},
                        {"memory", Memory(module).describe(arena.getInt(), persistent.getInt())}};
  os << llvm::formatv("{0:2}", json::Value(std::move(manifest))) << '\n';
  return success();
}
