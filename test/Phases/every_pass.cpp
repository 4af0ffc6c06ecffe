//===- every_pass.cpp - every registered pass on every phase's output -------------------------===//
//
//     partita_every_pass IMPORTED.mlir... [--show]     --show: what works and what refuses, too
//     partita_every_pass --list                        the registered passes, less upstream's
//
// Each file is the output of `partita compile --compile-to import` under some plan. Runs the other
// phases one by one and tries on the output of each: every registered pass without options, and
// every pass as the pipelines call it under the file's plan. A pass may do its work, or end with
// errors that say what it requires. It must not crash, run forever, fail silently, or leave IR that
// does not verify or that the parser refuses.
//
// Each pass runs in its own process, forked after the module has been parsed into a fresh context:
// crashes are told apart from other failures, and a dialect that an earlier pass has loaded cannot
// hide that this one forgot to declare it.
//
//===------------------------------------------------------------------------------------------===//

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "partita/Phases/Phases.h"
#include "partita/Phases/RegisterAll.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace partita;

namespace {

constexpr unsigned kSeconds = 30; ///< a pass on a tiny model takes a few milliseconds

enum Outcome : int { Works, Refuses, Silent, BadMessage, BadResult, CannotParse, NoSuchPass };

/// One pass with its options, as a pipeline's text.
using Invocation = std::string;

/// Returns what `body` prints to standard output.
std::string captureOutput(llvm::function_ref<void()> body) {
  llvm::outs().flush();
  FILE *file = tmpfile();
  int before = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  body();
  llvm::outs().flush();
  dup2(before, STDOUT_FILENO);
  close(before);
  rewind(file);
  std::string text;
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof(buffer), file))
    text.append(buffer, count);
  fclose(file);
  return text;
}

/// Parses the registry's listing, since it has no iterator: each pass is on a line "    --name   -
/// summary".
std::vector<Invocation> registeredPasses() {
  std::string text = captureOutput(printRegisteredPasses);
  std::vector<Invocation> passes;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines) {
    StringRef name = line.trim().take_until([](char c) { return c == ' '; });
    if (name.consume_front("--") && PassInfo::lookup(name))
      passes.push_back(name.str());
  }
  return passes;
}

/// Collects the module passes of a pipeline with their options; passes nested on functions are
/// tried only as registered.
void collect(OpPassManager &manager, std::vector<Invocation> &into) {
  for (Pass &pass : manager) {
    std::string text;
    llvm::raw_string_ostream os(text);
    pass.printAsTextualPipeline(os);
    if (text.find("(") == std::string::npos) // an adaptor of nested passes
      into.push_back(text);
  }
}

std::pair<StringRef, StringRef> split(StringRef invocation) {
  auto [name, options] = invocation.split('{');
  options.consume_back("}");
  return {name, options};
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, OpPrintingFlags().enableDebugInfo());
  return text;
}

/// Runs in the child: the exit code is the outcome; diagnostics go to `said`.
int run(ModuleOp module, const Invocation &invocation, std::string &said) {
  int errors = 0, bad = 0;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return;
    std::string message = diagnostic.str();
    if (errors++ == 0)
      said = message;
    bad += message.empty() || StringRef(message).contains('\n');
  });
  auto [name, options] = split(invocation);
  PassManager manager(module.getContext(), ModuleOp::getOperationName(),
                      PassManager::Nesting::Implicit);
  manager.enableVerifier(false);
  auto report = [&](const Twine &message) {
    said = message.str();
    return failure();
  };
  const PassInfo *info = PassInfo::lookup(name);
  if (!info || failed(info->addToPipeline(manager, options, report)))
    return NoSuchPass;
  OperationFingerPrint before(module);
  if (failed(manager.run(module)))
    return errors == 0 ? Silent : bad ? BadMessage : Refuses;
  if (errors)
    return BadResult; // it has reported a failure, but succeeded
  if (OperationFingerPrint(module) == before)
    return Works; // nothing to do
  if (failed(verify(module)))
    return BadResult;
  return parseSourceString<ModuleOp>(textOf(module), module.getContext()) ? Works : CannotParse;
}

struct Counts {
  int works = 0, refuses = 0, findings = 0;
};

/// Runs one pass in a child; prints what is wrong.
void tryOne(ModuleOp module, StringRef where, const Invocation &invocation, bool show,
            Counts &counts) {
  FILE *output = tmpfile();
  pid_t child = fork();
  if (child == 0) {
    dup2(fileno(output), STDERR_FILENO);
    dup2(fileno(output), STDOUT_FILENO);
    alarm(kSeconds);
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
      std::signal(signal, SIG_DFL); // LLVM's handler would spend seconds on a stack trace
    std::string said;
    int outcome = run(module, invocation, said);
    lseek(STDERR_FILENO, 0, SEEK_SET);
    llvm::errs() << said;
    _exit(outcome);
  }
  int status = 0;
  waitpid(child, &status, 0);
  rewind(output);
  char buffer[600];
  size_t count = fread(buffer, 1, sizeof(buffer), output);
  fclose(output);
  StringRef said(buffer, count);
  static constexpr StringLiteral kWords[] = {"works",
                                             "refuses",
                                             "FAILS SILENTLY",
                                             "MESSAGE IS NOT ONE LINE",
                                             "RESULT DOES NOT VERIFY",
                                             "RESULT CANNOT BE PARSED",
                                             "IS NOT A PASS"};
  std::string word;
  if (WIFSIGNALED(status))
    word = WTERMSIG(status) == SIGALRM
               ? "TIMES OUT"
               : llvm::formatv("DIES OF SIGNAL {0}", WTERMSIG(status)).str();
  else if (WEXITSTATUS(status) < int(std::size(kWords)))
    word = kWords[WEXITSTATUS(status)].str();
  else
    word = llvm::formatv("EXITS WITH {0}", WEXITSTATUS(status));
  bool works = WIFEXITED(status) && WEXITSTATUS(status) == Works;
  bool refuses = WIFEXITED(status) && WEXITSTATUS(status) == Refuses;
  (works ? counts.works : refuses ? counts.refuses : counts.findings)++;
  if (show || !(works || refuses))
    llvm::outs() << where << ": " << invocation << ": " << word << (said.empty() ? "" : ": ")
                 << said << "\n";
  llvm::outs().flush();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  registerTransformsPasses();
  std::vector<Invocation> upstream = registeredPasses();
  DialectRegistry registry;
  registerEverything(registry);
  bool show = StringRef(argv[argc - 1]) == "--show";
  std::vector<Invocation> registered = registeredPasses();
  llvm::erase_if(registered,
                 [&](const Invocation &pass) { return llvm::is_contained(upstream, pass); });
  if (argc == 2 && StringRef(argv[1]) == "--list") {
    llvm::interleave(registered, llvm::outs(), "\n");
    llvm::outs() << "\n";
    return 0;
  }
  Counts counts;
  for (int i = 1; i < argc - show; ++i) {
    // Keep the phases' outputs as text: each is parsed into a context that knows only what it
    // needs.
    std::vector<std::string> outputs;
    std::vector<Invocation> invocations = registered;
    {
      MLIRContext context(registry, MLIRContext::Threading::DISABLED);
      auto module = parseSourceFile<ModuleOp>(argv[i], &context);
      if (!module)
        return 1;
      Plan plan;
      if (std::string problem = plan.fromAttribute((*module)->getAttr("train.plan"));
          !problem.empty()) {
        llvm::errs() << argv[i] << ": " << problem << "\n";
        return 1;
      }
      std::string before;
      for (int phase = 0; phase < int(phases().size()); ++phase) {
        if (phase > 0 && failed(runPhases(*module, phase, phase, plan)))
          return 1;
        // If a phase did nothing, its output has been tried already.
        Attribute name = (*module)->removeAttr(kPhaseAttr);
        std::string unnamed = textOf(*module);
        (*module)->setAttr(kPhaseAttr, name);
        outputs.push_back(unnamed == before ? "" : textOf(*module));
        before = std::move(unnamed);
        OpPassManager manager(ModuleOp::getOperationName());
        if (failed(parsePassPipeline(pipelineText(phases()[phase], plan), manager)))
          return 1;
        collect(manager, invocations);
      }
    }
    llvm::sort(invocations);
    invocations.erase(std::unique(invocations.begin(), invocations.end()), invocations.end());
    for (auto [phase, output] : llvm::zip(phases(), outputs)) {
      if (output.empty())
        continue;
      MLIRContext context(registry, MLIRContext::Threading::DISABLED);
      auto module = parseSourceString<ModuleOp>(output, &context);
      if (!module)
        return 1;
      std::string where =
          llvm::formatv("{0} after {1}", llvm::sys::path::filename(argv[i]), phase.name);
      for (const Invocation &invocation : invocations)
        tryOne(*module, where, invocation, show, counts);
    }
  }
  llvm::outs() << registered.size() << " passes registered; " << counts.works << " work, "
               << counts.refuses << " refuse, " << counts.findings << " findings\n";
  return counts.findings != 0;
}
