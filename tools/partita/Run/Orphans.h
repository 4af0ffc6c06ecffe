//===- Orphans.h - ranks whose launcher has ended before them ----------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_ORPHANS_H
#define PARTITA_TOOLS_RUN_ORPHANS_H

#include "tools/partita/Run/RanksBelow.h"
#include "tools/partita/Run/StartMarks.h"
#include "tools/partita/Run/StoppedRanks.h"

namespace partita::tool {

/// Waits for the ranks of a launcher that has ended; this process must be a subreaper, so that they have become
/// its own. They may know that the run is over, and write a checkpoint, without a time limit; if nobody has
/// asked them to end, this does, and ends those that do not follow. Then it ends what else the launcher has left, which would start ranks
/// again; not with `leavesOthers`, unless a signal ends the run. `passed`: how many signals to this process (EndingSignals.h)
/// have been passed on; the ranks get the later ones. Returns whether it has asked ranks by itself, without a signal to this
/// process: then nobody has asked the run to end.
bool endOrphans(RanksBelow &ranks, StoppedRanks &stopped, const StartMarks &marks, int passed,
                bool leavesOthers);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_ORPHANS_H
