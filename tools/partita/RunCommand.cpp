//===- RunCommand.cpp - partita run -----------------------------------------------------------===//
//
// The compiled program has the options, the loop and the messages; this command finds it and
// becomes it.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Program.h"
#include "llvm/Support/FileSystem.h"
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

int partita::tool::runMain(Arguments arguments) {
  std::string folder;
  std::vector<std::string> rest;
  OptionSet options("run", "DIR [-n RANKS] --data FILE --steps N [OPTIONS]",
                    "Trains with a compiled program: its ranks are threads of one process, or, "
                    "started under mpirun, processes.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.passOn(rest,
                 "All other options are the program's own: 'partita run DIR --help' lists them.");
  // The program's own --help is the better one as soon as there is a program.
  bool wantsHelp = is_contained(arguments, "--help") && arguments.size() > 1;
  if (wantsHelp) {
    folder = arguments[arguments[0] == "--help" ? 1 : 0].str();
    rest = {"--help"};
  } else if (std::optional<int> done = options.parse(arguments)) {
    return *done;
  }
  std::string problem, program = findProgram(folder, problem);
  if (program.empty())
    return fail("run", problem);
  std::vector<char *> argv{program.data()};
  for (std::string &word : rest)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return fail("run", program + ": cannot be started: " + std::string(std::strerror(errno)));
}
