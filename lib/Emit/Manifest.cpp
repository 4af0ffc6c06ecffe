//===- Manifest.cpp - describes a program as JSON before it runs ------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Tensors.h"
#include "lib/Emit/Tables.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Analysis/Flops.h"
#include "partita/Analysis/Messages.h"
#include "partita/Analysis/Transfers.h"
#include "partita/Memory/Ledger.h"
#include "partita/Stages/Schedule.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;
namespace json = llvm::json;

namespace {

/// Returns valid UTF-8, as JSON requires; names in a model need not be.
std::string utf8(StringRef bytes) {
  return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes);
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

json::Array meshOf(ModuleOp module) {
  json::Array axes;
  for (auto [axis, size] : pipe::meshOf(module))
    axes.push_back(json::Object{{"axis", axis.getValue()}, {"size", size}});
  return axes;
}

int64_t rankCount(ModuleOp module) {
  int64_t ranks = 1;
  for (auto [axis, size] : pipe::meshOf(module))
    ranks *= size;
  return ranks;
}

/// Adds the stage to a row if there are several.
void addStage(json::Object &row, ModuleOp stage) {
  if (std::optional<int64_t> number = pipe::stageOf(stage))
    row["stage"] = *number;
}

void addCensus(ModuleOp module, ModuleOp stage, json::Array &result) {
  auto program = rt::ProgramAttr::of(stage);
  for (rt::CensusAttr row : rt::elementsOf<rt::CensusAttr>(program.getCensus())) {
    json::Array tensors;
    for (StringAttr name : rt::elementsOf<StringAttr>(row.getTensors()))
      tensors.push_back(utf8(name.getValue()));
    rt::CommunicatorAttr communicator = program.getCommunicator(row.getCommunicator());
    json::Object entry{{"function", utf8(row.getFunction())},
                       {"kind", partita_rt::rowOf(row.getKind()).name},
                       {"axis", utf8(communicator.getCounted())},
                       {"communicator", utf8(communicator.getName())},
                       {"ranks", analysis::rankCountOf(communicator, module)},
                       {"calls", row.getCalls()},
                       {"bytes", row.getBytes()},
                       {"tensors", std::move(tensors)},
                       {"name", utf8(row.getReason())}};
    addStage(entry, stage);
    if (par::ExactStepsAttr exact = row.getExact())
      analysis::addSteps({row.getSteps(), exact.getSteps()}, entry);
    result.push_back(std::move(entry));
  }
}

json::Array reasonsOf(ModuleOp module) {
  json::Array result;
  for (const analysis::Collective &collective : analysis::collectivesOf(module))
    result.push_back(collective.toJson());
  return result;
}

json::Object transfersOf(ModuleOp stage) {
  auto program = rt::ProgramAttr::of(stage);
  if (!program) {
    auto step = train::lookup<func::FuncOp>(stage, train::EntryPoint::TrainStep);
    auto transfers = step ? analysis::Transfers::of(step) : analysis::Transfers();
    return json::Object{{"to_host", transfers.toHost}, {"to_device", transfers.toDevice}};
  }
  return json::Object{{"to_host", program.getToHost()}, {"to_device", program.getToDevice()}};
}

json::Object partOf(int64_t times, ArrayRef<train::Slot> of) {
  json::Array slots;
  for (const train::Slot &slot : of)
    slots.push_back(stages::slotText(slot));
  return json::Object{{"times", times}, {"slots", std::move(slots)}};
}

json::Object runOf(const train::OrderAttr::Run &run) {
  if (run.isFlat() && run.step == 1)
    return partOf(run.times, run.parts.front().slots);
  json::Array parts;
  for (const train::OrderAttr::Part &part : run.parts)
    parts.push_back(partOf(part.times, part.slots));
  return json::Object{{"times", run.times}, {"step", run.step}, {"runs", std::move(parts)}};
}

/// Returns what `note-schedule` found: the order in runs, with slots as in a schedule file, and the
/// costs of passes by kind and chunk.
json::Object scheduleOf(ModuleOp stage, train::CostsAttr noted) {
  json::Array runs;
  for (const train::OrderAttr::Run &run : noted.getOrder().getRuns())
    runs.push_back(runOf(run));
  auto byKind = [&](int64_t (train::PassCostAttr::*number)() const, bool hasZeros) {
    std::map<StringRef, SmallVector<int64_t>> found;
    for (auto each : noted.getPasses().getAsRange<train::PassCostAttr>()) {
      train::PassName pass = each.getPass().getName();
      SmallVector<int64_t> &ofChunks = found[train::stringifyPassKind(pass.kind)];
      ofChunks.resize(std::max<size_t>(ofChunks.size(), pass.chunk + 1), 0);
      ofChunks[pass.chunk] = (each.*number)();
    }
    json::Object result;
    for (auto &[kind, ofChunks] : found)
      if (hasZeros || llvm::any_of(ofChunks, [](int64_t each) { return each != 0; }))
        result[kind] = json::Array(ofChunks);
    return result;
  };
  std::optional<pipe::Positions> positions = pipe::positionsOf(stage);
  json::Object result{{"runs", std::move(runs)},
                      {"costs", byKind(&train::PassCostAttr::getCost, /*hasZeros=*/true)},
                      {"wave", positions && positions->isWave}};
  if (json::Object reduced = byKind(&train::PassCostAttr::getReduced, /*hasZeros=*/false);
      !reduced.empty()) {
    result["reduced"] = std::move(reduced);
    result["beside"] = byKind(&train::PassCostAttr::getBeside, /*hasZeros=*/false);
  }
  return result;
}

} // namespace

json::Object partita::describeLimit(ModuleOp module) {
  json::Object result;
  if (auto limited = module->getAttrOfType<pipe::LimitedAttr>(pipe::PipeDialect::kLimited))
    result = json::Object{{"limit", limited.getLimit()},
                          {"cuts", json::Array(limited.getCuts().asArrayRef())},
                          {"stage", limited.getStage()},
                          {"bytes", limited.getBytes()},
                          {"tried", limited.getTried()}};
  return result;
}

json::Array partita::describeStages(ModuleOp module) {
  json::Array result;
  int64_t layers = countLayers(notedWork(module));
  for (ModuleOp stage : pipe::stagesOf(module)) {
    std::optional<int64_t> number = pipe::stageOf(stage);
    if (!number)
      break;
    json::Object entry{{"stage", *number}, {"transfers", transfersOf(stage)}};
    json::Array chunks;
    for (const analysis::LayerRange &range : analysis::layerRangesOf(stage, layers))
      chunks.push_back(json::Object{{"first_layer", range.first}, {"layers", range.count}});
    if (!chunks.empty())
      entry["chunks"] = std::move(chunks);
    json::Array messages;
    for (const analysis::Message &message : analysis::Message::of(stage))
      messages.push_back(message.toJson());
    entry["messages"] = std::move(messages);
    if (auto noted = stage->getAttrOfType<train::CostsAttr>(train::TrainDialect::kCosts))
      entry["schedule"] = scheduleOf(stage, noted);
    if (auto cost = stage->getAttrOfType<IntegerAttr>(train::TrainDialect::kForwardCost))
      entry["forward_cost"] = cost.getInt();
    if (stage->hasAttr(rt::RtDialect::kLedger))
      entry["memory"] = memory::describe(stage);
    result.push_back(std::move(entry));
  }
  return result;
}

namespace {

/// Lists the tensors of the model file that hold the parameter.
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

/// Lists what import had to guess.
json::Array notesOf(ModuleOp module) {
  json::Array result;
  for (train::NoteAttr note : train::notesOf(module))
    result.push_back(utf8(note.getText()));
  return result;
}

/// Lists each parameter once, with the stages that have it.
json::Array parametersOf(ModuleOp module) {
  json::Array result;
  llvm::MapVector<StringAttr, std::pair<train::ParameterOp, json::Array>> all;
  for (ModuleOp stage : pipe::stagesOf(module))
    for (auto parameter : stage.getOps<train::ParameterOp>()) {
      auto &[first, stages] = all[parameter.getSymNameAttr()];
      first = first ? first : parameter;
      if (std::optional<int64_t> number = pipe::stageOf(stage))
        stages.push_back(*number);
    }
  for (auto &[symbol, held] : all) {
    auto &[parameter, stages] = held;
    auto local = cast<RankedTensorType>(
        parameter->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
    result.push_back(
        json::Object{{"name", utf8(parameter.getModelName())},
                     {"shape", shapeOf(cast<RankedTensorType>(parameter.getType()).getShape())},
                     {"local", shapeOf(local.getShape())},
                     {"placement", placementText(local)},
                     {"tensors", storedTensors(parameter)},
                     {"bytes", local.getNumElements() * rt::elementBytes(local.getElementType())}});
    if (!stages.empty())
      (*result.back().getAsObject())["stages"] = std::move(stages);
  }
  return result;
}

/// Lists the files with initial values, as import found them.
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
                                  {"shape", shapeOf(par::fullType(input.getType()).getShape())},
                                  {"local", shapeOf(input.getType().getShape())},
                                  {"placement", placementText(input.getType())}});
  return result;
}

} // namespace

FailureOr<json::Object> partita::makeManifest(ModuleOp module, const EmitOptions &options) {
  SmallVector<ModuleOp> stages = pipe::stagesOf(module);
  json::Array collectives;
  StringRef optimizer = "none";
  for (ModuleOp stage : stages) {
    auto program = required<rt::ProgramAttr>(stage, rt::RtDialect::kProgram);
    if (!program || !required<IntegerAttr>(stage, rt::RtDialect::kArenaBytes) ||
        !required<IntegerAttr>(stage, rt::RtDialect::kPersistentBytes))
      return failure();
    addCensus(module, stage, collectives);
    optimizer = optimizer == "none" ? program.getOptimizer() : optimizer;
  }
  auto program = rt::ProgramAttr::of(stages.front());
  ModuleOp fullest = memory::fullestOf(stages);
  auto objective = module->getAttrOfType<StringAttr>(train::TrainDialect::kObjective);
  json::Object manifest{{"program", options.program},
                        {"model", utf8(options.model)},
                        {"target", rt::Target::of(module).getName()},
                        {"plan", planOf(module)},
                        {"objective", objective ? utf8(objective.getValue()) : ""},
                        {"mesh", meshOf(module)},
                        {"ranks", rankCount(module)},
                        {"accumulate", program.getAccumulate()},
                        {"optimizer", optimizer},
                        {"inputs", inputsOf(program)},
                        {"files", filesOf(module)},
                        {"parameters", parametersOf(module)},
                        {"notes", notesOf(module)},
                        {"communicators", analysis::describeCommunicators(module)},
                        {"collectives", std::move(collectives)},
                        {"transfers", transfersOf(fullest)},
                        {"explained", reasonsOf(module)},
                        {"work", workToJson(notedWork(module))},
                        {"memory", memory::describe(fullest)}};
  if (json::Array channels = analysis::describeChannels(module); !channels.empty())
    manifest["channels"] = std::move(channels);
  if (json::Array each = describeStages(module); !each.empty())
    manifest["stages"] = std::move(each), manifest["memory_stage"] = *pipe::stageOf(fullest);
  if (json::Object limit = describeLimit(module); !limit.empty())
    manifest["limited"] = std::move(limit);
  return manifest;
}
