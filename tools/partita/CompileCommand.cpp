//===- CompileCommand.cpp - partita compile
//-------------------------------------------------------===//

#include "partita/Pipelines/Pipelines.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Session.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

namespace {
struct CompileOptions {
  std::string model, output, lastPhase;
  std::vector<std::string> dims;
  bool printPipeline = false;
  Plan plan;
};
} // namespace

static std::string phaseList() {
  std::string text = "Phases:\n";
  for (const Phase &phase : phases())
    text += "  " + phase.name.str() + "\n";
  return text;
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
  declarePlanOptions(options, o.plan);
  options.group("Output");
  options.text("o", "DIR", o.output, "where the program goes; with --compile-to the module's file");
  options.custom(
      "compile-to", "PHASE", "", "stops after a phase and writes the module", [&o](StringRef text) {
        o.lastPhase = text.str();
        return std::string(phaseIndex(text) < 0 ? ("'" + text + "' is no phase").str() : "");
      });
  options.flag("print-pipeline", o.printPipeline,
               "prints the --pass-pipeline= that was run, for partita-opt");
  options.epilogue(phaseList());
  return options.parse(arguments);
}

/// One line per phase on a terminal; nothing in a pipe.
static void showPhase(const Phase &phase) {
  if (llvm::sys::Process::StandardErrIsDisplayed())
    llvm::errs() << "\r\033[K" << phase.name << " ...";
}

static void endProgress() {
  if (llvm::sys::Process::StandardErrIsDisplayed())
    llvm::errs() << "\r\033[K";
}

int partita::tool::compileMain(Arguments arguments) {
  CompileOptions o;
  if (std::optional<int> done = parseOptions(arguments, o))
    return *done;
  if (o.lastPhase.empty() && o.output.empty())
    return fail("compile", "-o DIR is missing: where should the program go?");
  Session session("compile");
  OwningOpRef<ModuleOp> module = session.load(o.model, o.dims);
  if (!module)
    return 1;
  int first = nextPhase(*module);
  if (first < 0 || !settlePlan(session, *module, first, o.plan))
    return 1;
  int last = o.lastPhase.empty() ? int(phases().size()) - 1 : phaseIndex(o.lastPhase);
  if (last < first - 1)
    return session.fail("--compile-to: the module is already past phase '" + o.lastPhase + "'");
  LogicalResult result = runPhases(*module, first, last, o.plan, showPhase);
  endProgress();
  if (failed(result))
    return 1;
  if (o.printPipeline) {
    llvm::errs() << "--pass-pipeline='builtin.module(";
    for (int index = first; index <= last; ++index)
      llvm::errs() << (index > first ? "," : "") << pipelineText(phases()[index], o.plan);
    llvm::errs() << ")'\n";
  }
  std::string problem = writeAtomically(o.output.empty() ? "-" : o.output, [&](raw_ostream &os) {
    module->print(os, OpPrintingFlags().enableDebugInfo());
    os << '\n';
  });
  return problem.empty() ? 0 : session.fail(problem);
}
