// When a step begins to change parameters and states. Until then a checkpoint's copy of them may be
// made beside it.

#ifndef PARTITA_RT_CHANGES_H
#define PARTITA_RT_CHANGES_H

#include "partita_rt/program.h"

namespace partita_rt {

/// Something that reads parameters and states while the rank computes.
class ChangeGuard {
public:
  virtual ~ChangeGuard() = default;
  /// Returns when they may change, and has then removed itself from Rank::changes.
  virtual void letChange() = 0;
};

/// Emitted code calls this before the first call of a block that changes a parameter or state.
inline void beginChanges(Rank &rank) {
  if (rank.changes)
    rank.changes->letChange();
}

} // namespace partita_rt

#endif // PARTITA_RT_CHANGES_H
