//===- RunProgram.cpp - runs a program: which, by whom, how often ---------------------------===//
//
// Chooses the program for the number of ranks, and starts it: in place of this process, or as
// processes that the supervisor waits for (Supervisor.h).
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/Run/RunProgram.h"
#include "runtime/include/partita_rt/launchers.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/Patience.h"
#include "tools/partita/Run/Placeholders.h"
#include "tools/partita/Run/ProgramStarts.h"
#include "tools/partita/Run/SupervisorClaim.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/WithColor.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// Seconds that the first rank has to report an error that all ranks have.
static constexpr int kReportSeconds = 5;

/// Whoever has launched this process: the program may ask MPI.
static partita_rt::Launched launch() { return partita_rt::whoLaunched(/*asksMpi=*/true); }

/// Returns how many ranks the launcher runs; nothing if there is none, or it does not say.
static std::optional<int64_t> launchersCount() {
  partita_rt::Launched launched = launch();
  return launched.launcher && launched.ranks > 0 ? std::optional<int64_t>(launched.ranks)
                                                 : std::nullopt;
}

/// Does this process print for all ranks that a launcher has started?
static bool isFirst() { return launch().rank == 0; }

/// Prints import's guesses about the weights that are trained here.
static void tellNotes(const json::Object &manifest, StringRef folder) {
  if (const json::Array *notes = manifest.getArray("notes"))
    for (const json::Value &note : *notes)
      if (std::optional<StringRef> text = note.getAsString()) {
        errs() << printableLines(folder) << ": ";
        WithColor(errs(), HighlightColor::Warning) << "warning: ";
        errs() << printableLines(*text) << '\n';
      }
  errs().flush();
}

/// Takes -n out of the words; returns its number, if it is one.
static std::optional<int64_t> takeRanks(std::vector<std::string> &words) {
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (int64_t ranks; words[i] == "-n" && !StringRef(words[i + 1]).getAsInteger(10, ranks)) {
      words.erase(words.begin() + i, words.begin() + i + 2);
      return ranks;
    }
  return std::nullopt;
}

/// Returns why a launcher's command cannot be started, as the shell would find it; or "".
static std::string problemOfCommand(const std::string &command) {
  if (!StringRef(command).contains('/')) {
    ErrorOr<std::string> found = sys::findProgramByName(command);
    return found ? "" : found.getError().message();
  }
  if (sys::fs::is_directory(command))
    return std::strerror(EISDIR);
  return access(command.c_str(), X_OK) == 0 ? "" : std::strerror(errno);
}

/// Checks a launcher by itself. Returns the problem, or "".
static std::string checkLauncher(ArrayRef<std::string> launcher) {
  if (launcher.empty())
    return {};
  for (StringRef word : launcher)
    if (std::string unknown = unknownPlaceholder(word); !unknown.empty())
      return "--launcher: {" + unknown +
             "} is unknown; {ranks} is the number of ranks, and {hosts} "
             "what --host-discovery has found; write {{" +
             unknown + "}} if the command itself has braces";
  std::string problem = problemOfCommand(launcher.front());
  return problem.empty() ? ""
                         : "--launcher: " + launcher.front() + " cannot be started: " + problem;
}

/// Checks what has no effect, or cannot work, without something else. Returns the problem, or "".
static std::string checkSupervision(const Supervision &supervision, const ProgramStarts &starts) {
  if (std::string problem = problemOfPatience(); !problem.empty())
    return problem;
  bool waits = supervision.waits(), launches = !supervision.launcher.empty();
  auto mentions = [&](StringRef name) {
    return llvm::any_of(supervision.launcher,
                        [&](StringRef word) { return hasPlaceholder(word, name); });
  };
  if (waits && launch().isRank())
    return "--max-restarts and --launcher: a launcher has started this process as one of several; "
           "start it by 'partita run ... --launcher COMMAND', or let the launcher restart it, with "
           "--resume auto";
  if (!supervision.hostDiscovery.empty() && !waits)
    return "--host-discovery: has no effect without --max-restarts or --launcher";
  if (mentions(kHostsPlaceholder) && supervision.hostDiscovery.empty())
    return "--launcher: {hosts} needs --host-discovery, which names them";
  if (std::string problem = checkLauncher(supervision.launcher); !problem.empty())
    return problem;
  if (starts.isElastic() && launches && !mentions(kRanksPlaceholder))
    return "--launcher: the folder has programs for " + starts.sizes() +
           "; write {ranks} for their number, such as --launcher 'mpirun -np {ranks}'";
  return {};
}

int partita::tool::runProgram(StringRef command, StringRef folder, ArrayRef<std::string> arguments,
                              const Supervision &supervision) {
  // LLVM takes it for a request for information; here it asks to end.
  if (signal(SIGUSR1, SIG_DFL) == SIG_IGN)
    signal(SIGUSR1, SIG_IGN);
  signal(SIGCHLD, SIG_DFL); // if it is ignored, nobody can wait for processes
  // A launcher ends all when one ends: that should be the one that says why.
  auto refuse = [&](const Twine &problem) {
    if (isFirst())
      return fail(command, problem);
    sleep(kReportSeconds);
    return 1;
  };
  ProgramStarts starts(command, supervision);
  if (std::string problem = starts.read(folder); !problem.empty())
    return refuse(problem);
  std::vector<std::string> words = arguments;
  bool onlyText = llvm::any_of(words, [](StringRef word) {
    return word == "--help" || word == "-h" || word == "--version";
  });
  if (starts.isElastic()) {
    std::optional<int64_t> asked = takeRanks(words), launched = launchersCount();
    if (asked && !supervision.hostDiscovery.empty())
      return refuse("-n: --host-discovery decides how many ranks there are");
    if (std::optional<int64_t> ranks = launched ? launched : asked)
      if (std::string problem = starts.choose(*ranks); !problem.empty())
        return refuse(folder + " " + problem);
  }
  if (!onlyText && isFirst())
    tellNotes(starts.manifest(), folder);
  if (onlyText && isFirst() && starts.isElastic())
    outs() << printableLines(folder) << " has programs for " << starts.sizes()
           << ": as many as a launcher has started, else -n, else the largest; this is that for "
           << starts.ranks() << "\n\n";
  outs().flush();
  if (std::string problem = checkSupervision(supervision, starts); !problem.empty())
    return refuse(problem);
  SupervisorClaim claim; // until this process ends
  if (!onlyText)
    if (std::string problem = claim.take(words, /*supervises=*/supervision.maxRestarts > 0);
        !problem.empty())
      return refuse(problem);
  if (supervision.waits() || (starts.startsRanks() && !launch().isRank() && !onlyText))
    return superviseRun(command, words, supervision.maxRestarts, starts);
  std::string program = starts.executable();
  std::vector<char *> argv{program.data()};
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return fail(command, program + ": cannot be started: " + std::string(std::strerror(errno)));
}
