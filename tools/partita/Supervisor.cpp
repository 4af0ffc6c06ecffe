//===- Supervisor.cpp - starts a run again from its newest checkpoint -------------------------===//

#include "tools/partita/Supervisor.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "runtime/include/partita_rt/exit_status.h"
#include "tools/partita/Options.h"
#include "llvm/ADT/STLExtras.h"
#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

namespace {

/// The words of a program's command line that decide where a restart begins.
struct ResumeWords {
  std::string folder; ///< of --checkpoint
  bool overwrites = false;
  std::vector<std::string> again; ///< the command line of a restart
};

/// A checkpoint's folder, whatever its name.
using Identity = std::pair<dev_t, ino_t>;

} // namespace

static ResumeWords readWords(ArrayRef<std::string> arguments) {
  ResumeWords words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef word = arguments[i], name = word.split('=').first;
    if (name == "--checkpoint" && name != word)
      words.folder = word.split('=').second.str();
    else if (name == "--checkpoint" && i + 1 < arguments.size())
      words.folder = arguments[i + 1];
    if (name == "--resume") {
      if (name == word && i + 1 < arguments.size() && arguments[i + 1] == "auto")
        ++i;
      continue;
    }
    if (name == "--overwrite") {
      words.overwrites = true;
      continue;
    }
    words.again.push_back(word.str());
  }
  words.again.insert(words.again.end(), {"--resume", "auto"});
  return words;
}

static std::set<Identity> checkpointsNow(const std::string &folder) {
  std::set<Identity> found;
  for (const partita_rt::CheckpointPlace &place : partita_rt::checkpointsIn(folder)) {
    struct stat status;
    if (stat(place.path.c_str(), &status) == 0)
      found.insert({status.st_dev, status.st_ino});
  }
  return found;
}

/// Waits until no process of the run that has ended holds the folder's lock any more, for at most ten
/// seconds: then the next one reports who has it.
static void waitForLock(const std::string &folder) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
      return;
    bool isFree = flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    close(descriptor);
    if (isFree)
      return;
    usleep(10'000);
  }
}

/// Could the program end otherwise if it were started again? A launcher reports the signal that ended
/// one of its processes as 128 more.
static bool mayEndOtherwise(const Outcome &outcome) {
  if (outcome.interrupted || outcome.signal)
    return false;
  int number = outcome.status > 128 ? outcome.status - 128 : 0;
  if (number == SIGINT || number == SIGTERM || number == SIGHUP)
    return false; // somebody has ended it
  return !outcome.why.empty() || number > 0 || outcome.status == partita_rt::kFailedWhileTraining;
}

int partita::tool::superviseRun(StringRef command, const std::vector<std::string> &arguments,
                                int64_t maxRestarts,
                                function_ref<Outcome(std::vector<std::string>)> run) {
  ResumeWords words = readWords(arguments);
  if (maxRestarts > 0 && words.folder.empty())
    return fail(command, "--max-restarts needs --checkpoint DIR: a restart goes on from the newest "
                         "checkpoint in it");
  // With --overwrite the folder may hold another run's checkpoints, which the first save removes.
  std::set<Identity> others;
  if (maxRestarts > 0 && words.overwrites)
    others = checkpointsNow(words.folder);
  std::vector<std::string> now = arguments;
  Outcome outcome;
  for (int64_t restarts = 0;; ++restarts) {
    outcome = run(now);
    bool mayHelp = mayEndOtherwise(outcome);
    if (restarts == maxRestarts || !mayHelp) {
      if (!outcome.why.empty() && !outcome.isReported && !outcome.signal && !outcome.interrupted)
        fail(command, outcome.why);
      if (restarts > 0 && mayHelp)
        fail(command, "the program has failed " + Twine(restarts + 1) + " times; --max-restarts " +
                          Twine(maxRestarts) + " allows no more");
      break;
    }
    waitForLock(words.folder);
    std::set<Identity> there = checkpointsNow(words.folder);
    bool hasOthers = any_of(there, [&](const Identity &each) { return others.count(each); });
    now = hasOthers ? arguments : words.again;
    std::string from = hasOthers || there.empty() ? "" : partita_rt::newestPlace(words.folder);
    errs() << "partita " << command << ": "
           << printableLines(outcome.why.empty() ? "the program has failed" : outcome.why)
           << "; restart " << restarts + 1 << " of " << maxRestarts
           << (from.empty() ? ", from the beginning: there is no checkpoint yet"
                            : ", from " + printableLines(from))
           << '\n';
    errs().flush();
  }
  if (outcome.signal) {
    signal(outcome.signal, SIG_DFL);
    raise(outcome.signal);
  }
  return outcome.status;
}
