//===- partita.cpp - the command line ---------------------------------------------------------===//

#include "partita/Support/NearestNames.h"
#include "partita/Support/Version.h"
#include "tools/partita/Commands/Commands.h"
#include "tools/partita/Options.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include <csignal>
#include <new>
#include <unistd.h>

using namespace llvm;
using namespace partita;
using namespace partita::tool;

/// The commands, in the order of use.
static constexpr Command kCommands[] = {
    {"import", "turns an ONNX file into a module of tx", importMain},
    {"config", "checks a DeepSpeed configuration and prints the resolved settings", configMain},
    {"compile", "turns a model and a plan into a training program", compileMain},
    {"tune", "finds the fastest matmuls for a program's GPU", tuneMain},
    {"run", "trains with a compiled program", runMain},
    {"verify", "compares the partitioned program with the unpartitioned model", verifyMain},
    {"explain", "every collective and why; what the memory holds", explainMain},
    {"checkpoint", "lists, verifies, merges and compares checkpoints", checkpointMain},
    {"export", "writes trained weights back into the ONNX file", exportMain},
    {"report", "a summary of a program and of its run", reportMain},
};

static void printHelp(raw_ostream &os) {
  os << "usage: partita COMMAND [OPTIONS]\n\n"
        "Turns a Transformer in an ONNX file into a distributed training program.\n\nCommands:\n";
  for (const Command &command : kCommands)
    os << formatv("  {0,-12}{1}\n", command.name, command.summary);
  os << "\n'partita COMMAND --help' explains each; 'partita --version' says which Partita this is.\n"
        "Passes one by one: 'partita-opt --help', built by 'tools/setup partita-opt'.\n";
}

/// Reports that memory has run out with a single write, which is still possible then.
static void endWithoutMemory() {
  static constexpr char kText[] = "partita: error: out of memory; smaller --dim sizes need less\n";
  (void)!::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

/// Returns the exit code, once the output has been flushed.
static int finish(int code, StringRef command = "") {
  outs().flush();
  if (!outs().has_error())
    return code;
  std::string why = outs().error().message();
  outs().clear_error(); // left unchecked, it would end the process
  return fail(command, "cannot write to the standard output: " + why);
}

int main(int argc, char **argv) {
  // Signals that the caller has told partita to ignore (nohup) must stay ignored: LLVM would handle
  // them. Block them meanwhile.
  SmallVector<int> ignored;
  sigset_t waiting, before;
  sigemptyset(&waiting);
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_IGN)
      continue;
    ignored.push_back(signal);
    sigaddset(&waiting, signal);
  }
  sigprocmask(SIG_BLOCK, &waiting, &before);
  InitLLVM init(argc, argv);
  for (int signal : ignored)
    std::signal(signal, SIG_IGN); // discards those that have arrived
  sigprocmask(SIG_SETMASK, &before, nullptr);
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond `ulimit -f` fails its write instead
  std::set_new_handler(endWithoutMemory);
  SmallVector<StringRef> words(argv + 1, argv + argc);
  if (words.empty()) {
    printHelp(errs());
    return 1;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    printHelp(outs());
    return finish(0);
  }
  auto isNamed = [&](const Command &command) { return command.name == words[0]; };
  if (words[0] == "--version" ||
      (words.size() == 2 && words[1] == "--version" && any_of(kCommands, isNamed))) {
    outs() << versionText() << '\n';
    return finish(0);
  }
  SmallVector<StringRef> names;
  for (const Command &command : kCommands) {
    if (command.name == words[0])
      return finish(command.main(ArrayRef(words).drop_front()), command.name);
    names.push_back(command.name);
  }
  StringRef best = nearestName(words[0], names);
  std::string hint =
      best.empty() ? "'partita --help' lists all" : "did you mean '" + best.str() + "'?";
  return fail("", "unknown command '" + words[0] + "'; " + hint);
}
