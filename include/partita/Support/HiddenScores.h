//===- HiddenScores.h - which scores a mask hides -----------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_HIDDENSCORES_H
#define PARTITA_SUPPORT_HIDDENSCORES_H

namespace partita {

/// A bias below this hides a score: exp(-9000) is zero in every precision, and masks made of -1e4 are covered.
inline constexpr double kHiddenBelow = -9000;

} // namespace partita

#endif // PARTITA_SUPPORT_HIDDENSCORES_H
