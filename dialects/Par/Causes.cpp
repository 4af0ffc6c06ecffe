//===- Causes.cpp - what made a collective necessary ------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

static SmallVector<CauseAttr> causesIn(Attribute fact) {
  SmallVector<CauseAttr> causes;
  if (auto array = dyn_cast_or_null<ArrayAttr>(fact))
    llvm::append_range(causes, array.getAsRange<CauseAttr>());
  return causes;
}

SmallVector<CauseAttr> partita::par::causesOf(Operation *op) {
  return causesIn(provenance::get(op, provenance::kCauses));
}

SmallVector<CauseAttr> partita::par::causesOf(Location loc) {
  return causesIn(provenance::get(loc, provenance::kCauses));
}

bool partita::par::hasRole(Operation *op, Role role) {
  return llvm::any_of(causesOf(op), [&](CauseAttr cause) { return cause.getRole() == role; });
}

Location partita::par::withCause(Location loc, CauseAttr cause) {
  return provenance::with(loc, provenance::kCauses, ArrayAttr::get(loc.getContext(), cause));
}

Location partita::par::withRole(Location where, Location from, Role role) {
  SmallVector<CauseAttr> causes = causesOf(from);
  if (causes.empty())
    return where;
  CauseAttr cause = causes.front();
  return withCause(where, CauseAttr::get(where.getContext(), role, cause.getLetter(),
                                         cause.getRule(), cause.getOp(), cause.getNode(),
                                         cause.getLayer(), cause.getLayers(), cause.getSeed()));
}

bool partita::par::isOfParameters(Role role) {
  return role == Role::Parameter || role == Role::Kept;
}
