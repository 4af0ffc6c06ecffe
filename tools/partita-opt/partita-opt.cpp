//===- partita-opt.cpp - any pass, any pipeline, any phase's IR -------------------------------===//
//
// mlir-opt with our dialects and passes, but for two things: its passes carry provenance, as those of
// `partita compile` do, for which the pass manager has to be set up here, since upstream's main offers
// no place to do it; and an error is its line, without the whole op after it. A plugin that cannot be
// loaded and an output that is the input are errors.
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "partita/Phases/PassesHelp.h"
#include "partita/Phases/Provenance.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/PassStatistic.h"
#include "partita/Support/Version.h"
#include "partita/Support/WriteFile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static llvm::cl::opt<bool> passStatistics(
    "pass-statistics",
    llvm::cl::desc("Print what each of Partita's passes changed, counted, to the standard error"));

/// Returns the command line's configuration. Provenance is set up before the command line's own
/// set-up, which includes printing.
static MlirOptMainConfig configuration() {
  MlirOptMainConfig given = MlirOptMainConfig::createFromCLOptions(), config = given;
  config.setPassPipelineSetupFn([given](PassManager &manager) {
    partita::carryProvenance(manager);
    partita::printPlainMessages(manager);
    LogicalResult result = given.setupPassPipeline(manager);
    partita::simplifyLocationsLast(manager);
    return result;
  });
  return config;
}

/// Keeps errors from being followed by their op, which may be the entire module, unless the command
/// line asks for it.
static void printNoOpsOnDiagnostics() {
  registerMLIRContextCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("mlir-print-op-on-diagnostic"); found != options.end())
    static_cast<llvm::cl::opt<bool> *>(found->second)->setInitialValue(false);
}

/// Has `option` load a plugin of this type; what goes wrong is added to `problem`. Upstream would go on without the plugin.
template <typename Plugin>
static void loadPlugins(StringRef option, std::string &problem,
                        std::function<void(const Plugin &)> use) {
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find(option); found != options.end())
    static_cast<llvm::cl::list<std::string> *>(found->second)
        ->setCallback([option, &problem, use](const std::string &path) {
          if (llvm::Expected<Plugin> plugin = Plugin::load(path))
            use(*plugin);
          else
            problem = ("--" + option + ": " + llvm::toString(plugin.takeError())).str();
        });
}

static LogicalResult run(StringRef inputName, StringRef outputName, DialectRegistry &registry) {
  MlirOptMainConfig config = configuration();
  if (config.shouldShowDialects()) {
    llvm::outs() << "Available Dialects: ";
    llvm::interleave(registry.getDialectNames(), llvm::outs(), ",");
    llvm::outs() << "\n";
    return success();
  }
  if (config.shouldListPasses()) {
    printRegisteredPasses();
    return success();
  }
  std::string problem = partita::checkNotInput(outputName, inputName, "-o");
  std::unique_ptr<llvm::MemoryBuffer> input =
      problem.empty() ? openInputFile(inputName, &problem) : nullptr;
  std::unique_ptr<llvm::ToolOutputFile> output =
      input ? openOutputFile(outputName, &problem) : nullptr;
  if (!output) {
    llvm::errs() << "partita-opt: error: " << problem << "\n";
    return failure();
  }
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return failure();
  output->keep();
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  partita::setVersionPrinter("partita-opt");
  DialectRegistry registry;
  partita::registerEverything(registry);
  printNoOpsOnDiagnostics();
  StringRef only = argc == 2 ? argv[1] : "";
  if (only == "--help" || only == "-help" || only == "-h")
    partita::printPassesHelp(); // upstream's passes and options follow
  std::string header = registerCLIOptions("Partita's passes\n", registry), problem;
  loadPlugins<PassPlugin>("load-pass-plugin", problem,
                          [](auto &plugin) { plugin.registerPassRegistryCallbacks(); });
  loadPlugins<DialectPlugin>("load-dialect-plugin", problem, [&](auto &plugin) {
    plugin.registerDialectRegistryCallbacks(registry);
  });
  auto [input, output] = parseCLIOptions(argc, argv, header);
  if (!problem.empty()) {
    llvm::errs() << "partita-opt: error: " << problem << "\n";
    return asMainReturnCode(failure());
  }
  LogicalResult result = run(input, output, registry);
  if (passStatistics)
    partita::printPassStatistics(llvm::errs());
  return asMainReturnCode(result);
}
