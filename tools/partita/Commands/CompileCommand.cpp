//===- CompileCommand.cpp - partita compile ---------------------------------------------------===//

#include "dialects/Rt/Rt.h"
#include "partita/Emit/Emit.h"
#include "partita/Phases/Phases.h"
#include "partita/Support/NearestNames.h"
#include "partita/Support/ParseBytes.h"
#include "partita/Support/TemporaryFolder.h"
#include "tools/partita/CompileProgram.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Program.h"
#include "tools/partita/TargetOption.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

static std::string phaseList() {
  std::string text = "Phases:\n";
  for (const Phase &phase : phases())
    text += "  " + phase.name.str() + "\n";
  return text;
}

/// Returns an error unless some target has this architecture.
static std::string checkArchitecture(StringRef text) {
  std::vector<std::string> known;
  for (const rt::Target *target : rt::Target::all())
    for (StringRef each : target->getArchitectures())
      known.push_back(each.str());
  if (llvm::is_contained(known, text))
    return {};
  return ("'" + text + "' is not a supported architecture; known ones: " + llvm::join(known, ", "))
      .str();
}

static void declareOutput(OptionSet &options, CompileOptions &o) {
  options.group("Output");
  options.text("o", "DIR", o.output,
               "the program's folder; with --compile-to the file to write the module to");
  declareTarget(options, o.target);
  options.custom(
      "gpu-arch", "sm_NN", "sm_90",
      "with --target cuda: the GPU's architecture; sm_80: A100, sm_90: H100, sm_100: B200",
      [&o](StringRef text) {
        o.architecture = text.str();
        return checkArchitecture(text);
      });
  options.custom(
      "memory-limit", "SIZE", "",
      "refuses a program that needs more bytes per rank: 512M, 1.5G; with --stages auto, pipeline stages are cut so "
      "that they fit",
      [&o](StringRef text) {
        std::string problem;
        o.memoryLimit = parseBytes(text, &problem);
        return o.memoryLimit == 0 ? ("'" + text + "' is not above 0").str() : problem;
      });
  options.custom(
      "elastic", "AXIS=SIZES", "",
      "compiles for several sizes of a data-parallel axis, dp=2..8 or dp=2,4,8, into one folder; a "
      "training step of each takes the same samples, and 'partita run' goes on with fewer ranks if some "
      "are lost",
      [&o](StringRef text) { return o.elastic.parse(text); });
  o.expectations.declare(options);
  options.flag("no-build", o.noBuild, "writes the source and leaves 'make -C DIR' to you");
  options.flag("with-runtime", o.withRuntime,
               "with --target cuda: copies the runtime's sources into DIR, so that DIR builds on a "
               "machine without Partita");
  options.custom(
      "compile-to", "PHASE", "", "stops after a phase and writes the module", [&o](StringRef text) {
        o.lastPhase = text.str();
        if (phaseIndex(text) >= 0)
          return std::string();
        auto names =
            llvm::map_to_vector(phases(), [](const Phase &phase) { return StringRef(phase.name); });
        StringRef near = nearestName(text, names);
        return ("'" + text + "' is not a phase" +
                (near.empty() ? "" : "; did you mean '" + near.str() + "'?") + "; the phases are " +
                llvm::join(names, ", "))
            .str();
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
               "binds a symbolic dimension; batch is the global batch of one micro-step");
  o.config.declare(options);
  declarePlanOptions(options, o.plan);
  declareOutput(options, o);
  declareWarningsAsErrors(options, o.warningsAsErrors);
  options.epilogue(phaseList());
  return options.parse(arguments);
}

//===------------------------------------------------------------------------------------------===//
// Several sizes
//===------------------------------------------------------------------------------------------===//

/// Finds the batch of a plan whose model has been loaded; nothing after a message.
static std::optional<ElasticBatch> batchOf(Session &session, const CompileOptions &o,
                                           ModuleOp module) {
  std::optional<config::Facts> facts = findFacts(
      session, o.config, o.model, isMlirFile(o.model) ? module : ModuleOp(), o.dims, o.plan);
  if (!facts)
    return std::nullopt;
  const config::ModelFacts &model = *facts->model; // the path of one was given
  ElasticBatch batch;
  batch.microBatch = model.batch.value_or(0);
  if (StringRef(o.plan.get("accumulate")).getAsInteger(10, batch.accumulate))
    batch.accumulate = 1;
  for (const auto &[name, size] : facts->dims)
    if (llvm::is_contained(model.batchNames, name)) {
      batch.microBatch = size;
      batch.dimNames = model.batchNames;
    }
  return batch;
}

/// Returns the output's folder, absolute and without dots and slashes at its end.
static std::string targetOf(const CompileOptions &o) {
  SmallString<128> path(o.output);
  llvm::sys::fs::make_absolute(path);
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return path.str().rtrim('/').str();
}

/// Returns the name of the folder of one size: "gpt2-dp2".
static std::string nameOf(const CompileOptions &o, int64_t size) {
  return (llvm::sys::path::filename(targetOf(o)) + "-" + o.elastic.axis + std::to_string(size))
      .str();
}

/// Compiles one size into its folder in `folder`, and adds it to the list. Import's warnings have
/// been printed.
static int compileSize(Session &session, int64_t size, const ElasticBatch &batch,
                       const CompileOptions &all, Attribute runDefaults, ElasticFolder &list,
                       const TemporaryFolder &folder, std::string &summary) {
  CompileOptions o = all;
  Request request = requestFor(size, all.elastic, batch, {all.dims, all.plan});
  o.dims = request.dims;
  o.plan = request.plan;
  ElasticProgram program{size, 1, folder.in(nameOf(all, size))};
  o.output = program.folder;
  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler quiet(&session.context(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    module = session.load(o.model, o.dims, o.plan);
  }
  if (!module)
    return 1;
  if (runDefaults)
    module->getOperation()->setAttr(kRunDefaultsAttr, runDefaults);
  if (int code = compileProgram(session, std::move(module), o, &summary)) {
    llvm::errs() << "partita compile: note: this is the program for " << all.elastic.axis << "="
                 << size << ", with --mesh " << o.plan.get("mesh") << " --accumulate "
                 << o.plan.get("accumulate") << '\n';
    return code;
  }
  std::string problem;
  std::optional<llvm::json::Object> manifest = readManifest(program.folder, problem, {"ranks"});
  if (!manifest)
    return session.fail(problem);
  program.ranks = manifest->getInteger("ranks").value_or(1);
  list.programs.push_back(program);
  return 0;
}

/// What makes sums of the sizes of --elastic differ by more than the rounding of float32: each rank rounds its own
/// term. Returns a message, or "".
static std::string roundingOf(const CompileOptions &o) {
  std::string optimizer = o.plan.get("optimizer").str(), mnemonic = optimizer, what;
  llvm::replace(mnemonic, '-', '_');
  bool compresses = llvm::any_of(train::optimizers(), [&](const train::OptimizerRow &row) {
    return row.name == mnemonic && !row.summed.empty();
  });
  if (compresses)
    what = "with --optimizer " + optimizer + ", each rank compresses its own term of a sum";
  else if (o.plan.get("zero-quantized-gradients") == "true")
    what = "with --zero-quantized-gradients, each rank rounds its own term of a sum to 4 bits";
  return what.empty() ? what
                      : "--elastic: " + what +
                            ": another number of ranks computes other sums, and after a change "
                            "the losses are not within rounding of those before";
}

/// Compiles every size of --elastic, and writes them as one folder. `module` is that of the plan.
static int compileSizes(Session &session, OwningOpRef<ModuleOp> module, const CompileOptions &o) {
  if (o.plan.get("objective") == "none")
    return session.fail("--elastic: has no effect on a program for inference");
  std::optional<ElasticBatch> batch = batchOf(session, o, *module);
  if (!batch)
    return 1;
  if (std::string problem = checkElastic(o.elastic, *batch, o.plan); !problem.empty())
    return session.fail("--elastic " + problem);
  std::string target = targetOf(o);
  std::string problem =
      target.empty() ? "/: cannot be a folder of programs" : checkElasticTarget(target);
  TemporaryFolder folder(target);
  if (problem.empty())
    problem = folder.create();
  if (!problem.empty())
    return session.fail(problem);
  session.tellGuesses(*module, o.plan);
  if (std::string text = roundingOf(o); !text.empty())
    module->emitWarning() << text;
  Attribute runDefaults = module->getOperation()->getAttr(kRunDefaultsAttr);
  module = {};
  ElasticFolder list{o.elastic.axis, batch->samples(), {}};
  std::vector<std::string> summaries(o.elastic.sizes.size());
  for (auto [size, summary] : llvm::zip(o.elastic.sizes, summaries))
    if (int code = compileSize(session, size, *batch, o, runDefaults, list, folder, summary))
      return code;
  problem = folder.write("elastic.json", list.toJson());
  if (problem.empty())
    problem = folder.becomeTarget();
  if (!problem.empty())
    return session.fail(problem);
  for (auto [size, summary] : llvm::zip(o.elastic.sizes, summaries))
    llvm::outs() << "wrote " << printableLines(o.output) << "/" << nameOf(o, size) << ": "
                 << summary << '\n';
  return 0;
}

int partita::tool::compileMain(Arguments arguments) {
  CompileOptions o;
  if (std::optional<int> done = parseOptions(arguments, o))
    return *done;
  if (o.lastPhase.empty() && o.output.empty())
    return fail("compile", "-o DIR is missing: where should the program go?");
  if (!o.lastPhase.empty() && o.noBuild)
    return fail("compile", "--no-build: has no effect with --compile-to, which writes a module");
  if (!o.lastPhase.empty() && o.elastic.isSet())
    return fail("compile", "--elastic: has no effect with --compile-to, which writes one module");
  Session session("compile");
  if (o.warningsAsErrors)
    session.refuseWarnings();
  for (const std::string &input : {o.model, o.config.file})
    if (std::string problem = checkNotInput(o.output, input); !problem.empty())
      return session.fail(problem);
  showProgress("import");
  OwningOpRef<ModuleOp> module = loadWithConfig(session, o.config, o.model, o.dims, o.plan);
  if (!module)
    return 1;
  if (std::string problem = checkNotModel(o.output, *module); !problem.empty())
    return session.fail(problem);
  if (o.elastic.isSet())
    return compileSizes(session, std::move(module), o);
  return compileProgram(session, std::move(module), o);
}
