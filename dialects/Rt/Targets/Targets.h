//===- Targets.h - the targets that there are ---------------------------------------*- C++ -*-===//
//
// A new one adds its line here and in Target::all.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_RT_TARGETS_TARGETS_H
#define PARTITA_DIALECTS_RT_TARGETS_TARGETS_H

#include "dialects/Rt/Target.h"

namespace partita::rt {

const Target &cpuTarget();
const Target &cudaTarget();

/// What both make of their blocks: `all` tokens become one block where that takes no more memory
/// than the sums of several, and `mayBeOne`.
ClassifierWork chooseClassifierGradient(const ClassifierSizes &sizes, std::array<int64_t, 2> block,
                                        int64_t all, int64_t extraPerRow, bool mayBeOne);

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_TARGETS_TARGETS_H
