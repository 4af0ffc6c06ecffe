//===- partita-interp.cpp - executes functions on virtual ranks; a tool of the tests ----------===//
//
//     partita-interp FILE [--entry f]             random arguments; f's or every function's results
//     partita-interp FILE --entry f [--blocking-sends] [--whole W]   of a module of stages: f of each at
//                                                 the same time, and of W, the program before the cut
//     partita-interp FILE --equal f,g             both on the same arguments: they must agree
//     partita-interp FILE --check-gradients       every function against numeric derivatives
//     partita-interp FILE --check-updates --entry f   f's parameters' gradients, likewise
//     partita-interp FILE --check-rules           every function's op, split by its rule
//     partita-interp FILE --random-placements N   a model in N random ways against the whole
//
//===------------------------------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "partita/Interp/Stages.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/Version.h"
#include "tools/partita-interp/Modes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using namespace partita::interp;
using From = InitialValues::From;

/// The others are LLVM's.
static cl::OptionCategory ours("Execution");

static cl::opt<std::string> file(cl::Positional, cl::desc("FILE.mlir"), cl::init("-"),
                                 cl::cat(ours));
static cl::opt<std::string> entry("entry", cl::desc("calls this function"), cl::cat(ours));
static cl::opt<std::string> pairOfFunctions("equal", cl::desc("calls these two functions, a,b"),
                                            cl::cat(ours));
static cl::opt<bool> gradients("check-gradients", cl::desc("checks the gradient of every function"),
                               cl::cat(ours));
static cl::opt<bool> updates("check-updates",
                             cl::desc("checks the gradients that --entry gives parameters"),
                             cl::cat(ours));
static cl::opt<int64_t> samples("samples", cl::desc("elements of each parameter to check"),
                                cl::init(64), cl::cat(ours));
static cl::opt<bool> rules("check-rules", cl::desc("checks the rule of every function's op"),
                           cl::cat(ours));
static cl::list<std::string> rule("rule", cl::desc("OP=RULE: instead of the op's own"),
                                  cl::cat(ours));
static cl::opt<std::string>
    everyOp("every-op-of", cl::desc("a dialect all of whose ops need a function"), cl::cat(ours));
static cl::opt<bool> twoAxes("two-axes", cl::desc("with --check-rules: also on two axes"),
                             cl::cat(ours));
static cl::opt<bool> missing("list-missing",
                             cl::desc("with --check-rules: what rules forbid without need"),
                             cl::cat(ours));
static cl::opt<unsigned> placements(
    "random-placements",
    cl::desc("partitions the model, as phase 'objective' wrote it, in so many random ways"),
    cl::cat(ours));
static cl::opt<uint64_t> seed("seed", cl::desc("of arguments and parameters"), cl::init(1),
                              cl::cat(ours));
static cl::opt<unsigned> times("times", cl::desc("calls, one after the other"), cl::init(1),
                               cl::cat(ours));
static cl::opt<std::string>
    inputs("inputs", cl::desc("arguments of all calls, number after number"), cl::cat(ours));
static cl::opt<std::string> logFile("log", cl::desc("CSV of every call's first result"),
                                    cl::cat(ours));
static cl::opt<std::string> gradientsFile("gradients",
                                          cl::desc("safetensors of the first call's gradients"),
                                          cl::cat(ours));
static cl::opt<std::string> parametersFile("parameters",
                                           cl::desc("safetensors of the parameters at the end"),
                                           cl::cat(ours));
static cl::opt<std::string>
    resultsFile("results", cl::desc("safetensors of the last call's results, by their names"),
                cl::cat(ours));
static cl::opt<double> tolerance("tolerance", cl::desc("largest relative error"), cl::init(1e-12),
                                 cl::cat(ours));
static cl::opt<double> rate("lr", cl::desc("learning rate"), cl::init(1e-3), cl::cat(ours));
static cl::opt<bool> roundCasts("round-casts", cl::desc("casts really round"), cl::cat(ours));
static cl::opt<bool> blockingSends("blocking-sends",
                                   cl::desc("of stages: a send ends when its value is received"),
                                   cl::cat(ours));
static cl::opt<std::string>
    fullFile("full", cl::desc("of stages: the program of all stages, which must do the same"),
             cl::cat(ours));
static cl::opt<From>
    init("init", cl::desc("parameters' values"), cl::init(From::Seed),
         cl::values(clEnumValN(From::File, "file", "from the model's file"),
                    clEnumValN(From::Seed, "seed", "as the runtime's --init seed:N"),
                    clEnumValN(From::Perturbed, "perturbed", "all random")),
         cl::cat(ours));

int main(int argc, char **argv) {
  InitLLVM initLLVM(argc, argv);
  partita::setVersionPrinter("partita-interp");
  cl::HideUnrelatedOptions(ours);
  cl::ParseCommandLineOptions(argc, argv, "executes functions on virtual ranks\n");
  mlir::DialectRegistry registry;
  partita::registerEverything(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(file, sources, &context);
  if (!module)
    return 1;
  if (times == 0) {
    errs() << "partita-interp: error: --times is 0, expected at least 1\n";
    return 1;
  }
  std::string folder = sys::path::parent_path(file).str();
  Run run{entry,
          {init, seed, folder.empty() ? "." : folder},
          {roundCasts, rate, 1, {}},
          seed,
          times,
          inputs,
          logFile,
          gradientsFile,
          parametersFile,
          resultsFile,
          tolerance,
          samples,
          blockingSends};
  if (gradients)
    return failed(checkGradients(*module, run));
  if (updates)
    return failed(checkUpdates(*module, run));
  if (rules)
    return failed(
        checkRules(*module, run, std::vector<std::string>(rule), everyOp, twoAxes, missing));
  if (placements)
    return failed(tryPlacements(*module, run, placements));
  bool hasStages = StageInterpreter::isProgram(*module);
  bool writes =
      !logFile.empty() || !gradientsFile.empty() || !parametersFile.empty() || !resultsFile.empty();
  if (hasStages ? writes || !inputs.empty() || !pairOfFunctions.empty()
                : blockingSends || !fullFile.empty()) {
    errs()
        << "partita-interp: error: "
        << (hasStages
                ? "a program of stages takes none of --inputs, --log, --gradients, --parameters, "
                  "--results, --equal\n"
                : "--blocking-sends and --full need a program of stages\n");
    return 1;
  }
  if (hasStages) {
    mlir::OwningOpRef<mlir::ModuleOp> full;
    if (!fullFile.empty() && !(full = mlir::parseSourceFile<mlir::ModuleOp>(fullFile, &context)))
      return 1;
    return failed(runStages(*module, full ? *full : mlir::ModuleOp(), run));
  }
  if (pairOfFunctions.empty())
    return failed(runFunction(*module, run));
  run.function = pairOfFunctions;
  return failed(compareFunctions(*module, run));
}
