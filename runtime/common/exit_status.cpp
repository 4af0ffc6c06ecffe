// The status of a failed process, and its marks (exit_status.h).

#include "common/exit_status.h"

#include "partita_rt/exit_status.h"
#include "partita_rt/start_marks.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace partita_rt {

static std::atomic<bool> hasTrained{false}, hasLost{false};

/// Leaves a mark with a text, if somebody wants to know and no process of this host has left it.
static void leaveMark(const char *mark, const std::string &text = "") {
  const char *folder = std::getenv(kMarksVariable);
  if (!folder)
    return;
  std::string path = std::string(folder) + "/" + mark;
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0)
    return;
  // Where it cannot be written, the mark is empty.
  [[maybe_unused]] ssize_t written = ::write(file, text.data(), text.size());
  close(file);
}

void noteStep() {
  if (!hasTrained.exchange(true))
    leaveMark(kTrainedMark);
}
void noteLoss() {
  if (!hasLost.exchange(true))
    leaveMark(kLostMark);
}

int failureStatus() { return hasTrained || hasLost ? kFailedWhileTraining : kRefused; }

void markRefusal() {
  if (failureStatus() == kRefused)
    leaveMark(kRefusedMark);
}

void noteSaved(uint64_t inode) { leaveMark(kSavedMark, std::to_string(inode)); }

void noteFailedStep(const std::string &what) { leaveMark(kFailedStepMark, what); }

} // namespace partita_rt
