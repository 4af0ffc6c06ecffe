//===- CompileProgram.cpp - from a module to a program's folder -------------------------------===//

#include "tools/partita/CompileProgram.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "partita/Analysis/Flops.h"
#include "partita/Emit/Emit.h"
#include "partita/Memory/Ledger.h"
#include "partita/Phases/Phases.h"
#include "partita/Stages/Balance.h"
#include "partita/Stages/StageMemory.h"
#include "tools/partita/MemoryLimit.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Program.h"
#include "tools/partita/TargetOption.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

using namespace mlir;
using namespace partita;
using namespace partita::tool;

/// Lists targets that are built for an architecture, from the runtime's sources: "cuda".
static std::string devices() {
  std::string text;
  for (const rt::Target *target : rt::Target::all())
    if (!target->getArchitectures().empty())
      text += (text.empty() ? "" : " or ") + target->getName().str();
  return text;
}

static int writeModule(Session &session, ModuleOp module, StringRef output) {
  std::string problem = writeOutput(output.empty() ? "-" : output, [&](raw_ostream &os) {
    module->print(os, OpPrintingFlags().enableDebugInfo());
    os << '\n';
  });
  return problem.empty() ? 0 : session.fail(problem);
}

static std::string absolute(StringRef path) {
  SmallString<128> result(path);
  llvm::sys::fs::make_absolute(result);
  llvm::sys::path::remove_dots(result, /*remove_dot_dot=*/false);
  return result.str().str();
}

/// Derives the executable's name from the folder's, keeping letters that a file and a C++ program
/// may have.
static std::string programName(StringRef folder) {
  std::string name;
  for (char c : llvm::sys::path::filename(folder))
    name += llvm::isAlnum(c) || c == '_' || c == '-' ? c : '_';
  bool usable = !name.empty() && name != "_" && name[0] != '-' && name != "Makefile" &&
                name != "runtime" && name != "clean";
  return usable ? name : "program";
}

/// Sets the module's target; returns an error if a phase has already used another one, or an option goes with none that it could be.
static std::string takeTarget(ModuleOp module, int nextPhase, const CompileOptions &o) {
  const rt::Target &wanted =
      o.target.empty() ? rt::Target::of(module) : *rt::Target::find(o.target);
  for (auto [option, given] :
       {std::pair("--gpu-arch", !o.architecture.empty()), {"--with-runtime", o.withRuntime}}) {
    if (given && wanted.getArchitectures().empty())
      return std::string(option) + ": has no effect without --target " + devices();
    if (given && !o.lastPhase.empty())
      return std::string(option) + ": has no effect with --compile-to, which writes a module";
  }
  return setTarget(module, nextPhase, o.target);
}

/// Finds the runtime: its library is in lib/ beside the tool's folder; its sources are under share/
/// if the tool is installed, else in the source tree that the tool was built from.
static void findRuntime(EmitOptions &options) {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  SmallString<128> library(llvm::sys::path::parent_path(llvm::sys::path::parent_path(self)));
  llvm::sys::path::append(library, "lib");
  options.runtimeLibrary = library.str().str();
  SmallString<128> installed(llvm::sys::path::parent_path(library));
  llvm::sys::path::append(installed, "share", "partita", "runtime");
  options.runtimeSource = llvm::sys::fs::is_directory(installed)
                              ? installed.str().str()
                              : llvm::sys::path::parent_path(PARTITA_RUNTIME_INCLUDE).str();
  options.runtimeInclude = options.runtimeSource + "/include";
}

static int emit(Session &session, ModuleOp module, const CompileOptions &o, std::string *said) {
  std::string folder = absolute(o.output);
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  EmitOptions options;
  options.program = programName(folder);
  options.build = !o.noBuild;
  options.withRuntime = o.withRuntime;
  auto model = module->getAttrOfType<StringAttr>(train::TrainDialect::kModel);
  options.model = absolute(model ? model.getValue() : StringRef(o.model));
  options.modelFolder = llvm::sys::path::parent_path(options.model).str();
  const rt::Target &target = rt::Target::of(module);
  options.architecture =
      o.architecture.empty() ? target.getDefaultArchitecture().str() : o.architecture;
  findRuntime(options);
  if (std::string problem = findObstacle(module, options); !problem.empty())
    return session.fail(problem);
  showProgress(o.noBuild ? "emit" : "emit, " + compilerOf(target).str());
  FailureOr<llvm::json::Object> manifest = makeManifest(module, options);
  LogicalResult emitted = success(succeeded(manifest));
  std::string summary;
  if (succeeded(manifest)) {
    summary = describeProgram(*manifest) + "; " + describeMemory(*manifest);
    emitted = emitProgram(module, std::move(*manifest), folder, options);
  }
  showProgress("");
  if (failed(emitted))
    return session.hasFailed() ? 1 : session.fail("no program could be written to " + o.output);
  if (said)
    *said = summary;
  else
    llvm::outs() << "wrote " << printableLines(o.output) << ": " << summary << '\n';
  return 0;
}

/// Records the limit of a rank's memory, by which phase `memory` may decide, on a program that has not been through it.
static void takeLimit(ModuleOp module, int nextPhase, std::optional<uint64_t> limit) {
  if (!limit || nextPhase > phaseIndex("memory"))
    return;
  SmallVector<ModuleOp> modules = pipe::stagesOf(module);
  modules.push_back(module);
  for (ModuleOp each : modules)
    each->setAttr(rt::RtDialect::kMemoryLimit,
                  Builder(module.getContext()).getI64IntegerAttr(static_cast<int64_t>(*limit)));
}

/// Returns the memory that a rank needs for another request; errors are not reported.
static std::optional<Footprint> planAgain(Session &session, const CompileOptions &o,
                                          const Request &request) {
  ScopedDiagnosticHandler silent(&session.context(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = session.load(o.model, request.dims, request.plan);
  int first = module ? nextPhase(*module) : -1;
  if (first < 0 || !takeTarget(*module, first, o).empty())
    return {};
  takeLimit(*module, first, o.memoryLimit);
  if (failed(runPhases(*module, first, phaseIndex("memory"), request.plan)))
    return {};
  std::optional<Footprint> footprint = footprintOf(*module);
  // The kernels' scratch memory is known one phase later, when there are no ops left to count.
  if (footprint && rt::Target::of(*module).takesScratch()) {
    if (failed(runPhases(*module, phaseIndex("sync"), phaseIndex("lower"), request.plan)))
      return {};
    measureAgain(*module, *footprint);
  }
  return footprint;
}

static LogicalResult runAll(ModuleOp module, int first, int last, const Plan &plan) {
  LogicalResult result =
      runPhases(module, first, last, plan, [](const Phase &phase) { showProgress(phase.name); });
  showProgress("");
  return result;
}

/// Records "stage 1 with cuts:2 needs 3 bytes": the cuts that the memory limit ruled out.
static void noteLimit(ModuleOp module, const Footprint &needed, uint64_t limit, int tried) {
  MLIRContext *context = module.getContext();
  auto fullest = llvm::max_element(needed.ofStages);
  module->setAttr(pipe::PipeDialect::kLimited,
                  pipe::LimitedAttr::get(context, static_cast<int64_t>(limit),
                                         DenseI64ArrayAttr::get(context, needed.cuts),
                                         fullest - needed.ofStages.begin(),
                                         static_cast<int64_t>(*fullest), tried));
}

/// Searches cuts within the memory limit: those that balance the work best, or the nearest.
static stages::CutSearch findCuts(const CompileOptions &o, ModuleOp module,
                                  const stages::StageMemory &needed, bool isAuto,
                                  stages::CutPlanner planner) {
  int64_t layers = countLayers(notedWork(module));
  stages::RangeCosts costs(stages::notedSpans(module));
  pipe::Positions layout =
      pipe::positionsOf(pipe::stagesOf(module).front()).value_or(pipe::Positions());
  if (layout.chunks == 1)
    return isAuto ? stages::findBalancedCuts(needed, *o.memoryLimit, layers, costs, planner)
                  : stages::findNearestCuts(needed, *o.memoryLimit, layers, planner);
  int microBatches = 0;
  std::string problem; // none: the program has been compiled with this schedule
  (void)StringRef(o.plan.get("accumulate")).getAsInteger(10, microBatches);
  std::optional<stages::Schedule> schedule =
      stages::findSchedule(o.plan.get("schedule").str(), layout, microBatches, problem);
  auto price = [&](ArrayRef<int64_t> firsts) {
    double moved = 0;
    for (auto [own, other] : llvm::zip(firsts, needed.cuts))
      moved += std::abs(static_cast<double>(own - other));
    return isAuto && schedule ? stages::timeOf(layers, *schedule, costs, firsts) : moved;
  };
  return stages::findCheapCuts(needed, *o.memoryLimit, layers, layout, price, planner);
}

/// Runs the phases; with --stages auto, until every stage is within the memory limit, if any cuts
/// achieve that. Those cuts then become the plan's. `cuts`: for stages that exceed the limit, a
/// sentence about other cuts.
static LogicalResult compileWithin(Session &session, CompileOptions &o,
                                   OwningOpRef<ModuleOp> &module, int first, int last,
                                   std::string &cuts) {
  bool isCutHere = o.memoryLimit && o.plan.stages() > 1 && first <= phaseIndex("stages") &&
                   last >= phaseIndex("memory");
  OwningOpRef<ModuleOp> before = isCutHere ? module->clone() : ModuleOp();
  if (failed(runAll(*module, first, last, o.plan)))
    return failure();
  std::optional<Footprint> needed = isCutHere ? footprintOf(*module) : std::nullopt;
  if (!needed || needed->bytes <= *o.memoryLimit)
    return success();
  bool isAuto = o.plan.get("stages") == "auto";
  auto memoryOf = [](const Footprint &footprint) {
    return stages::StageMemory{footprint.ofStages, llvm::to_vector(footprint.cuts)};
  };
  auto planner = [&](const std::string &assign) -> std::optional<stages::StageMemory> {
    showProgress("trying --stages " + assign);
    Request request{o.dims, o.plan};
    request.plan.set("stages", assign);
    std::optional<Footprint> footprint = planAgain(session, o, request);
    return footprint ? std::optional(memoryOf(*footprint)) : std::nullopt;
  };
  stages::CutSearch found = findCuts(o, *module, memoryOf(*needed), isAuto, planner);
  showProgress("");
  if (found.assign.empty()) {
    cuts = found.isSettled
               ? "; no other cuts into stages fit"
               : "; none of " + std::to_string(found.tried) + " other cuts that were compiled fits";
    return success();
  }
  if (!isAuto) {
    cuts = "; the nearest cuts that fit are --stages " + found.assign + ", with " +
           grouped(found.bytes) + " bytes";
    return success();
  }
  module = std::move(before);
  o.plan.set("stages", found.assign);
  module->getOperation()->setAttr(train::TrainDialect::kPlan,
                                  o.plan.toAttribute(module->getContext()));
  noteLimit(*module, *needed, *o.memoryLimit, found.tried);
  module->emitRemark() << "--stages auto is " << found.assign
                       << ", as the memory limit decides; partita explain says more";
  return runAll(*module, first, last, o.plan);
}

/// Checks --expect for each stage, whose ranks issue the same collectives.
static bool holdExpectations(const CompileOptions &o, ModuleOp module) {
  std::vector<analysis::Collective> collectives = analysis::collectivesOf(module);
  int64_t layers = 0;
  for (const analysis::Collective &collective : collectives)
    layers = std::max(layers, collective.layers);
  std::map<int64_t, std::vector<analysis::LayerRange>> ranges;
  for (ModuleOp stage : pipe::stagesOf(module))
    ranges[pipe::stageOf(stage).value_or(-1)] = analysis::layerRangesOf(stage, layers);
  return llvm::all_of(analysis::byStage(collectives), [&](const auto &ofStage) {
    return o.expectations.hold(ofStage, module->getLoc(),
                               ranges[ofStage.empty() ? -1 : ofStage.front().stage]);
  });
}

int partita::tool::compileProgram(Session &session, OwningOpRef<ModuleOp> module, CompileOptions &o,
                                  std::string *summary) {
  int first = nextPhase(*module);
  if (first < 0 || !settlePlan(session, *module, first, o.plan))
    return 1;
  if (!summary)
    session.tellGuesses(*module, o.plan);
  if (std::string problem = takeTarget(*module, first, o); !problem.empty())
    return session.fail(problem);
  takeLimit(*module, first, o.memoryLimit);
  int last = o.lastPhase.empty() ? int(phases().size()) - 1 : phaseIndex(o.lastPhase);
  if (last < first - 1)
    return session.fail("--compile-to: the module is already past phase '" + o.lastPhase + "'");
  if (o.expectations.any() && last < phaseIndex("overlap"))
    return session.fail("--expect: collectives are final after phase 'overlap', and --compile-to " +
                        o.lastPhase + " stops before it");
  std::string cuts;
  if (failed(compileWithin(session, o, module, first, last, cuts)))
    return 1;
  if (!holdExpectations(o, *module))
    return 1;
  if (o.memoryLimit)
    if (std::string problem = checkMemory(
            *module, {o.dims, o.plan}, *o.memoryLimit,
            [&](const Request &request) { return planAgain(session, o, request); }, cuts);
        !problem.empty())
      return session.fail("--memory-limit: " + problem);
  if (session.hasFailed())
    return 1;
  if (o.printPipeline) {
    llvm::errs() << "--pass-pipeline='builtin.module(";
    for (int index = first; index <= last; ++index)
      llvm::errs() << (index > first ? "," : "")
                   << pipelineText(phases()[index], o.plan,
                                   index > phaseIndex("cut") && isOfStages(*module));
    llvm::errs() << ")'\n";
  }
  return o.lastPhase.empty() ? emit(session, *module, o, summary)
                             : writeModule(session, *module, o.output);
}
