// The status of a failed process, and its marks (exit_status.h).

#include "common/exit_status.h"

#include "common/fixed_text.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/start_marks.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace partita_rt {

static std::atomic<bool> hasTrained{false}, hasLost{false};

/// Leaves a mark with a text, if somebody wants to know and no process of this host has left it. A
/// handler of signals calls this too: it allocates nothing.
static void leaveMark(const char *mark, std::string_view text = {}) {
  const char *path = std::getenv(kMarksVariable);
  int folder = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (folder < 0)
    return;
  int file = openat(folder, mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  close(folder);
  if (file < 0)
    return;
  // Where it cannot be written, the mark is empty.
  [[maybe_unused]] ssize_t written = ::write(file, text.data(), text.size());
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
  for (const char *mark : {kLostMark, kEndedMark, kTakenMark, kUnsavedMark})
    removeMark(mark);
}
void noteLoss(const char *report) {
  if (!hasLost.exchange(true))
    leaveMark(kLostMark, report);
}

int failureStatus() { return hasTrained || hasLost ? kFailedWhileTraining : kRefused; }

void markRefusal() {
  if (failureStatus() == kRefused)
    leaveMark(kRefusedMark);
}

void noteSaved(uint64_t inode) { leaveMark(kSavedMark, std::to_string(inode)); }

void noteFailedStep(const std::string &what) { leaveMark(kFailedStepMark, what); }

void noteTaken() { leaveMark(kTakenMark); }

void noteUnsaved() { leaveMark(kUnsavedMark); }

void noteEndedBy(int signal) { leaveMark(kEndedMark, std::to_string(signal)); }

void noteAsked() {
  FixedText mark;
  mark << kAskedMark << int64_t(getpid());
  leaveMark(mark.get());
}

} // namespace partita_rt
