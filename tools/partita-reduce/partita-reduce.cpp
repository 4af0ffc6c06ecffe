//===- partita-reduce.cpp - the smallest module that a script finds interesting ---------------===//
//
//     partita-reduce failing.mlir --reduce-program=test=./still_fails -o small.mlir
//
// The script gets a file's name; it exits with 1 if the module in it still fails, with 0 if it does
// not. mlir-reduce with our dialects and passes, except for its output: mlir-reduce opens the
// output before the reduction, which may take hours, and leaves it empty if it is stopped.
//
//===------------------------------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Reducer/Passes.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/ParseUtilities.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/Version.h"
#include "partita/Support/WriteFile.h"
#include "tools/partita-reduce/ReduceProgram.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::OptionCategory ours("Reduction");

static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"),
                                  cl::cat(ours));
static cl::opt<std::string> output("o", cl::desc("where the reduced module goes"),
                                   cl::value_desc("file"), cl::init("-"), cl::cat(ours));
static cl::opt<bool> noImplicitModule("no-implicit-module",
                                      cl::desc("the file's op is not part of a module"),
                                      cl::cat(ours));
static cl::opt<bool> allowUnregistered("allow-unregistered-dialect",
                                       cl::desc("ops of unknown dialects are parsed, too"),
                                       cl::cat(ours));

static constexpr char overview[] =
    "The smallest module that a script finds interesting.\n\n"
    "    partita-reduce failing.mlir --reduce-program=test=./still_fails -o small.mlir\n\n"
    "--reduce-program takes ops out of the module as long as the script, which gets a file's name, exits\n"
    "with 1: where the module in it still fails. With 0 it does not. --help-hidden lists all passes,\n"
    "upstream's reductions among them, and LLVM's options.\n";

/// Hides options from --help that --help-hidden still has, unlike cl::HideUnrelatedOptions, which
/// would hide passes too.
static void hideOthers() {
  for (auto &entry : cl::getRegisteredOptions()) {
    cl::Option *option = entry.second;
    bool isShown = llvm::any_of(option->Categories, [](const cl::OptionCategory *each) {
      return each == &ours || each->getName() == "Generic Options"; // --help, --version
    });
    if (!isShown && option->getOptionHiddenFlag() == cl::NotHidden)
      option->setHiddenFlag(cl::Hidden);
  }
}

static int fail(const llvm::Twine &message) {
  llvm::errs() << "partita-reduce: " << message << "\n";
  return 1;
}

static OwningOpRef<Operation *> load(MLIRContext &context, std::string &problem) {
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &problem);
  if (!file)
    return {};
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return parseSourceFileForTool(sources, &context, !noImplicitModule);
}

/// Checks, before the reduction, that the output can be written.
static std::string checkOutput() {
  llvm::StringRef folder = llvm::sys::path::parent_path(output);
  if (output == "-")
    return {};
  if (std::error_code error =
          llvm::sys::fs::access(folder.empty() ? "." : folder, llvm::sys::fs::AccessMode::Write))
    return output + ": " + error.message();
  return llvm::sys::fs::is_directory(output) ? output + ": is a folder" : std::string();
}

static std::string write(Operation *op) {
  auto print = [&](llvm::raw_ostream &os) {
    op->print(os);
    os << "\n";
    return std::string();
  };
  return output == "-" ? print(llvm::outs()) : partita::writeFile(output, print);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  partita::setVersionPrinter("partita-reduce");
  DialectRegistry registry;
  partita::registerEverything(registry);
  partita::registerReduceProgramPass();
  registerReducerPasses();
  PassPipelineCLParser passes("", "Reduction passes to run");
  hideOthers();
  cl::ParseCommandLineOptions(argc, argv, overview);
  if (std::string problem = checkOutput(); !problem.empty())
    return fail(problem);
  MLIRContext context(registry);
  context.allowUnregisteredDialects(allowUnregistered);
  context.printOpOnDiagnostic(false);
  std::string problem;
  OwningOpRef<Operation *> op = load(context, problem);
  if (!op)
    return problem.empty() ? 1 : fail(problem);
  PassManager manager(&context, op.get()->getName().getStringRef());
  auto report = [&](const llvm::Twine &text) {
    return emitError(UnknownLoc::get(&context)) << text;
  };
  if (failed(passes.addToPipeline(manager, report)) || failed(manager.run(*op)))
    return 1;
  problem = write(*op);
  return problem.empty() ? 0 : fail(problem);
}
