//===- Causes.cpp - what made a collective necessary, in its location -------------------------===//

#include "dialects/Par/Par.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

SmallVector<CauseAttr> partita::par::causesOf(Location loc) {
  llvm::SetVector<CauseAttr> causes;
  loc->walk([&](Location part) {
    if (auto fused = dyn_cast<FusedLoc>(part))
      if (auto cause = dyn_cast_or_null<CauseAttr>(fused.getMetadata()))
        causes.insert(cause);
    return WalkResult::advance();
  });
  return causes.takeVector();
}

Location partita::par::withCause(Location loc, CauseAttr cause) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (fused && isa_and_nonnull<CauseAttr>(fused.getMetadata()))
    return FusedLoc::get(fused.getLocations(), cause, loc.getContext());
  return FusedLoc::get({loc}, cause, loc.getContext());
}

Location partita::par::withRole(Location where, Location from, StringRef role) {
  SmallVector<CauseAttr> causes = causesOf(from);
  if (causes.empty())
    return where;
  CauseAttr cause = causes.front();
  MLIRContext *context = where.getContext();
  return withCause(where, CauseAttr::get(context, StringAttr::get(context, role), cause.getLetter(),
                                         cause.getRule(), cause.getOp(), cause.getNode(),
                                         cause.getLayer(), cause.getLayers(), cause.getSeed()));
}

bool partita::par::isBackward(Location loc) {
  WalkResult result = loc->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    auto mark = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : nullptr;
    return mark && mark.getValue() == "backward" ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}
