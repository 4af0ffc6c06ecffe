//===- Ahead.h - how far ahead of its use a value is fetched ------------------------*- C++ -*-===//
//
// Shared by gathers of parameters and copies from the host: groups are in the order of their first
// uses, and each is fetched before the first use of an earlier group.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_AHEAD_H
#define PARTITA_ANALYSIS_AHEAD_H

#include "mlir/IR/Operation.h"

namespace partita::analysis {

/// Returns the first op of the value's block that uses it, directly or in a region, or null.
inline mlir::Operation *firstUseOf(mlir::Value value) {
  mlir::Operation *first = nullptr;
  for (mlir::Operation *user : value.getUsers())
    if (mlir::Operation *use = value.getParentBlock()->findAncestorOpInBlock(*user);
        use && (!first || use->isBeforeInBlock(first)))
      first = use;
  return first;
}

/// Returns the first op of its block that uses the op, directly or in a region, or null.
inline mlir::Operation *firstUse(mlir::Operation *op) {
  mlir::Operation *first = nullptr;
  for (mlir::Value result : op->getResults())
    if (mlir::Operation *use = firstUseOf(result); use && (!first || use->isBeforeInBlock(first)))
      first = use;
  return first;
}

/// Returns the group before whose first use group number `index` is fetched: always at least one
/// group ahead, and further while all groups that wait for their use have at most `aheadBytes`.
/// Groups have `bytes`.
template <typename Groups> size_t aheadOf(const Groups &groups, size_t index, int64_t aheadBytes) {
  size_t ahead = index;
  for (int64_t waiting = groups[index].bytes; ahead > 0; --ahead) {
    waiting += groups[ahead - 1].bytes;
    if (ahead < index && waiting > aheadBytes)
      break;
  }
  return ahead;
}

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_AHEAD_H
