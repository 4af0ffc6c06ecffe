//===- ExplainCommand.cpp - partita explain ---------------------------------------------------===//
//
// Explains a program before it runs: every collective with its reason, bytes and group, a census by
// layers, and a rank's memory. For a compiled program this comes from manifest.json (Program.h);
// for a model and a plan, from the phases up to 'overlap', after which the collectives are final.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Analysis/Transfers.h"
#include "partita/Emit/Emit.h"
#include "partita/Memory/Ledger.h"
#include "partita/Phases/Phases.h"
#include "tools/partita/ConfigOptions.h"
#include "tools/partita/Expectations.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/CommunicationText.h"
#include "tools/partita/Report/ExplainText.h"
#include "tools/partita/Report/FlopsText.h"
#include "tools/partita/Report/LevelsText.h"
#include "tools/partita/Report/MemoryPicture.h"
#include "tools/partita/Report/MemoryText.h"
#include "tools/partita/Report/SchedulePicture.h"
#include "tools/partita/Report/StagesText.h"
#include "tools/partita/TargetOption.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using analysis::Census;
using analysis::Collective;

namespace {
struct ExplainOptions {
  std::string subject; ///< a compiled program's folder, or a model
  std::string target;  ///< of a model
  std::vector<std::string> dims;
  std::string picture, schedulePicture;
  bool all = false, asJson = false, memory = false, flops = false, warningsAsErrors = false;
  /// A model's memory is planned only if it is asked for.
  bool plansMemory() const { return memory || !picture.empty(); }
  Plan plan;
  ConfigOptions config;
  Expectations expectations;
  int64_t ranksPerNode = 0; ///< 0: a group of hpZ, if the plan has groups
  /// Of the same plan without ZeRO++'s compression.
  std::vector<Collective> exact;
  std::optional<json::Object> exactManifest;
};
} // namespace

static std::optional<int> parseOptions(Arguments arguments, ExplainOptions &o) {
  OptionSet options(
      "explain", "DIR|MODEL.onnx|MODEL.mlir [OPTIONS]",
      "Lists what ranks communicate, and why: node, letter of the op's rule, seed of the split, and "
      "what would remove it; by layers, forward and backward. For a compiled program also what the "
      "memory of a rank holds. A layer is what repeats in the graph (partita/Analysis/Layers.h), "
      "whatever its nodes are called.");
  options.positional("DIR|MODEL", o.subject,
                     "the folder that 'partita compile -o DIR' wrote; or a model, which is "
                     "explained with a plan without being compiled");
  options.group("Model, where one is given");
  options.list("dim", "NAME=SIZE", o.dims, "binds a symbolic dimension");
  o.config.declare(options);
  declarePlanOptions(options, o.plan);
  declareTarget(options, o.target);
  options.group("Output");
  o.expectations.declare(options);
  options.flag(
      "all", o.all,
      "every layer, every bucket, the collectives of all functions with their tensors, every "
      "buffer of the ledger");
  options.flag(
      "memory", o.memory,
      "only the ledger of memory: by kind and layer, the peak, the op at which it occurs, and "
      "the largest buffers there; for a model, memory is planned");
  options.flag(
      "flops", o.flops,
      "only what each layer computes, holds and communicates: parameters, FLOPs of the forward and "
      "the backward pass, bytes");
  auto picture = [&](StringRef name, StringRef help, std::string &path) {
    options.custom(name, "FILE.svg", "", help, [name, &path](StringRef file) {
      path = file.str();
      return file.empty() || file == "-" ? "a picture needs a file of its own, such as " +
                                               name.split('-').first.str() + ".svg"
                                         : std::string();
    });
  };
  picture("memory-picture", "draws memory over the step's ops, stacked by kind", o.picture);
  picture("schedule-picture", "draws the schedule of the pipeline stages by the clock of op costs",
          o.schedulePicture);
  options.integer(
      "ranks-per-node", "N", o.ranksPerNode, 0, 65536,
      "what nodes of N consecutive ranks send within them and between them, as the target "
      "does; 0: --zero-hpz-partition-size's groups are nodes");
  options.flag("json", o.asJson, "the same as one JSON object, always complete");
  declareWarningsAsErrors(options, o.warningsAsErrors);
  return options.parse(arguments);
}

/// Returns the part of a manifest that explain needs, for a model that is not compiled.
static json::Object describeModel(const ExplainOptions &o, mlir::ModuleOp module,
                                  ArrayRef<Collective> collectives) {
  json::Array axes;
  int64_t ranks = 1;
  for (auto [axis, size] : pipe::meshOf(module)) {
    axes.push_back(json::Object{{"axis", axis.getValue()}, {"size", size}});
    ranks *= size;
  }
  int64_t accumulate = 1;
  StringRef(o.plan.get("accumulate")).getAsInteger(10, accumulate);
  json::Array explained;
  for (const Collective &collective : collectives)
    explained.push_back(collective.toJson());
  json::Object manifest{{"program", sys::path::filename(o.subject)},
                        {"target", rt::Target::of(module).getName()},
                        {"model", o.subject},
                        {"mesh", std::move(axes)},
                        {"ranks", ranks},
                        {"accumulate", accumulate},
                        {"communicators", analysis::describeCommunicators(module)},
                        {"explained", std::move(explained)},
                        {"work", workToJson(notedWork(module))}};
  if (auto step = train::lookup<mlir::func::FuncOp>(module, train::EntryPoint::TrainStep)) {
    auto transfers = analysis::Transfers::of(step);
    manifest["transfers"] =
        json::Object{{"to_host", transfers.toHost}, {"to_device", transfers.toDevice}};
  }
  if (o.plansMemory()) {
    mlir::ModuleOp fullest = memory::fullestOf(pipe::stagesOf(module));
    manifest["memory"] = memory::describe(fullest);
    if (std::optional<int64_t> stage = pipe::stageOf(fullest))
      manifest["memory_stage"] = *stage;
  }
  if (json::Array channels = analysis::describeChannels(module); !channels.empty())
    manifest["channels"] = std::move(channels);
  if (json::Array stages = describeStages(module); !stages.empty())
    manifest["stages"] = std::move(stages);
  if (json::Object limit = describeLimit(module); !limit.empty())
    manifest["limited"] = std::move(limit);
  return manifest;
}

/// The plan options of ZeRO++, which change what is sent, and not the mesh and the stage.
static constexpr StringLiteral kCompressing[] = {kHpz, "zero-quantized-weights",
                                                 "zero-quantized-gradients", "quantization-block",
                                                 "gradient-quantization-block"};

/// Explains the model without ZeRO++'s options, for comparison.
static bool explainExact(ExplainOptions &o, mlir::ModuleOp model, int first) {
  Plan plan = o.plan;
  for (StringRef option : kCompressing)
    plan.set(option, findPlanOption(option)->initial);
  plan.set("keep-exact", findPlanOption("keep-exact")->initial); // without effect now
  bool same = llvm::all_of(
      kCompressing, [&](StringRef option) { return plan.get(option) == o.plan.get(option); });
  bool printsLevels =
      (o.ranksPerNode > 0 || o.plan.get(kHpz) != "1") && !o.plansMemory() && !o.flops;
  if (same || !printsLevels || first > phaseIndex("precision"))
    return true;
  mlir::OwningOpRef<mlir::ModuleOp> module = model.clone();
  (*module)->setAttr(train::TrainDialect::kPlan, plan.toAttribute(module->getContext()));
  if (failed(runPhases(*module, first, phaseIndex("overlap"), plan)))
    return false;
  o.exact = analysis::collectivesOf(*module);
  o.exactManifest = describeModel(o, *module, o.exact);
  return true;
}

/// Runs the phases after which the collectives and, if requested, the memory are final.
static std::optional<json::Object> explainModel(Session &session, ExplainOptions &o) {
  mlir::OwningOpRef<mlir::ModuleOp> module =
      loadWithConfig(session, o.config, o.subject, o.dims, o.plan);
  int first = module ? nextPhase(*module) : -1;
  for (auto [file, option] :
       {std::pair(&o.picture, "--memory-picture"), {&o.schedulePicture, "--schedule-picture"}})
    if (std::string problem = module && !file->empty() ? checkNotModel(*file, *module, option) : "";
        !problem.empty()) {
      session.fail(problem);
      return std::nullopt;
    }
  if (first < 0 || !settlePlan(session, *module, first, o.plan))
    return std::nullopt;
  session.tellGuesses(*module, o.plan);
  if (std::string problem = setTarget(*module, first, o.target); !problem.empty()) {
    session.fail(problem);
    return std::nullopt;
  }
  if (!explainExact(o, *module, first) ||
      failed(
          runPhases(*module, first, phaseIndex(o.plansMemory() ? "memory" : "overlap"), o.plan)) ||
      session.hasFailed())
    return std::nullopt;
  return describeModel(o, *module, analysis::collectivesOf(*module));
}

static std::optional<json::Object> readProgram(Session &session, const ExplainOptions &o) {
  if (!o.dims.empty() || !o.target.empty() || o.config.isSet() || o.warningsAsErrors ||
      llvm::any_of(planOptions(),
                   [&](const PlanOption &option) { return o.plan.isSet(option.name); })) {
    session.fail(
        o.subject +
        ": is compiled already; --config, --dim, --target, --warnings-as-errors and the plan's options go with a model");
    return std::nullopt;
  }
  std::string problem;
  std::optional<json::Object> manifest =
      readManifest(o.subject, problem, {"program", "ranks", "target", "mesh", "memory"});
  if (!manifest)
    session.fail(problem);
  return manifest;
}

/// The census of a collective's function, of each phase of training in which it differs.
static json::Array censusesOf(json::Object &manifest, ArrayRef<Collective> ofStage,
                              const Collective &of) {
  json::Array result;
  for (analysis::Steps steps : analysis::phasesOf(ofStage)) {
    json::Object entry =
        Census::of(ofStage, of.function, layerRangesOf(manifest, of.stage), steps).toJson();
    if (of.stage >= 0)
      entry["stage"] = of.stage;
    result.push_back(std::move(entry));
    if (of.function != train::nameOf(train::EntryPoint::TrainStep))
      break;
  }
  return result;
}

static std::optional<memory::Ledger> ledgerOf(const json::Object &manifest) {
  const json::Object *memory = manifest.getObject("memory");
  return memory ? memory::Ledger::fromJson(*memory) : std::nullopt;
}

/// Returns the number of ranks of a node: as the user says, else of one group of hpZ with all its ranks of the axes further in; 0 if there are none.
static int64_t nodeOf(const json::Object &manifest, const ExplainOptions &o) {
  if (o.ranksPerNode > 0)
    return o.ranksPerNode;
  const json::Object *plan = manifest.getObject("plan");
  if ((plan ? plan->getString(kHpz).value_or("1") : o.plan.get(kHpz)) == "1")
    return 0;
  int64_t ranks = 1;
  std::vector<const json::Object *> mesh = objectsIn(manifest.getArray("mesh"));
  for (const json::Object *axis : llvm::reverse(mesh)) {
    ranks *= numberIn(*axis, "size");
    if (par::splits(textIn(*axis, "axis"), par::Splits::Batch))
      break; // requireGroupedAxes: the last axis that splits the batch
  }
  return ranks;
}

/// What nodes send in the main function; nothing if there are no nodes.
static std::vector<LevelTable> levelTables(const json::Object &manifest,
                                           ArrayRef<Collective> collectives,
                                           const ExplainOptions &o) {
  int64_t node = nodeOf(manifest, o);
  if (node == 0 || collectives.empty())
    return {};
  std::string function = Census::mainFunction(collectives);
  std::vector<LevelTable> tables = levelsOf(manifest, collectives, function, node);
  if (o.exactManifest)
    tables.back().exact = levelsOf(*o.exactManifest, o.exact, function, node).back().all;
  return tables;
}

static void printJson(json::Object &manifest, ArrayRef<Collective> collectives,
                      const std::optional<stages::Timeline> &timeline, const ExplainOptions &o) {
  json::Object result;
  for (StringRef key : {"mesh", "ranks", "accumulate", "communicators", "channels", "collectives",
                        "explained", "transfers", "work", "memory", "stages", "limited"})
    if (json::Value *value = manifest.get(key))
      result[key] = *value;
  json::Array census;
  for (const std::vector<Collective> &ofStage : byStage(collectives)) {
    std::set<std::string> functions;
    for (const Collective &collective : ofStage)
      if (functions.insert(collective.function).second)
        for (const json::Value &entry : censusesOf(manifest, ofStage, collective))
          census.push_back(entry);
  }
  result["census"] = std::move(census);
  if (std::vector<LevelTable> tables = levelTables(manifest, collectives, o); !tables.empty()) {
    json::Array levels;
    for (const LevelTable &table : tables)
      levels.push_back(levelsToJson(table));
    result["ranks_per_node"] = tables.front().ranksPerNode;
    result["levels"] = std::move(levels);
  }
  if (timeline)
    result["schedule"] = timeline->toJson();
  outs() << formatv("{0:2}", json::Value(std::move(result))) << '\n';
}

static void printText(const json::Object &manifest, ArrayRef<Collective> collectives,
                      const std::optional<stages::Timeline> &timeline, const ExplainOptions &o) {
  bool all = o.all;
  outs() << describeProgram(manifest) << '\n';
  const json::Object *plan = manifest.getObject("plan");
  printStages(outs(), manifest, timeline,
              plan ? plan->getString("stages").value_or("") : o.plan.get("stages"));
  bool waits = llvm::any_of(collectives, [](const Collective &each) {
    return each.function == train::nameOf(train::EntryPoint::TrainStep) &&
           each.axis == pipe::PipeDialect::kAxisName;
  });
  if (timeline)
    printTimeline(outs(), *timeline, waits, all);
  printCommunication(outs(), manifest, collectives, all);
  for (const LevelTable &table : levelTables(manifest, collectives, o))
    printLevels(outs(), table);
  if (all)
    printCalls(outs(), manifest);
  printTransfers(outs(), manifest);
  printStageMemory(outs(), manifest);
  if (const json::Object *memory = manifest.getObject("memory")) {
    if (std::optional<int64_t> stage = manifest.getInteger("memory_stage"))
      outs() << formatv("\nStage {0} needs the most memory:\n", *stage);
    std::optional<memory::Ledger> ledger = ledgerOf(manifest);
    if (all && ledger)
      printMemory(outs(), *memory, *ledger, all);
    else
      printMemorySummary(outs(), *memory, ledger ? &*ledger : nullptr);
  }
}

/// Writes a picture, unless the file is an input. Returns false after a message.
static bool writePicture(Session &session, const json::Object &manifest, const ExplainOptions &o,
                         const std::string &file, StringRef option,
                         llvm::function_ref<void(raw_ostream &)> draw) {
  std::string problem;
  for (const std::string &input : {o.subject, o.config.file})
    if (problem.empty())
      problem = checkNotInput(file, input, option);
  if (problem.empty())
    problem = checkNotProgram(file, o.subject, manifest, option);
  if (problem.empty())
    problem = writeOutput(file, draw);
  if (!problem.empty())
    session.fail(problem);
  return problem.empty();
}

/// Prints the ledger as text, unless the output is JSON, and draws it as a picture.
static bool explainMemory(Session &session, const json::Object &manifest, const ExplainOptions &o) {
  std::optional<memory::Ledger> ledger = ledgerOf(manifest);
  if (!ledger) {
    session.fail(o.subject + ": has no ledger of memory op by op; 'partita compile' writes one");
    return false;
  }
  if (o.memory && !o.asJson) {
    outs() << describeProgram(manifest) << '\n';
    printStageMemory(outs(), manifest);
    if (std::optional<int64_t> stage = manifest.getInteger("memory_stage"))
      outs() << formatv("\nStage {0} needs the most memory\n", *stage);
    printMemory(outs(), *manifest.getObject("memory"), *ledger, o.all);
  }
  return o.picture.empty() ||
         writePicture(session, manifest, o, o.picture, "--memory-picture",
                      [&](raw_ostream &os) { drawMemory(os, *ledger, describeProgram(manifest)); });
}

/// Finds the timeline; nothing if there is no schedule. Returns false after a message.
static bool findTimeline(Session &session, const json::Object &manifest, const ExplainOptions &o,
                         std::optional<stages::Timeline> &timeline) {
  std::string problem;
  if (const json::Array *stages = manifest.getArray("stages"))
    timeline = stages::Timeline::of(*stages, problem);
  if (!problem.empty())
    problem = o.subject + ": " + problem;
  else if (!timeline && !o.schedulePicture.empty())
    problem = "--schedule-picture: " + o.subject +
              " has no schedule; a program that trains on pipeline stages (--mesh pp=2) has one";
  if (!problem.empty()) {
    session.fail(problem);
    return false;
  }
  return o.schedulePicture.empty() ||
         writePicture(
             session, manifest, o, o.schedulePicture, "--schedule-picture",
             [&](raw_ostream &os) { drawSchedule(os, *timeline, describeProgram(manifest)); });
}

/// Prints the table of FLOPs; fails if the program was compiled without one.
static bool explainFlops(Session &session, const json::Object &manifest,
                         ArrayRef<Collective> collectives, const ExplainOptions &o) {
  const json::Array *noted = manifest.getArray("work");
  std::vector<LayerWork> work = noted ? workFromJson(*noted) : std::vector<LayerWork>();
  if (work.empty()) {
    session.fail(
        o.subject +
        ": does not record what its layers compute; compile it again from the model, or from "
        "a phase before 'objective'");
    return false;
  }
  if (o.asJson)
    return true;
  outs() << describeProgram(manifest) << '\n';
  const json::Object *plan = manifest.getObject("plan");
  bool trains =
      !(plan ? plan->getString("objective") == "none" : o.plan.get("objective") == "none");
  printFlops(outs(), work, collectives, trains);
  return true;
}

int partita::tool::explainMain(Arguments arguments) {
  ExplainOptions o;
  if (std::optional<int> done = parseOptions(arguments, o))
    return *done;
  Session session("explain");
  if (o.warningsAsErrors)
    session.refuseWarnings();
  bool isModel =
      !sys::fs::is_directory(o.subject) && (sys::fs::exists(o.subject) || isMlirFile(o.subject) ||
                                            StringRef(o.subject).ends_with(".onnx"));
  std::optional<json::Object> manifest =
      isModel ? explainModel(session, o) : readProgram(session, o);
  if (!manifest)
    return 1;
  Expected<std::vector<Collective>> noted =
      analysis::collectivesIn(manifest->getArray("explained"));
  if (!noted)
    return session.fail(o.subject + ": " + toString(noted.takeError()));
  const std::vector<Collective> &collectives = *noted;
  if (int64_t ranks = numberIn(*manifest, "ranks");
      o.ranksPerNode > 0 && ranks % o.ranksPerNode != 0)
    return session.fail(
        formatv("--ranks-per-node: the {0} ranks are not nodes of {1} each", ranks, o.ranksPerNode)
            .str());
  std::string model = manifest->getString("model").value_or(o.subject).str();
  for (const std::vector<Collective> &ofStage : byStage(collectives))
    if (!o.expectations.hold(
            ofStage, mlir::FileLineColLoc::get(&session.context(), model, 0, 0),
            layerRangesOf(*manifest, ofStage.empty() ? -1 : ofStage.front().stage)))
      return 1;
  std::optional<stages::Timeline> timeline;
  if (!findTimeline(session, *manifest, o, timeline))
    return 1;
  if (o.plansMemory() && !explainMemory(session, *manifest, o))
    return 1;
  if (o.flops && !explainFlops(session, *manifest, collectives, o))
    return 1;
  if (o.asJson)
    printJson(*manifest, collectives, timeline, o);
  else if (!o.memory && !o.flops)
    printText(*manifest, collectives, timeline, o);
  return 0;
}
