//===- EndingSignals.h - signals that ask this process to end ---------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_ENDINGSIGNALS_H
#define PARTITA_TOOLS_RUN_ENDINGSIGNALS_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace partita::tool {

/// From here on SIGINT, SIGTERM, SIGHUP and SIGUSR1 are noted, not followed. Those that are ignored (nohup)
/// stay ignored, also in the ranks. Of several within a second only the first counts (partita_rt::kOneRequest).
void noteEndingSignals();
/// Returns the last of these signals, or 0.
int interruptingSignal();
/// Returns how many have arrived.
int arrivedSignals();

/// Waits for at most so many seconds until `isOver` returns true, or one of these signals has arrived. Returns whether it
/// is over. Asks once more when the time is over; `every`: seconds between two questions.
bool waitUntil(double seconds, llvm::function_ref<bool()> isOver, double every = 0.01);
/// Waits so many seconds, or until one of these signals has arrived.
void pauseFor(double seconds);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_ENDINGSIGNALS_H
