//===- ChildProcesses.cpp - starts a program's processes, and ends them together ------------===//
//
// The ranks find each other (runtime/processes/rendezvous.h), report each other, and end together if
// one fails. What they cannot do themselves is done here: signals reach all of them, one that has been
// stopped is killed, none outlives the others or its launcher, and what they leave (exit statuses,
// marks) becomes the facts of a verdict.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/Run/ChildProcesses.h"
#include "runtime/include/partita_rt/exit_status.h"
#include "runtime/include/partita_rt/launchers.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Orphans.h"
#include "tools/partita/Run/ProgramWords.h"
#include "tools/partita/Run/RanksBelow.h"
#include "tools/partita/Run/StartMarks.h"
#include "tools/partita/Run/StoppedRanks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// Seconds that ranks have to end by themselves after one has failed: their reports take a moment.
/// Then they get SIGTERM, and kAsked seconds later SIGKILL.
static constexpr int kGrace = 5, kAsked = 3;
/// Microseconds between two looks at which processes have ended, and how many of them make one look
/// at what the others do.
static constexpr int kPoll = 20'000, kPollsPerLook = 25;
/// The same before a launcher's first rank is seen.
static constexpr int kPollsPerFirstLook = 2;

/// Does a status say that a command cannot be started, or which signal has ended it?
static bool explains(int status) {
  return status == 126 || status == 127 || partita_rt::signalIn(status);
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

/// Reads the mark of a step's result, "7 loss-nan", and its text on the next line.
static FailedStep failedStepIn(StringRef mark) {
  auto [first, text] = mark.split('\n');
  auto [number, kind] = first.split(' ');
  FailedStep failed{0, kind.str(), text.str()};
  if (number.getAsInteger(10, failed.step))
    failed.step = 0; // there is no mark, or it could not be written
  return failed;
}

namespace {

class ChildProcesses {
  using Clock = std::chrono::steady_clock;

public:
  explicit ChildProcesses(StringRef command) : command(command) {}

  /// Starts `count` ranks of the program with torchrun's variables, and waits for them.
  Outcome runRanks(const std::string &program, const std::vector<char *> &argv, int count) {
    int port = freePort();
    if (port < 0)
      return refuse("no port of this host is free for the ranks to meet");
    setVariable(partita_rt::kPartitaRun.ranks, count);
    setVariable(partita_rt::kPartitaRun.localRanks, count);
    setVariable(partita_rt::kMasterPort, port);
    setenv(partita_rt::kMasterAddress, "127.0.0.1", 1);
    setenv(partita_rt::kPartitaRunId,
           (std::to_string(getpid()) + "-" + std::to_string(time(nullptr))).c_str(), 1);
    noteEndingSignals();
    stopped.emplace(timeoutOf(argv), /*alone=*/false);
    for (int rank = 0; rank < count; ++rank)
      if (!start(program, argv, rank)) {
        std::string why = std::strerror(errno);
        endAll();
        return refuse("rank " + std::to_string(rank) + " cannot be started: " + why);
      }
    wait();
    readMarks();
    return outcome;
  }

  /// Starts one process, a program all of whose ranks are its threads or a launcher of it, and
  /// waits for it.
  Outcome runOne(const std::string &program, const std::vector<char *> &argv) {
    noteEndingSignals();
    bool isLauncher = argv[0] != program;
    // Ranks whose launcher ends before them become children of this process.
    prctl(PR_SET_CHILD_SUBREAPER, isLauncher);
    if (!start(argv[0], argv, std::nullopt))
      return refuse(std::string(argv[0]) + ": cannot be started: " + std::strerror(errno));
    if (isLauncher)
      launched.emplace(processes.front(), program);
    // A launcher may have a --timeout of its own.
    auto arguments = ArrayRef(argv).drop_while([&](const char *word) { return program != word; });
    stopped.emplace(timeoutOf(arguments), !isLauncher);
    wait();
    if (isLauncher)
      endOrphans(*launched, *stopped, marks, passed);
    readMarks();
    // A launcher that was told to end, such as mpirun, may hide that its ranks have, with a checkpoint.
    if (int number; isLauncher && !outcome.signal &&
                    !StringRef(marks.textOf(partita_rt::kEndedMark)).getAsInteger(10, number))
      outcome.signal = number;
    bool isFailure = outcome.status != 0 && !explains(outcome.status);
    outcome.isLauncher = isLauncher;
    outcome.isUnexplained = isLauncher && isFailure && !haveRefused(outcome.said);
    if (isLauncher && !explains(outcome.status) && !launched->haveBeen() && !outcome.hasTrained &&
        outcome.said == RanksSaid::Nothing)
      outcome.said = RanksSaid::NeverRan;
    return outcome;
  }

private:
  /// What this process has sent to ranks that do not end by themselves.
  enum class Force { None, Term, Kill };

  Outcome refuse(const std::string &why) const {
    Outcome refused;
    refused.status = fail(command, why);
    return refused;
  }

  static void setVariable(const char *name, int value) {
    setenv(name, std::to_string(value).c_str(), 1);
  }

  bool start(const std::string &program, const std::vector<char *> &argv, std::optional<int> rank) {
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
    for (int number : partita_rt::kEndingSignals)
      if (signal(number, SIG_DFL) == SIG_IGN)
        signal(number, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) // the parent is already gone
      _exit(1);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (rank) {
      setVariable(partita_rt::kPartitaRun.rank, *rank);
      setVariable(partita_rt::kPartitaRun.localRank, *rank);
    }
    if (int none = rank.value_or(0) > 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1; none >= 0)
      dup2(none, STDIN_FILENO); // rank 0 has the terminal
    execvp(program.c_str(), argv.data());
    dprintf(STDERR_FILENO, "partita %s: error: %s: cannot be started: %s\n", command.str().c_str(),
            program.c_str(), std::strerror(errno));
    _exit(127);
  }

  void wait() {
    bool failed = false;
    std::optional<Clock::time_point> ending; // since when ranks should end
    while (alive() > 0) {
      int status = 0;
      if (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0) {
        failed |= !note(ended, status);
        continue;
      }
      passSignalsOn();
      if (++polls % kPollsPerLook == 0)
        failed |= lookAtRanks(failed);
      else if (launched && !launched->haveBeen() && polls % kPollsPerFirstLook == 0)
        launched->find(); // ranks that end at once have run too
      if ((failed || passed > 1) && !ending)
        ending = Clock::now();
      double seconds = ending ? std::chrono::duration<double>(Clock::now() - *ending).count() : 0;
      if (force == Force::None && seconds > kGrace)
        forceEnd(Force::Term);
      else if (force == Force::Term && seconds > kGrace + kAsked)
        forceEnd(Force::Kill);
      usleep(kPoll);
    }
    if (interruptingSignal() && failed)
      endedBy = interruptingSignal();
    if (interruptingSignal() || (endedBy && !outcome.isReported)) // as a single process would end
      outcome.signal = endedBy;
    outcome.interrupted = interruptingSignal() != 0;
    if (outcome.status == 0 && failed) // killed, or stopped
      outcome.status = partita_rt::kFailedWhileTraining;
  }

  /// What ranks have left, once all have ended.
  void readMarks() {
    outcome.hasTrained = marks.has(partita_rt::kTrainedMark);
    outcome.said = marks.has(partita_rt::kTakenMark)     ? RanksSaid::FolderTaken
                   : marks.has(partita_rt::kUnsavedMark) ? RanksSaid::Unsaved
                   : marks.has(partita_rt::kRefusedMark) ? RanksSaid::Refused
                                                         : RanksSaid::Nothing;
    outcome.hasLost = marks.has(partita_rt::kLostMark) && !haveRefused(outcome.said);
    outcome.lostRank = StringRef(marks.textOf(partita_rt::kLostMark)).split('\n').first.str();
    outcome.error =
        marks.textOf(haveRefused(outcome.said) ? partita_rt::kRefusedMark : partita_rt::kErrorMark);
    outcome.failedStep = failedStepIn(marks.textOf(partita_rt::kFailedStepMark));
    if (ino_t inode; !StringRef(marks.textOf(partita_rt::kSavedMark)).getAsInteger(10, inode))
      outcome.savedIn = inode;
  }

  /// Passes signals on to the ranks, which know how to handle them: after the first one they may
  /// finish a step and write a checkpoint, without a time limit. After a second one they must end.
  void passSignalsOn() {
    if (passed == arrivedSignals())
      return;
    passed = arrivedSignals();
    // It is no signal to end by for every launcher: it kills torchrun, which leaves its ranks
    // behind.
    if (std::vector<pid_t> ranks;
        launched && interruptingSignal() == SIGUSR1 && !(ranks = launched->find()).empty()) {
      for (pid_t rank : ranks)
        kill(rank, SIGUSR1);
      return;
    }
    signalAll(interruptingSignal());
  }

  /// Ends what cannot end by itself: a rank that is stopped, a launcher without ranks. Returns true
  /// if the run has failed.
  bool lookAtRanks(bool failed) {
    std::vector<pid_t> ranks;
    if (launched)
      ranks = launched->find();
    else
      llvm::copy_if(processes, std::back_inserter(ranks), [](pid_t each) { return each > 0; });
    if (launched && !failed && launched->haveLeft()) {
      giveReason("its ranks on this host have ended, and the launcher has not");
      forceEnd(Force::Kill); // what it waits for does not answer
      return true;
    }
    if (std::optional<pid_t> rank = stopped->look(ranks, kPollsPerLook * kPoll * 1e-6)) {
      giveReason((launched ? std::string("a rank of this host")
                           : nameOf(llvm::find(processes, *rank) - processes.begin())) +
                 " (process " + std::to_string(*rank) + ") has been stopped for " +
                 formatv("{0:f1}", stopped->secondsOf(*rank)).str() + " s");
      kill(*rank, SIGKILL);
      return true;
    }
    if (failed && stopped->areAll())
      for (pid_t rank : ranks)
        kill(rank, SIGKILL);
    return false;
  }

  /// Notes why the run has failed, unless an earlier reason is known.
  void giveReason(std::string why) {
    outcome.hasCause = true;
    if (outcome.why.empty())
      outcome.why = std::move(why);
  }

  /// Records a process's end; did the rank complete its work?
  bool note(pid_t process, int status) {
    auto place = std::find(processes.begin(), processes.end(), process);
    if (place == processes.end())
      return true;
    size_t rank = place - processes.begin();
    *place = 0;
    bool killed = WIFSIGNALED(status) && force == Force::None;
    if (killed)
      giveReason(nameOf(rank) + " was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                 strsignal(WTERMSIG(status)) + ")");
    if (killed)
      outcome.killedBy = WTERMSIG(status);
    if (killed && is_contained(partita_rt::kEndingSignals, WTERMSIG(status)))
      endedBy = WTERMSIG(status);
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    outcome.isReported |= !launched && WIFEXITED(status) && !done;
    if (WIFEXITED(status))
      outcome.status = std::max(outcome.status, WEXITSTATUS(status));
    return done;
  }

  /// What messages call a process.
  std::string nameOf(size_t rank) const {
    return processes.size() > 1 ? "rank " + std::to_string(rank)
           : launched           ? "the launcher"
                                : "the program";
  }
  int alive() const { return int(processes.size() - llvm::count(processes, 0)); }
  void signalAll(int signal) const {
    for (pid_t process : processes)
      if (process > 0)
        kill(process, signal);
  }
  void forceEnd(Force how) {
    force = how;
    signalAll(how == Force::Kill ? SIGKILL : SIGTERM);
  }
  void endAll() {
    signalAll(SIGKILL);
    for (pid_t process : processes)
      if (process > 0)
        waitpid(process, nullptr, 0);
  }

  StringRef command;
  StartMarks marks;
  std::vector<pid_t> processes; ///< by rank; 0: has ended
  std::optional<RanksBelow> launched;
  std::optional<StoppedRanks> stopped;
  Outcome outcome;
  int polls = 0;
  int passed = 0; ///< signals to this process that were passed on
  Force force = Force::None;
  int endedBy = 0; ///< one of partita_rt::kEndingSignals that has ended a rank
};

} // namespace

/// The words as execvp takes them.
static std::vector<char *> pointersTo(std::vector<std::string> &words) {
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

Outcome partita::tool::runRanks(StringRef command, const std::string &program,
                                std::vector<std::string> words, int ranks) {
  return ChildProcesses(command).runRanks(program, pointersTo(words), ranks);
}

Outcome partita::tool::runProcess(StringRef command, const std::string &program,
                                  std::vector<std::string> words) {
  return ChildProcesses(command).runOne(program, pointersTo(words));
}
