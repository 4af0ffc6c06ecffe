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
#include "runtime/include/partita_rt/machine.h"
#include "runtime/include/partita_rt/own_clock.h"
#include "runtime/include/partita_rt/signal_masks.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/ForcedEnd.h"
#include "tools/partita/Run/Orphans.h"
#include "tools/partita/Run/ProgramWords.h"
#include "tools/partita/Run/RanksBelow.h"
#include "tools/partita/Run/StartMarks.h"
#include "tools/partita/Run/StoppedRanks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using namespace llvm;
using namespace partita::tool;

/// Seconds that ranks have to end by themselves after one has failed: their reports take a moment.
/// Then they get SIGTERM, and kAsked seconds later SIGKILL.
static constexpr int kGrace = 5, kAsked = 3;
/// Microseconds between polls for processes that have ended; every kPollsPerLook-th one also looks for stopped ranks.
static constexpr int kPoll = 20'000, kPollsPerLook = 25;
/// So often is a launcher looked at that goes on after its ranks, which a signal has ended, before it gets the signal too.
static constexpr int kLooksAtLauncher = 4;
/// Polls between two looks before a launcher's first rank is seen.
static constexpr int kPollsPerFirstLook = 2;

/// Does a status say that a command cannot be started, or which signal has ended it? Without a rank on this host, mpirun's own errors look like the rarer
/// signals: it ends with 132, 134 or 135 where a command or a folder does not exist.
static bool explains(int status, bool hadRanks) {
  int signal = partita_rt::signalIn(status);
  bool isLikely =
      hadRanks || signal == SIGKILL || signal == SIGSEGV || partita_rt::isEndingSignal(signal);
  return status == 126 || status == 127 || (signal && isLikely);
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

/// How the ranks of one start find each other: torchrun's variables, of the ranks alone, since the next start may have none.
struct RankVariables {
  int ranks, port;
  std::string run; ///< its name

  void set(int rank) const {
    auto set = [](const char *name, int value) { setenv(name, std::to_string(value).c_str(), 1); };
    set(partita_rt::kPartitaRun.ranks, ranks);
    set(partita_rt::kPartitaRun.localRanks, ranks);
    set(partita_rt::kPartitaRun.rank, rank);
    set(partita_rt::kPartitaRun.localRank, rank);
    set(partita_rt::kMasterPort, port);
    setenv(partita_rt::kMasterAddress, "127.0.0.1", 1);
    setenv(partita_rt::kPartitaRunId, run.c_str(), 1);
  }
};

class ChildProcesses {
public:
  explicit ChildProcesses(StringRef command) : command(command) {
    if (!marks.problem().empty())
      errs() << "partita " << command << ": warning: " << printableLines(marks.problem())
             << "; without this folder, what a launcher hides of its ranks is not known\n";
  }

  /// Starts `count` ranks of the program with torchrun's variables, and waits for them.
  Outcome runRanks(const std::string &program, const std::vector<char *> &argv, int count) {
    int port = freePort();
    if (port < 0)
      return refuse("no port of this host is free for the ranks to meet");
    RankVariables variables{count, port,
                            std::to_string(getpid()) + "-" + std::to_string(time(nullptr))};
    noteEndingSignals();
    stopped.emplace(timeoutOf(argv));
    for (int rank = 0; rank < count; ++rank)
      if (!start(program, argv, rank, &variables)) {
        std::string why = std::strerror(errno);
        for (pid_t process : running())
          killAndWait(process);
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
    if (!start(argv[0], argv))
      return refuse(std::string(argv[0]) + ": cannot be started: " + std::strerror(errno));
    if (isLauncher)
      launched.emplace(processes.front(), program);
    // A launcher may have a --timeout of its own.
    auto arguments = ArrayRef(argv).drop_while([&](const char *word) { return program != word; });
    stopped.emplace(timeoutOf(arguments));
    if (isLauncher)
      stoppedLauncher.emplace(timeoutOf(arguments)).setAlone();
    wait();
    if (isLauncher) {
      // A launcher that was killed, or has left its ranks behind, asks nobody to end, though the ranks have got SIGTERM.
      bool wasKilled = outcome.killedBy && !partita_rt::isEndingSignal(outcome.killedBy);
      bool isDone = marks.has(partita_rt::kDoneMark) && outcome.status == 0 && !wasKilled;
      haveLostLauncher = endOrphans(*launched, *stopped, marks, passed, isDone) || wasKilled;
      if (!outcome.interrupted)
        noteInterruption(outcome.status != 0); // a signal may have come meanwhile
    }
    readMarks();
    bool hadRanks = !isLauncher || launched->haveBeen() || outcome.hasTrained ||
                    outcome.said != RanksSaid::Nothing;
    bool isExplained = explains(outcome.status, hadRanks);
    outcome.isLauncher = isLauncher;
    outcome.isUnexplained =
        isLauncher && outcome.status != 0 && !isExplained && !saidWhyNotRun(outcome.said);
    if (!hadRanks && !isExplained)
      outcome.said = RanksSaid::NeverRan;
    return outcome;
  }

private:
  Outcome refuse(const std::string &why) const {
    Outcome refused;
    refused.status = fail(command, why);
    return refused;
  }

  /// Starts a process; with `variables`, as this one of its ranks.
  bool start(const std::string &program, const std::vector<char *> &argv, int rank = 0,
             const RankVariables *variables = nullptr) {
    // Keeps a signal to a child that has not become the program yet.
    partita_rt::SignalsBlocked blocked;
    pid_t parent = getpid(), child = fork();
    if (child != 0) {
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
    blocked.letIn();
    if (variables)
      variables->set(rank);
    if (int none = rank > 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1; none >= 0)
      dup2(none, STDIN_FILENO); // rank 0 has the terminal
    execvp(program.c_str(), argv.data());
    dprintf(STDERR_FILENO, "partita %s: error: %s: cannot be started: %s\n", command.str().c_str(),
            program.c_str(), std::strerror(errno));
    _exit(127);
  }

  void wait() {
    bool failed = false;
    std::optional<double> ending; // since when ranks should end
    while (!running().empty()) {
      int status = 0;
      if (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0) {
        failed |= !note(ended, status);
        continue;
      }
      double now = clock.advance();
      passSignalsOn();
      if (++polls % kPollsPerLook == 0)
        failed |= lookAtRanks(failed, now);
      else if (launched && !launched->haveBeen() && polls % kPollsPerFirstLook == 0)
        launched->find(); // ranks that end at once have run too
      if ((failed || passed > 1) && !ending)
        ending = now;
      if (ending && now - *ending > kGrace)
        force.send(running(), now);
      usleep(kPoll);
    }
    noteInterruption(failed);
    if (outcome.status == 0 && failed) // killed, or stopped
      outcome.status = partita_rt::kFailedWhileTraining;
  }

  void noteInterruption(bool failed) {
    if (interruptingSignal() && failed)
      endedBy = interruptingSignal();
    if (interruptingSignal() ||
        (endedBy && !outcome.rankPrintedError)) // as a single process would end
      outcome.signal = endedBy;
    outcome.interrupted = interruptingSignal() != 0;
  }

  /// What ranks have left, once all have ended.
  void readMarks() {
    outcome.hasTrained = marks.has(partita_rt::kTrainedMark);
    outcome.hasDone = marks.has(partita_rt::kDoneMark);
    outcome.hasError = marks.has(partita_rt::kErrorMark);
    outcome.hasEnded = marks.has(partita_rt::kEndedMark);
    outcome.hasAsked = marks.hasAny(partita_rt::kAskedMark);
    outcome.said = marks.has(partita_rt::kTakenMark)     ? RanksSaid::FolderTaken
                   : marks.has(partita_rt::kUnsavedMark) ? RanksSaid::Unsaved
                   : marks.has(partita_rt::kRefusedMark) ? RanksSaid::Refused
                                                         : RanksSaid::Nothing;
    outcome.hasLost = marks.has(partita_rt::kLostMark) && !saidWhyNotRun(outcome.said);
    outcome.lostRank = StringRef(marks.textOf(partita_rt::kLostMark)).split('\n').first.str();
    outcome.error = marks.textOf(saidWhyNotRun(outcome.said) ? partita_rt::kRefusedMark
                                                             : partita_rt::kErrorMark);
    outcome.failedStep = failedStepIn(marks.textOf(partita_rt::kFailedStepMark));
    if (ino_t inode; !StringRef(marks.textOf(partita_rt::kSavedMark)).getAsInteger(10, inode))
      outcome.savedIn = inode;
    // A launcher that was asked to end, such as mpirun, may hide that its ranks have, with a checkpoint. A rank that could
    // not write it ends with an error.
    if (int number; !outcome.signal && !haveLostLauncher &&
                    !StringRef(marks.textOf(partita_rt::kEndedMark)).getAsInteger(10, number))
      outcome.signal = number;
  }

  /// Passes signals on to the ranks, which know how to handle them: after the first one they may
  /// finish a step and write a checkpoint, without a time limit. After a second one they must end.
  void passSignalsOn() {
    if (passed == arrivedSignals())
      return;
    bool isFirst = passed == 0;
    passed = arrivedSignals();
    // Launchers give their ranks less time: mpirun kills them after two seconds, and SIGUSR1 kills torchrun, which leaves
    // its ranks behind. So they get it themselves; the launcher, which may start others in their place, once they have ended.
    if (launched && isFirst)
      signalled = launched->find();
    for (pid_t rank : signalled)
      kill(rank, interruptingSignal());
    if (signalled.empty() || !isFirst)
      signalAll(interruptingSignal());
  }

  /// Passes the signal on to a launcher that goes on after its ranks, which have got it, have ended.
  void endLauncherOfSignalled() {
    bool haveEnded = llvm::none_of(signalled, [](pid_t rank) { return kill(rank, 0) == 0; });
    // It may be about to end; mpirun crashes on a signal then.
    if (signalled.empty() || !haveEnded || ++looksSinceSignalled <= kLooksAtLauncher)
      return;
    signalled.clear();
    signalAll(interruptingSignal() == SIGUSR1 ? SIGTERM : interruptingSignal());
  }

  /// Ends what cannot end by itself: a rank that is stopped, a launcher without ranks. Returns true
  /// if the run has failed.
  bool lookAtRanks(bool failed, double now) {
    std::vector<pid_t> ranks;
    endLauncherOfSignalled();
    if (launched)
      ranks = launched->find();
    else
      ranks = running();
    if (marks.has(partita_rt::kAloneMark))
      stopped->setAlone();
    bool isStopped = launched && partita_rt::processState(processes.front()) == 'T';
    if (launched && !failed && launched->haveLeft() &&
        (isStopped || !marks.has(partita_rt::kDoneMark))) {
      giveReason(isStopped ? "its ranks on this host have ended, and the launcher is stopped"
                           : "its ranks on this host have ended, and the launcher has not");
      force.kill(running()); // what it waits for does not answer
      return true;
    }
    // While its ranks run, a stopped launcher does no harm: they end without it. Before it has any, all wait for it.
    bool mayHaveNone = stoppedLauncher && !launched->haveBeen() && !outcome.hasCause;
    if (mayHaveNone && stoppedLauncher->look(running(), now - lookedAt)) {
      giveReason("the launcher (process " + std::to_string(processes.front()) +
                 ") has been stopped for " +
                 formatv("{0:f1}", stoppedLauncher->secondsOf(processes.front())).str() +
                 " s, before it has started a rank on this host");
      force.kill(running());
      return true;
    }
    if (std::optional<pid_t> rank = stopped->look(ranks, now - lookedAt)) {
      giveReason((launched ? std::string("a rank of this host")
                           : nameOf(llvm::find(processes, *rank) - processes.begin())) +
                 " (process " + std::to_string(*rank) + ") has been stopped for " +
                 formatv("{0:f1}", stopped->secondsOf(*rank)).str() + " s");
      kill(*rank, SIGKILL);
      return true;
    }
    lookedAt = now;
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
    bool killed = WIFSIGNALED(status) && !force.hasSent();
    if (killed)
      giveReason(nameOf(rank) + " was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                 strsignal(WTERMSIG(status)) + ")");
    if (killed)
      outcome.killedBy = WTERMSIG(status);
    if (killed && partita_rt::isEndingSignal(WTERMSIG(status)))
      endedBy = WTERMSIG(status);
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    outcome.rankPrintedError |= !launched && WIFEXITED(status) && !done;
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
  std::vector<pid_t> running() const {
    std::vector<pid_t> found;
    llvm::copy_if(processes, std::back_inserter(found), [](pid_t each) { return each > 0; });
    return found;
  }
  void signalAll(int signal) const {
    for (pid_t process : running())
      kill(process, signal);
  }

  StringRef command;
  StartMarks marks;
  std::vector<pid_t> processes; ///< by rank; 0: has ended
  std::optional<RanksBelow> launched;
  std::optional<StoppedRanks> stopped, stoppedLauncher;
  Outcome outcome;
  partita_rt::OwnClock clock;
  double lookedAt = 0;          ///< the last look at stopped ranks, by it
  std::vector<pid_t> signalled; ///< ranks that have got the first signal in place of their launcher
  int looksSinceSignalled = 0;  ///< at a launcher whose ranks have ended
  bool haveLostLauncher = false; ///< the ranks have: it was killed, or has ended before them
  int polls = 0;
  int passed = 0;          ///< signals to this process that were passed on
  ForcedEnd force{kAsked}; ///< of those that do not end by themselves
  int endedBy = 0;         ///< one of partita_rt::kEndingSignals that has ended a rank
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
