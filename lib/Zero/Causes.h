//===- Causes.h - what gathers of shards are there for ------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_ZERO_CAUSES_H
#define PARTITA_LIB_ZERO_CAUSES_H

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include <optional>

namespace partita::zero {

/// `where` with the first cause of `from` in another role. Without `from`, no op of the model has asked
/// for it: the cause is that role, and the name of what it is for.
inline mlir::Location withRole(mlir::Location where, std::optional<mlir::Location> from,
                               par::Role role) {
  if (from)
    return par::withRole(where, *from, role);
  auto none = mlir::StringAttr::get(where.getContext(), "");
  auto node = mlir::StringAttr::get(where.getContext(), provenance::nameIn(where));
  return par::withCause(where, par::CauseAttr::get(where.getContext(), role, none, none, none, node,
                                                   par::CauseAttr::kOnce, 0, {}));
}

} // namespace partita::zero

#endif // PARTITA_LIB_ZERO_CAUSES_H
