//===- Targets.h - the list of targets ----------------------------------------------*- C++ -*-===//
//
// A new target adds its line here and in Target::all.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_RT_TARGETS_TARGETS_H
#define PARTITA_DIALECTS_RT_TARGETS_TARGETS_H

#include "dialects/Rt/Target.h"

namespace partita::rt {

const Target &cpuTarget();
const Target &cudaTarget();

/// Chooses the block of a classifier's gradient for either target: all tokens become one block if
/// `mayBeOne` and if this takes no more memory than the sums of several blocks.
ClassifierWork chooseClassifierGradient(const ClassifierSizes &sizes, std::array<int64_t, 2> block,
                                        int64_t floatsPerToken, bool mayBeOne);

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_TARGETS_TARGETS_H
