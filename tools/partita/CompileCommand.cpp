//===- CompileCommand.cpp - partita compile ---------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "partita/Emit/Emit.h"
#include "partita/Pipelines/Pipelines.h"
#include "tools/partita/ConfigOptions.h"
#include "tools/partita/Expectations.h"
#include "tools/partita/MemoryLimit.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Program.h"
#include "tools/partita/Session.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

namespace {
struct CompileOptions {
  std::string model, output, lastPhase, target = "cpu";
  std::vector<std::string> dims;
  std::optional<uint64_t> memoryLimit;
  bool printPipeline = false, noBuild = false;
  Plan plan;
  ConfigOptions config;
  Expectations expectations;
};
} // namespace

static std::string phaseList() {
  std::string text = "Phases:\n";
  for (const Phase &phase : phases())
    text += "  " + phase.name.str() + "\n";
  return text;
}

static void declareOutput(OptionSet &options, CompileOptions &o) {
  options.group("Output");
  options.text("o", "DIR", o.output, "where the program goes; with --compile-to the module's file");
  options.custom("target", "cpu", "cpu", "what the program runs on", [](StringRef text) {
    return std::string(text == "cpu" ? "" : ("'" + text + "' is no target; there is: cpu").str());
  });
  options.custom(
      "memory-limit", "SIZE", "", "refuses a program that needs more bytes per rank: 512M, 1.5G",
      [&o](StringRef text) {
        o.memoryLimit = parseBytes(text);
        return std::string(o.memoryLimit.value_or(0) > 0
                               ? ""
                               : ("'" + text + "' is no size above 0, such as 512M").str());
      });
  o.expectations.declare(options);
  options.flag("no-build", o.noBuild, "writes the source and leaves 'make -C DIR' to you");
  options.custom(
      "compile-to", "PHASE", "", "stops after a phase and writes the module", [&o](StringRef text) {
        o.lastPhase = text.str();
        return std::string(phaseIndex(text) < 0 ? ("'" + text + "' is no phase").str() : "");
      });
  options.flag("print-pipeline", o.printPipeline,
               "prints the --pass-pipeline= that was run, for partita-opt");
}

static std::optional<int> parseOptions(Arguments arguments, CompileOptions &o) {
  OptionSet options(
      "compile", "MODEL.onnx|MODEL.mlir [OPTIONS] -o DIR",
      "Compiles a model and a plan into a training program: a folder of readable C++ "
      "that needs no MLIR, built, with a manifest of its collectives and its memory.");
  options.positional("MODEL", o.model, "an ONNX file, or the module that any phase wrote");
  options.group("Model");
  options.list("dim", "NAME=SIZE", o.dims,
               "binds a symbolic dimension; batch is the whole program's for one micro-step");
  o.config.declare(options);
  declarePlanOptions(options, o.plan);
  declareOutput(options, o);
  options.epilogue(phaseList());
  return options.parse(arguments);
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

/// The executable's name: the folder's, in the letters that a file and a C++ program may have.
static std::string programName(StringRef folder) {
  std::string name;
  for (char c : llvm::sys::path::filename(folder))
    name += llvm::isAlnum(c) || c == '_' || c == '-' ? c : '_';
  bool usable = !name.empty() && name != "_" && name[0] != '-' && name != "Makefile";
  return usable ? name : "program";
}

/// Where the runtime is: beside the tool, in the build folder, and in the source.
static std::string findRuntime(EmitOptions &options) {
  std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  SmallString<128> library(llvm::sys::path::parent_path(llvm::sys::path::parent_path(self)));
  llvm::sys::path::append(library, "lib");
  options.runtimeLibrary = library.str().str();
  options.runtimeInclude = PARTITA_RUNTIME_INCLUDE;
  SmallString<128> archive(library);
  llvm::sys::path::append(archive, "libpartita_rt_cpu.a");
  if (!llvm::sys::fs::exists(archive))
    return "the runtime " + archive.str().str() + " is not there; build the target partita_rt";
  return {};
}

static int emit(Session &session, ModuleOp module, const CompileOptions &o) {
  std::string folder = absolute(o.output);
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  EmitOptions options;
  options.program = programName(folder);
  options.build = !o.noBuild;
  auto model = module->getAttrOfType<StringAttr>("train.model");
  options.model = absolute(model ? model.getValue() : StringRef(o.model));
  options.modelFolder = llvm::sys::path::parent_path(options.model).str();
  if (std::string problem = findRuntime(options); !problem.empty())
    return session.fail(problem);
  showProgress(o.noBuild ? "emit" : "emit, g++");
  LogicalResult emitted = emitProgram(module, folder, options);
  showProgress("");
  if (failed(emitted))
    return session.hasFailed() ? 1 : session.fail("no program could be written to " + o.output);
  std::string problem;
  std::optional<llvm::json::Object> manifest = readManifest(folder, problem);
  if (!manifest)
    return session.fail(problem);
  llvm::outs() << "wrote " << o.output << ": " << describeProgram(*manifest) << "; "
               << describeMemory(*manifest) << '\n';
  return 0;
}

/// What the model needs of a rank under another request; errors are no news, and are not told.
static std::optional<Footprint> planAgain(Session &session, const CompileOptions &o,
                                          const Request &request) {
  ScopedDiagnosticHandler silent(&session.context(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = session.load(o.model, request.dims);
  int first = module ? nextPhase(*module) : -1;
  if (first < 0 || failed(runPhases(*module, first, phaseIndex("memory"), request.plan)))
    return {};
  return footprintOf(*module);
}

int partita::tool::compileMain(Arguments arguments) {
  CompileOptions o;
  if (std::optional<int> done = parseOptions(arguments, o))
    return *done;
  if (o.lastPhase.empty() && o.output.empty())
    return fail("compile", "-o DIR is missing: where should the program go?");
  if (!o.lastPhase.empty() && o.noBuild)
    return fail("compile", "--no-build: --compile-to writes a module, which is not built anyway");
  Session session("compile");
  for (const std::string &input : {o.model, o.config.file})
    if (std::string problem = checkNotInput(o.output, input); !problem.empty())
      return session.fail(problem);
  showProgress("import");
  OwningOpRef<ModuleOp> module = loadWithConfig(session, o.config, o.model, o.dims, o.plan);
  if (!module)
    return 1;
  if (std::string problem = checkNotModel(o.output, *module); !problem.empty())
    return session.fail(problem);
  int first = nextPhase(*module);
  if (first < 0 || !settlePlan(session, *module, first, o.plan))
    return 1;
  int last = o.lastPhase.empty() ? int(phases().size()) - 1 : phaseIndex(o.lastPhase);
  if (last < first - 1)
    return session.fail("--compile-to: the module is already past phase '" + o.lastPhase + "'");
  if (o.expectations.any() && last < phaseIndex("overlap"))
    return session.fail(
        "--expect: what is exchanged is settled in phase 'overlap', and --compile-to " +
        o.lastPhase + " stops before it");
  LogicalResult result =
      runPhases(*module, first, last, o.plan, [](const Phase &phase) { showProgress(phase.name); });
  showProgress("");
  if (failed(result) || !o.expectations.hold(analysis::collectivesOf(*module), module->getLoc()))
    return 1;
  if (o.memoryLimit)
    if (std::string problem =
            checkMemory(*module, {o.dims, o.plan}, *o.memoryLimit,
                        [&](const Request &request) { return planAgain(session, o, request); });
        !problem.empty())
      return session.fail("--memory-limit: " + problem);
  if (o.printPipeline) {
    llvm::errs() << "--pass-pipeline='builtin.module(";
    for (int index = first; index <= last; ++index)
      llvm::errs() << (index > first ? "," : "") << pipelineText(phases()[index], o.plan);
    llvm::errs() << ")'\n";
  }
  return o.lastPhase.empty() ? emit(session, *module, o) : writeModule(session, *module, o.output);
}
