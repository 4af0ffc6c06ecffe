//===- RunCommand.cpp - partita run -----------------------------------------------------------===//
//
// The compiled program has the options, the training loop and the messages. This command finds it
// and execs it, or starts it once per rank.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Options.h"
#include "tools/partita/Run/RunProgram.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"

using namespace llvm;
using namespace partita::tool;

int partita::tool::runMain(Arguments arguments) {
  std::string folder;
  std::vector<std::string> rest;
  std::string launcher;
  Supervision supervision;
  OptionSet options(
      "run", "DIR [-n RANKS] --data FILE --steps N [OPTIONS]",
      "Trains with a compiled program. Ranks on the CPU are threads of one process, or, "
      "started by mpirun, torchrun or srun, processes; on GPUs they are processes, started here for "
      "this host, or by torchrun, mpirun or srun for several.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.group("Faults");
  options.integer(
      "max-restarts", "N", supervision.maxRestarts, 0, 1'000'000,
      "if a process is killed, or fails after a step is done, ends the others and starts "
      "all again from the newest checkpoint in --checkpoint's folder, N times at most");
  options.text(
      "launcher", "COMMAND", launcher,
      "the command that starts the program's processes, such as 'mpirun -np {ranks}'; {ranks} is their number, {hosts} "
      "what --host-discovery names, as mpirun's --host takes it; {{ranks}} is the text {ranks}");
  options.text(
      "host-discovery", "COMMAND", supervision.hostDiscovery,
      "a command that prints the hosts there are, one per line, as NAME:SLOTS; it is run before each start, "
      "which waits until there are enough");
  options.passOn(rest,
                 "All other options are the program's own: 'partita run DIR --help' lists them.");
  // If a program is given, print its own --help; of several, that for as many ranks as -n says.
  bool wantsHelp = is_contained(arguments, "--help") && arguments.size() > 1;
  SmallVector<StringRef> others;
  copy_if(arguments, std::back_inserter(others), [](StringRef word) { return word != "--help"; });
  if (std::optional<int> done = options.parse(wantsHelp ? Arguments(others) : arguments))
    return *done;
  if (wantsHelp) {
    std::vector<std::string> words = {"--help"};
    if (auto ranks = llvm::find(rest, "-n"); rest.end() - ranks > 1)
      words.insert(words.end(), {"-n", ranks[1]});
    rest = words;
    supervision = {};
    launcher.clear();
  }
  BumpPtrAllocator allocator;
  StringSaver saver(allocator);
  SmallVector<const char *> words;
  cl::TokenizeGNUCommandLine(launcher, saver, words);
  supervision.launcher.assign(words.begin(), words.end());
  if (!launcher.empty() && words.empty())
    return fail("run", "--launcher: '" + launcher + "' names no command");
  return runProgram("run", folder, rest, supervision);
}
