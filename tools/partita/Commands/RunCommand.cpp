//===- RunCommand.cpp - partita run -----------------------------------------------------------===//
//
// The compiled program has the options, the training loop and the messages. This command finds it
// and execs it, or starts it once per rank.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Options.h"
#include "tools/partita/Ranks.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace partita::tool;

int partita::tool::runMain(Arguments arguments) {
  std::string folder;
  std::vector<std::string> rest;
  OptionSet options(
      "run", "DIR [-n RANKS] --data FILE --steps N [OPTIONS]",
      "Trains with a compiled program. Ranks on the CPU are threads of one process, or, "
      "started under mpirun, processes; on GPUs they are processes, started here for "
      "this host, or by torchrun, mpirun or srun for several.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.passOn(rest,
                 "All other options are the program's own: 'partita run DIR --help' lists them.");
  // If a program is given, print its own --help.
  bool wantsHelp = is_contained(arguments, "--help") && arguments.size() > 1;
  if (wantsHelp) {
    folder = arguments[arguments[0] == "--help" ? 1 : 0].str();
    rest = {"--help"};
  } else if (std::optional<int> done = options.parse(arguments)) {
    return *done;
  }
  return runProgram("run", folder, rest);
}
