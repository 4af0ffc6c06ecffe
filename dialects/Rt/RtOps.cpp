//===- RtOps.cpp - see RtOps.td ---------------------------------------------------------------===//

#include "dialects/Rt/Rt.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

#define GET_OP_CLASSES
#include "dialects/Rt/RtOps.cpp.inc"

void ForOp::build(OpBuilder &builder, OperationState &state, int64_t count) {
  state.addAttribute(getCountAttrName(state.name), builder.getI64IntegerAttr(count));
  Region *body = state.addRegion();
  body->emplaceBlock().addArgument(builder.getI64Type(), state.location);
  ensureTerminator(*body, builder, state.location);
}
