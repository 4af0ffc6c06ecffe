// The status of a failed process (exit_status.h).

#include "common/exit_status.h"

#include "partita_rt/exit_status.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace partita_rt {

static std::atomic<bool> hasTrained{false}, hasLost{false};

void noteStep() { hasTrained = true; }
void noteLoss() { hasLost = true; }

int failureStatus() { return hasTrained || hasLost ? kFailedWhileTraining : kRefused; }

void markRefusal() {
  const char *path = std::getenv(kRefusalFileVariable);
  if (!path || failureStatus() != kRefused)
    return;
  if (int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); file >= 0)
    close(file);
}

} // namespace partita_rt
