//===- Ranks.cpp - runs a program: which, by whom, how often ----------------------------------===//
//
// Chooses the program for the number of ranks, and starts it: in place of this process, or as
// processes that the supervisor waits for (Supervisor.h).
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/Ranks.h"
#include "runtime/include/partita_rt/launchers.h"
#include "tools/partita/Elastic.h"
#include "tools/partita/HostDiscovery.h"
#include "tools/partita/Program.h"
#include "tools/partita/Supervisor.h"
#include "llvm/Support/WithColor.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// Seconds for which a start waits until there are hosts for the smallest program.
static constexpr int kHostsPatience = 600;
/// Seconds that the first rank has to report an error that all ranks have.
static constexpr int kReportSeconds = 5;

/// Whoever has launched this process: the program may ask MPI.
static partita_rt::Launched launch() { return partita_rt::whoLaunched(/*asksMpi=*/true); }

/// Returns how many ranks the launcher runs; nothing if there is none, or it does not say.
static std::optional<int64_t> launchedRanks() {
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

namespace {

std::string countText(int64_t ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

/// The starts of one program, or of those that --elastic made of one model.
class ProgramStarts : public Starts {
public:
  ProgramStarts(StringRef command, const Supervision &supervision)
      : command(command), supervision(supervision) {}

  /// Reads the folder. Returns the problem, or "".
  std::string read(StringRef folder);
  /// Takes the program of this many ranks, which are started already or were asked for.
  std::string choose(int64_t ranks);
  void chooseLargest() { size = programs.size() - 1; }

  const std::string &executable() const { return programs[size].executable; }
  /// The chosen program's manifest.
  const json::Object &manifest() const { return programs[size].manifest; }

  std::string prepare(bool fewer) override;
  bool hasFewer() const override { return size > 0 && supervision.hostDiscovery.empty(); }
  std::string change() const override {
    return before == size ? ""
                          : "with " + countText(programs[size].ranks) + " instead of " +
                                std::to_string(programs[before].ranks);
  }
  Outcome run(std::vector<std::string> arguments) override;
  /// Is each rank a process that this one starts?
  bool startsRanks() const {
    return supervision.launcher.empty() && programs[size].ranks > 1 &&
           targetOf(manifest()).ranksAreProcesses();
  }
  std::string several; ///< "2, 4 or 8 ranks"; empty unless --elastic made the folder

private:
  struct Program {
    std::string executable;
    json::Object manifest;
    int64_t ranks;
  };
  std::string add(StringRef folder);
  std::string waitForHosts();
  std::vector<std::string> launcherWords() const;

  StringRef command;
  const Supervision &supervision;
  std::vector<Program> programs; ///< fewest ranks first
  size_t size = 0, before = 0;   ///< of the next start, and of the one before
  bool wasStarted = false;
  Hosts hosts;
};

} // namespace

std::string ProgramStarts::add(StringRef folder) {
  std::string problem, executable = findProgram(folder, problem);
  if (executable.empty())
    return problem;
  std::optional<json::Object> manifest = readManifest(folder, problem);
  if (!manifest)
    return problem;
  int64_t ranks = manifest->getInteger("ranks").value_or(1);
  programs.push_back({executable, std::move(*manifest), ranks});
  return {};
}

std::string ProgramStarts::read(StringRef folder) {
  if (!isElastic(folder))
    return add(folder);
  std::string problem;
  std::optional<ElasticFolder> elastic = readElastic(folder, problem);
  if (!elastic)
    return problem;
  for (const ElasticProgram &program : elastic->programs)
    if (problem = add(program.folder); !problem.empty())
      return problem;
  several = elastic->ranksText();
  chooseLargest();
  return {};
}

std::string ProgramStarts::choose(int64_t ranks) {
  for (auto [i, program] : llvm::enumerate(programs))
    if (program.ranks == ranks) {
      size = i;
      return {};
    }
  return "has programs for " + several + ", not for " + std::to_string(ranks);
}

/// Waits until the hosts have room for the smallest program, for at most kHostsPatience seconds, and
/// takes the largest one that they have room for. At a restart, a command that fails may succeed
/// later.
std::string ProgramStarts::waitForHosts() {
  auto begin = std::chrono::steady_clock::now();
  for (bool isFirst = true;; isFirst = false) {
    std::string problem;
    std::optional<Hosts> found = discoverHosts(supervision.hostDiscovery, problem);
    if (!found && !wasStarted)
      return problem;
    hosts = found.value_or(Hosts());
    int64_t slots = hosts.slots(), least = programs.front().ranks;
    if (found && slots >= least) {
      size = 0;
      while (size + 1 < programs.size() && programs[size + 1].ranks <= slots)
        ++size;
      return {};
    }
    if (found)
      problem = "--host-discovery found " + std::to_string(slots) +
                (slots == 1 ? " slot" : " slots") + "; " +
                (programs.size() > 1 ? "the smallest program" : "the program") + " needs " +
                std::to_string(least);
    if (wasInterrupted() ||
        std::chrono::steady_clock::now() - begin > std::chrono::seconds(kHostsPatience))
      return problem;
    if (isFirst) {
      errs() << "partita " << command << ": waits for hosts: " << printableLines(problem) << '\n';
      errs().flush();
    }
    sleep(1);
  }
}

std::string ProgramStarts::prepare(bool fewer) {
  before = size;
  std::string problem;
  if (fewer)
    --size;
  else if (!supervision.hostDiscovery.empty())
    problem = waitForHosts();
  if (!wasStarted)
    before = size;
  wasStarted = true;
  return problem;
}

/// The launcher's words, with {ranks} and {hosts} replaced.
std::vector<std::string> ProgramStarts::launcherWords() const {
  std::vector<std::string> words = supervision.launcher;
  std::string ranks = std::to_string(programs[size].ranks), all = hosts.text();
  for (std::string &word : words)
    for (auto [name, value] : {std::pair(StringRef("{ranks}"), &ranks), {"{hosts}", &all}})
      for (size_t at = word.find(name); at != std::string::npos;
           at = word.find(name, at + value->size()))
        word.replace(at, name.size(), *value);
  return words;
}

Outcome ProgramStarts::run(std::vector<std::string> arguments) {
  std::vector<std::string> words = launcherWords();
  words.push_back(executable());
  llvm::append_range(words, arguments);
  return startsRanks() ? runRanks(command, executable(), std::move(words),
                                  static_cast<int>(programs[size].ranks))
                       : runProcess(command, executable(), std::move(words));
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

/// Checks what has no effect, or cannot work, without something else. Returns the problem, or "".
static std::string checkSupervision(const Supervision &supervision, const ProgramStarts &starts) {
  bool waits = supervision.waits(), launches = !supervision.launcher.empty();
  auto mentions = [&](StringRef name) {
    return llvm::any_of(supervision.launcher, [&](StringRef word) { return word.contains(name); });
  };
  if (waits && launch().isRank())
    return "--max-restarts and --launcher: a launcher has started this process as one of several; "
           "start it by 'partita run ... --launcher COMMAND', or let the launcher restart it, with "
           "--resume auto";
  if (!supervision.hostDiscovery.empty() && !waits)
    return "--host-discovery: has no effect without --max-restarts or --launcher";
  if (mentions("{hosts}") && supervision.hostDiscovery.empty())
    return "--launcher: {hosts} needs --host-discovery, which names them";
  if (!starts.several.empty() && launches && !mentions("{ranks}"))
    return "--launcher: the folder has programs for " + starts.several +
           "; write {ranks} for their number, such as --launcher 'mpirun -np {ranks}'";
  return {};
}

int partita::tool::runProgram(StringRef command, StringRef folder, ArrayRef<std::string> arguments,
                              const Supervision &supervision) {
  // LLVM takes it for a request for information; here it asks to end.
  if (signal(SIGUSR1, SIG_DFL) == SIG_IGN)
    signal(SIGUSR1, SIG_IGN);
  ProgramStarts starts(command, supervision);
  if (std::string problem = starts.read(folder); !problem.empty())
    return fail(command, problem);
  std::vector<std::string> words = arguments;
  bool onlyText = llvm::any_of(words, [](StringRef word) {
    return word == "--help" || word == "-h" || word == "--version";
  });
  if (!starts.several.empty()) {
    std::optional<int64_t> asked = takeRanks(words), launched = launchedRanks();
    if (std::optional<int64_t> ranks = launched ? launched : asked)
      if (std::string problem = starts.choose(*ranks); !problem.empty()) {
        if (isFirst())
          return fail(command, folder + " " + problem);
        sleep(
            kReportSeconds); // a launcher ends all when one ends: that should be the one that says why
        return 1;
      }
  }
  if (!onlyText && isFirst())
    tellNotes(starts.manifest(), folder);
  if (std::string problem = checkSupervision(supervision, starts); !problem.empty())
    return fail(command, problem);
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
