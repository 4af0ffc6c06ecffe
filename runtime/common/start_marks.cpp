// The marks of a process, and its status after an error (start_marks.h).

#include "common/start_marks.h"

#include "common/fixed_text.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/start_marks.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <sys/uio.h>
#include <unistd.h>

namespace partita_rt {

static std::atomic<bool> hasTrained{false}, hasLost{false}, isFaulty{false};

/// Leaves a mark with a text, and another one on the next line, if somebody wants to know and no process of
/// this host has left it. A handler of signals calls this too: it allocates nothing.
static void leaveMark(const char *mark, std::string_view text = {}, std::string_view more = {}) {
  const char *path = std::getenv(kMarksVariable);
  int folder = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
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
  if (const char *folder = std::getenv(kMarksVariable))
    unlink((std::string(folder) + "/" + mark).c_str());
}

void noteStep() {
  if (hasTrained.exchange(true))
    return;
  leaveMark(kTrainedMark);
  for (const char *mark : {kLostMark, kErrorMark, kEndedMark, kTakenMark, kUnsavedMark})
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

void noteTaken() { leaveMark(kTakenMark); }

void noteUnsaved() { leaveMark(kUnsavedMark); }

void noteEndedBy(int signal) { leaveMark(kEndedMark, std::to_string(signal)); }

void noteAsked() {
  FixedText mark;
  mark << kAskedMark << int64_t(getpid());
  leaveMark(mark.get());
}

} // namespace partita_rt
