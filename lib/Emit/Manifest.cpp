//===- Manifest.cpp - what is known of a program before it runs, as JSON ----------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Tensors.h"
#include "lib/Emit/Tables.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Flops.h"
#include "partita/Memory/Ledger.h"
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

json::Array censusOf(rt::ProgramAttr program, par::MeshAttr mesh) {
  json::Array result;
  for (rt::CensusAttr row : rt::elementsOf<rt::CensusAttr>(program.getCensus())) {
    json::Array tensors;
    for (StringAttr name : rt::elementsOf<StringAttr>(row.getTensors()))
      tensors.push_back(utf8(name.getValue()));
    result.push_back(json::Object{{"function", utf8(row.getFunction())},
                                  {"kind", partita_rt::rowOf(row.getKind()).name},
                                  {"axis", utf8(row.getAxis())},
                                  {"ranks", mesh.sizeOf(row.getAxis())},
                                  {"calls", row.getCalls()},
                                  {"bytes", row.getBytes()},
                                  {"tensors", std::move(tensors)},
                                  {"name", utf8(row.getReason())}});
  }
  return result;
}

json::Array reasonsOf(ArrayRef<analysis::Collective> collectives) {
  json::Array result;
  for (const analysis::Collective &collective : collectives)
    result.push_back(collective.toJson());
  return result;
}

/// The tensors of the model's file that hold the parameter.
json::Array storedTensors(train::ParameterOp parameter) {
  json::Array result;
  for (const train::StoredTensor &tensor : train::tensorsOf(parameter)) {
    json::Object entry{{"name", utf8(tensor.name)}};
    if (tensor.transposed)
      entry["transposed"] = true;
    if (tensor.reshaped)
      entry["reshaped"] = true;
    if (!tensor.slice.empty())
      entry["slice"] = shapeOf(tensor.slice);
    result.push_back(std::move(entry));
  }
  return result;
}

/// What import had to guess.
json::Array notesOf(ModuleOp module) {
  json::Array result;
  auto notes = module->getAttrOfType<ArrayAttr>(train::kNotes);
  for (Attribute each : notes ? notes.getValue() : ArrayRef<Attribute>())
    if (auto note = dyn_cast<DictionaryAttr>(each))
      result.push_back(utf8(string(note, "text")));
  return result;
}

json::Array parametersOf(ModuleOp module) {
  json::Array result;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    auto local = cast<RankedTensorType>(
        parameter->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
    result.push_back(
        json::Object{{"name", utf8(parameter.getModelName())},
                     {"shape", shapeOf(cast<RankedTensorType>(parameter.getType()).getShape())},
                     {"local", shapeOf(local.getShape())},
                     {"placement", placementText(local)},
                     {"tensors", storedTensors(parameter)},
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

json::Array inputsOf(rt::ProgramAttr program) {
  json::Array result;
  for (rt::InputAttr input : rt::elementsOf<rt::InputAttr>(program.getInputs()))
    result.push_back(json::Object{{"name", utf8(input.getName())},
                                  {"role", input.getRole()},
                                  {"shape", shapeOf(par::wholeType(input.getType()).getShape())},
                                  {"local", shapeOf(input.getType().getShape())},
                                  {"placement", placementText(input.getType())}});
  return result;
}

} // namespace

FailureOr<json::Object> partita::makeManifest(ModuleOp module, const EmitOptions &options) {
  auto program = required<rt::ProgramAttr>(module, rt::RtDialect::kProgram);
  auto arena = required<IntegerAttr>(module, rt::RtDialect::kArenaBytes);
  auto persistent = required<IntegerAttr>(module, rt::RtDialect::kPersistentBytes);
  if (!program || !arena || !persistent)
    return failure();
  auto mesh = par::MeshAttr::of(module);
  auto objective = module->getAttrOfType<StringAttr>(train::TrainDialect::kObjective);
  return json::Object{{"program", options.program},
                      {"model", utf8(options.model)},
                      {"target", rt::Target::of(module).getName()},
                      {"plan", planOf(module)},
                      {"objective", objective ? utf8(objective.getValue()) : ""},
                      {"mesh", meshOf(mesh)},
                      {"ranks", mesh.rankCount()},
                      {"accumulate", program.getAccumulate()},
                      {"optimizer", program.getOptimizer()},
                      {"inputs", inputsOf(program)},
                      {"files", filesOf(module)},
                      {"parameters", parametersOf(module)},
                      {"notes", notesOf(module)},
                      {"collectives", censusOf(program, mesh)},
                      {"transfers", json::Object{{"to_host", program.getToHost()},
                                                 {"to_device", program.getToDevice()}}},
                      {"explained", reasonsOf(analysis::collectivesOf(module))},
                      {"work", workToJson(notedWork(module))},
                      {"memory", memory::describe(module)}};
}
