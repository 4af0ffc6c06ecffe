// The marks of a process, and its status after an error (start_marks.h).

#include "common/start_marks.h"

#include "common/fixed_text.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/start_marks.h"

#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace partita_rt {

static std::atomic<bool> hasTrained{false}, hasLost{false}, isFaulty{false};

static timespec processBegin; ///< about

/// The folder's path; "": nobody wants to know.
static const char *marksFolder() {
  static std::atomic<bool> isKnown{false};
  static char path[PATH_MAX];
  if (!isKnown) {
    clock_gettime(CLOCK_REALTIME_COARSE, &processBegin); // the clock of files
    const char *given = std::getenv(kMarksVariable);
    if (given && std::strlen(given) < sizeof(path))
      std::strcpy(path, given);
    isKnown = true;
  }
  return path;
}

void findMarksFolder() { marksFolder(); }

/// Leaves a mark with a text, and another one on the next line, if somebody wants to know and no process of
/// this host has left it. A handler of signals calls this too: it allocates nothing.
static void leaveMark(const char *mark, std::string_view text = {}, std::string_view more = {}) {
  const char *path = marksFolder();
  int folder = *path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (folder < 0)
    return;
  int file = openat(folder, mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  close(folder);
  if (file < 0)
    return;
  iovec parts[] = {{const_cast<char *>(text.data()), text.size()},
                   {const_cast<char *>("\n"), more.empty() ? 0 : size_t(1)},
                   {const_cast<char *>(more.data()), more.size()}};
  // Where it cannot be written, the mark is empty.
  [[maybe_unused]] ssize_t written = writev(file, parts, 3);
  close(file);
}

/// Removes a mark that ranks of an earlier start by the same launcher have left.
static void removeMark(const char *mark) {
  std::string path = marksFolder() + ("/" + std::string(mark));
  struct stat status;
  if (*marksFolder() && stat(path.c_str(), &status) == 0 &&
      std::pair(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) <
          std::pair(processBegin.tv_sec,
                    processBegin.tv_nsec)) // another rank may have left it meanwhile
    unlink(path.c_str());
}

void noteStep() {
  if (hasTrained.exchange(true))
    return;
  leaveMark(kTrainedMark);
  for (const char *mark : kMarksOfOneStart)
    removeMark(mark);
}
void noteLostRank(const char *report) {
  std::string_view whole(report);
  if (!hasLost.exchange(true))
    leaveMark(kLostMark, whole.substr(0, whole.find(';')), whole);
}

void noteFault() { isFaulty = true; }

int failureStatus() { return hasTrained || hasLost || isFaulty ? kFailedWhileTraining : kRefused; }

void markError(const std::string &error) {
  leaveMark(failureStatus() == kRefused ? kRefusedMark : kErrorMark, error);
}

void noteSaved(uint64_t inode) { leaveMark(kSavedMark, std::to_string(inode)); }

void noteFailedStep(int64_t step, const char *kind, const std::string &text) {
  leaveMark(kFailedStepMark, std::to_string(step) + " " + kind, text);
}

void noteAlone() { leaveMark(kAloneMark); }

void noteDone() { leaveMark(kDoneMark); }

void noteTaken() { leaveMark(kTakenMark); }

void noteUnsaved() { leaveMark(kUnsavedMark); }

void noteEndedBy(int signal) { leaveMark(kEndedMark, std::to_string(signal)); }

void noteAsked() {
  FixedText mark;
  mark << kAskedMark << int64_t(getpid());
  leaveMark(mark.get());
}

} // namespace partita_rt
