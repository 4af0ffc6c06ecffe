//===- partita-opt.cpp - any pass, any pipeline, any phase's IR -------------------------------===//
//
// mlir-opt with our dialects and passes, but for two things: its passes carry provenance, as those of
// `partita compile` do, for which the pass manager has to be set up here, since upstream's main offers
// no place to do it; and an error is its line, without the whole op behind it.
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "partita/Phases/PassesHelp.h"
#include "partita/Phases/Provenance.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/PassStatistic.h"
#include "partita/Support/Version.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static llvm::cl::opt<bool> passStatistics(
    "pass-statistics",
    llvm::cl::desc("Print what each of Partita's passes changed, counted, to the standard error"));

/// The command line's configuration; carrying provenance comes after what it sets up, printing.
static MlirOptMainConfig configuration() {
  MlirOptMainConfig given = MlirOptMainConfig::createFromCLOptions(), config = given;
  config.setPassPipelineSetupFn([given](PassManager &manager) {
    partita::carryProvenance(manager);
    LogicalResult result = given.setupPassPipeline(manager);
    partita::simplifyLocationsLast(manager);
    return result;
  });
  return config;
}

/// Unless the command line asks for it, no error is followed by its op, which may be the whole module.
static void printNoOpsOnDiagnostics() {
  registerMLIRContextCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("mlir-print-op-on-diagnostic"); found != options.end())
    static_cast<llvm::cl::opt<bool> *>(found->second)->setInitialValue(false);
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
  std::string problem;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &problem);
  std::unique_ptr<llvm::ToolOutputFile> output =
      input ? openOutputFile(outputName, &problem) : nullptr;
  if (!output) {
    llvm::errs() << problem << "\n";
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
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "Partita's passes\n", registry);
  LogicalResult result = run(input, output, registry);
  if (passStatistics)
    partita::printPassStatistics(llvm::errs());
  return asMainReturnCode(result);
}
