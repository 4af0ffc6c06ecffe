// The status of a failed process (exit_status.h).

#include "common/exit_status.h"

#include "partita_rt/exit_status.h"

#include <atomic>

namespace partita_rt {

static std::atomic<bool> hasTrained{false};

void noteStep() { hasTrained = true; }

int failureStatus() { return hasTrained ? kFailedWhileTraining : kRefused; }

} // namespace partita_rt
