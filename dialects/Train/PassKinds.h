//===- PassKinds.h - the kinds of pass of a micro-batch, a row each -----------------*- C++ -*-===//
//
// What schedules, their files and their pictures need to know about a kind of pass. Whoever needs
// more than the rows say (the pass that makes a kind's region, the schedules that have it) names
// the kind.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_TRAIN_PASSKINDS_H
#define PARTITA_DIALECTS_TRAIN_PASSKINDS_H

#include "dialects/Train/Train.h"
#include <iterator>

namespace partita::train {

struct PassKindRow {
  PassKind kind;
  char letter; ///< in files and pictures of schedules: "F3"
  /// Where its result goes: 1 to the next position, -1 to the previous one; 0: it stays.
  int direction;
  llvm::StringLiteral title, color; ///< in pictures
  llvm::StringRef word() const { return stringifyPassKind(kind); }
};

/// In the order of PassKind: a pass reads what the kinds before its own have saved for the same
/// micro-batch and chunk.
inline constexpr PassKindRow kPassKinds[] = {
    {PassKind::Forward, 'F', 1, "forward", "#4e79a7"},
    {PassKind::Backward, 'B', -1, "backward", "#f28e2b"},
    {PassKind::Weights, 'W', 0, "gradients of weights", "#59a14f"},
};
inline constexpr size_t kPassKindCount = std::size(kPassKinds);
static_assert(kPassKindCount == getMaxEnumValForPassKind() + 1);

inline const PassKindRow &rowOf(PassKind kind) { return kPassKinds[static_cast<size_t>(kind)]; }

/// Returns the row whose result a pass of this kind waits for on its own position; null for the
/// first kind.
inline const PassKindRow *rowBefore(PassKind kind) {
  return kind == kPassKinds[0].kind ? nullptr : &rowOf(kind) - 1;
}

/// Lists all kinds: "F, B or W" from `text`, which appends what is said of one.
template <typename Text> std::string listPassKinds(Text text) {
  std::string list;
  for (const PassKindRow &row : kPassKinds)
    list += (&row == kPassKinds                 ? ""
             : &row + 1 == std::end(kPassKinds) ? " or "
                                                : ", ") +
            text(row);
  return list;
}
/// "'forward', 'backward' or 'weights'"
inline std::string quotedPassKinds() {
  return listPassKinds([](const PassKindRow &row) { return "'" + row.word().str() + "'"; });
}

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_PASSKINDS_H
