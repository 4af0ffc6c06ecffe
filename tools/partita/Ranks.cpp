//===- Ranks.cpp - starts ranks, and ends them together ---------------------------------------===//
//
// The ranks find each other (runtime/processes/rendezvous.h) and end together if one fails. This
// file only makes sure that none outlives the others, whatever happens.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Ranks.h"
#include "runtime/include/partita_rt/launchers.h"
#include "tools/partita/Elastic.h"
#include "tools/partita/HostDiscovery.h"
#include "tools/partita/Program.h"
#include "tools/partita/Supervisor.h"
#include "llvm/Support/WithColor.h"
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// Seconds that ranks have to end by themselves after one has failed: their reports take a moment.
/// Then they get SIGTERM, and kAsked seconds later SIGKILL.
static constexpr int kGrace = 5, kAsked = 3;

/// Seconds for which a start waits until there are hosts for the smallest program.
static constexpr int kHostsPatience = 600;

static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t interrupted = 0; ///< the last signal to this process
static volatile sig_atomic_t arrived = 0;     ///< number of signals so far
static void noteSignal(int signal) {
  interrupted = signal;
  arrived = arrived + 1;
}

/// Starts noting signals. Signals that are ignored (nohup) stay ignored, also in the ranks.
static void noteSignals() {
  for (int signal : kSignals) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN)
      continue;
    action = {};
    action.sa_handler = noteSignal;
    sigaction(signal, &action, nullptr);
  }
}

/// Returns a free port of this host, or -1. If another process takes it before rank 0 does, rank 0
/// takes another one, which all ranks derive from the run's name.
static int freePort() {
  int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  int port = -1;
  if (bind(handle, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0 &&
      getsockname(handle, reinterpret_cast<sockaddr *>(&address), &size) == 0)
    port = ntohs(address.sin_port);
  close(handle);
  return port;
}

namespace {

class Ranks {
  using Clock = std::chrono::steady_clock;

public:
  explicit Ranks(StringRef command) : command(command) {}

  /// Starts `count` ranks of the program with torchrun's variables, and waits for them.
  Outcome runRanks(const std::string &program, std::vector<char *> &argv, int count) {
    int port = freePort();
    if (port < 0)
      return refuse("no port of this host is free for the ranks to meet");
    setVariable("WORLD_SIZE", count);
    setVariable("LOCAL_WORLD_SIZE", count);
    setVariable("MASTER_PORT", port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("PARTITA_RUN_ID",
           (std::to_string(getpid()) + "-" + std::to_string(time(nullptr))).c_str(), 1);
    noteSignals();
    for (int rank = 0; rank < count; ++rank)
      if (!start(program, argv, rank)) {
        std::string why = std::strerror(errno);
        endAll();
        return refuse("rank " + std::to_string(rank) + " cannot be started: " + why);
      }
    return wait();
  }

  /// Starts one process, a program all of whose ranks are its threads or a launcher, and waits for
  /// it.
  Outcome runOne(const std::string &program, std::vector<char *> &argv) {
    noteSignals();
    if (!start(program, argv, std::nullopt))
      return refuse(program + ": cannot be started: " + std::strerror(errno));
    return wait();
  }

private:
  Outcome refuse(const std::string &why) const {
    Outcome refused;
    refused.status = fail(command, why);
    return refused;
  }

  static void setVariable(const char *name, int value) {
    setenv(name, std::to_string(value).c_str(), 1);
  }

  bool start(const std::string &program, std::vector<char *> &argv, std::optional<int> rank) {
    sigset_t all, before; // keep a signal to a child that has not become the program yet
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid(), child = fork();
    if (child != 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      if (child > 0)
        processes.push_back(child);
      return child > 0;
    }
    for (int number : kSignals)
      if (signal(number, SIG_DFL) == SIG_IGN)
        signal(number, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) // the parent is already gone
      _exit(1);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (rank) {
      setVariable("RANK", *rank);
      setVariable("LOCAL_RANK", *rank);
    }
    if (int none = rank.value_or(0) > 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1; none >= 0)
      dup2(none, STDIN_FILENO); // rank 0 has the terminal
    execvp(program.c_str(), argv.data());
    dprintf(STDERR_FILENO, "partita: error: %s: cannot be started: %s\n", program.c_str(),
            std::strerror(errno));
    _exit(127);
  }

  Outcome wait() {
    bool failed = false;
    std::optional<Clock::time_point> ending; // since when ranks should end
    while (alive() > 0) {
      int status = 0;
      if (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0) {
        failed |= !note(ended, status);
        continue;
      }
      passSignalsOn();
      if ((failed || passed > 1) && !ending)
        ending = Clock::now();
      double seconds = ending ? std::chrono::duration<double>(Clock::now() - *ending).count() : 0;
      if (signals == 0 && seconds > kGrace)
        signalAll(SIGTERM), ++signals;
      else if (signals == 1 && seconds > kGrace + kAsked)
        signalAll(SIGKILL), ++signals;
      usleep(20'000);
    }
    if (interrupted && failed)
      endedBy = interrupted;
    if (interrupted || (endedBy && !outcome.isReported)) // as a single process would end
      outcome.signal = endedBy;
    outcome.interrupted = interrupted != 0;
    if (outcome.status == 0)
      outcome.status = failed;
    return outcome;
  }

  /// Passes signals on to the ranks, which know how to handle them: after the first one they may
  /// finish a step and write a checkpoint, without a time limit. After a second one they must end.
  void passSignalsOn() {
    if (passed == arrived)
      return;
    passed = arrived;
    signalAll(interrupted);
  }

  /// Records a process's end; did the rank complete its work?
  bool note(pid_t process, int status) {
    auto place = std::find(processes.begin(), processes.end(), process);
    if (place == processes.end())
      return true;
    size_t rank = place - processes.begin();
    *place = 0;
    bool killed = WIFSIGNALED(status) && signals == 0;
    if (killed && outcome.why.empty())
      outcome.why =
          (processes.size() > 1 ? "rank " + std::to_string(rank) : std::string("the program")) +
          " was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
          strsignal(WTERMSIG(status)) + ")";
    if (killed && is_contained(kSignals, WTERMSIG(status)))
      endedBy = WTERMSIG(status);
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    outcome.isReported |= WIFEXITED(status) && !done;
    if (WIFEXITED(status))
      outcome.status = std::max(outcome.status, WEXITSTATUS(status));
    return done;
  }

  int alive() const { return int(processes.size() - llvm::count(processes, 0)); }
  void signalAll(int signal) const {
    for (pid_t process : processes)
      if (process > 0)
        kill(process, signal);
  }
  void endAll() {
    signalAll(SIGKILL);
    for (pid_t process : processes)
      if (process > 0)
        waitpid(process, nullptr, 0);
  }

  StringRef command;
  std::vector<pid_t> processes; ///< by rank; 0: has ended
  Outcome outcome;
  int passed = 0;  ///< signals to this process that were passed on
  int signals = 0; ///< signals sent to end the ranks
  int endedBy = 0; ///< one of kSignals that has ended a rank
};

} // namespace

/// Returns this process's rank, if a launcher has started it as one of several.
static std::optional<StringRef> launchedRank() {
  using namespace partita_rt;
  for (const Launcher *launcher : {&kTorchrun, &kOpenMpi})
    if (const char *rank = getenv(launcher->rank); rank && getenv(launcher->ranks))
      return StringRef(rank); // other systems set RANK alone
  if (isOnlyProcess())
    return std::nullopt;
  for (const Launcher *launcher : {&kPmi, &kPmix, &kSlurm})
    if (const char *rank = getenv(launcher->rank);
        rank && (launcher != &kSlurm || getenv(launcher->ranks)))
      return StringRef(rank);
  return std::nullopt;
}

static bool isLaunched() { return launchedRank().has_value(); }

/// Returns how many processes the launcher has started; nothing if none has, or it does not say.
static std::optional<int64_t> launchedRanks() {
  using namespace partita_rt;
  int64_t ranks;
  if (isLaunched())
    for (const Launcher *launcher : {&kTorchrun, &kOpenMpi, &kPmi, &kSlurm})
      if (const char *text = getenv(launcher->ranks);
          text && !StringRef(text).getAsInteger(10, ranks))
        return ranks;
  return std::nullopt;
}

/// Does this process print for all ranks that a launcher has started?
static bool isFirst() { return launchedRank().value_or("0") == "0"; }

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
  const std::string &folder() const { return programs[size].folder; }

  std::string prepare(bool fewer) override;
  bool hasFewer() const override { return size > 0; }
  std::string change() const override {
    return before == size ? ""
                          : "with " + std::to_string(programs[size].ranks) + " ranks instead of " +
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
    std::string folder, executable;
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
  programs.push_back({folder.str(), executable, std::move(*manifest), ranks});
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
/// takes the largest one that they have room for.
std::string ProgramStarts::waitForHosts() {
  for (int seconds = 0;; ++seconds) {
    std::string problem;
    std::optional<Hosts> found = discoverHosts(supervision.hostDiscovery, problem);
    if (!found)
      return problem;
    hosts = std::move(*found);
    int64_t slots = hosts.slots();
    if (slots >= programs.front().ranks) {
      size = 0;
      while (size + 1 < programs.size() && programs[size + 1].ranks <= slots)
        ++size;
      return {};
    }
    std::string needs = std::to_string(slots) + (slots == 1 ? " slot, " : " slots, ") +
                        std::to_string(programs.front().ranks) + " ranks need more";
    if (interrupted || seconds == kHostsPatience)
      return "--host-discovery found hosts with " + needs;
    if (seconds == 0) {
      errs() << "partita " << command << ": waits for hosts: there are " << needs << '\n';
      errs().flush();
    }
    sleep(1);
  }
}

std::string ProgramStarts::prepare(bool fewer) {
  before = size;
  std::string problem;
  if (!supervision.hostDiscovery.empty())
    problem = waitForHosts();
  else if (fewer)
    --size;
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
  std::vector<std::string> all = launcherWords();
  all.push_back(executable());
  llvm::append_range(all, arguments);
  std::vector<char *> argv;
  for (std::string &word : all)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  return startsRanks()
             ? Ranks(command).runRanks(executable(), argv, static_cast<int>(programs[size].ranks))
             : Ranks(command).runOne(all[0], argv);
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
  if (waits && isLaunched())
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
        sleep(kGrace); // a launcher ends all when one ends: that should be the one that says why
        return 1;
      }
  }
  if (!onlyText && isFirst())
    tellNotes(starts.manifest(), folder);
  if (std::string problem = checkSupervision(supervision, starts); !problem.empty())
    return fail(command, problem);
  if (supervision.waits() || (starts.startsRanks() && !isLaunched() && !onlyText))
    return superviseRun(command, words, supervision.maxRestarts, starts);
  std::string program = starts.executable();
  std::vector<char *> argv{program.data()};
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return fail(command, program + ": cannot be started: " + std::string(std::strerror(errno)));
}
