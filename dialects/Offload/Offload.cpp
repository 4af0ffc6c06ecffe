//===- Offload.cpp - what stands on the host --------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::offload;

#include "dialects/Offload/OffloadDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Offload/OffloadOps.cpp.inc"

void OffloadDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Offload/OffloadOps.cpp.inc"
      >();
}

/// What a copy fills is looked at through its wait alone, of which there is one.
static LogicalResult verifyStart(Operation *start) {
  Value token = start->getResult(0), buffer = start->getResult(1);
  auto isWait = [](Operation *user) { return isa<WaitOp>(user); };
  if (token.hasOneUse() && buffer.hasOneUse() && isWait(*token.getUsers().begin()) &&
      *token.getUsers().begin() == *buffer.getUsers().begin() &&
      (*token.getUsers().begin())->getBlock() == start->getBlock())
    return success();
  return start->emitOpError()
         << "needs one offload.wait in its block, for token and buffer, and no "
            "other use of them";
}

LogicalResult ToHostStartOp::verify() { return verifyStart(*this); }
LogicalResult ToDeviceStartOp::verify() { return verifyStart(*this); }

LogicalResult WaitOp::verify() {
  Operation *start = getToken().getDefiningOp();
  if (!isa_and_nonnull<ToHostStartOp, ToDeviceStartOp>(start))
    return emitOpError() << "waits for a token that no copy of this block started";
  if (start->getResult(1) != getBuffer())
    return emitOpError() << "must name what its copy fills";
  return success();
}

bool offload::livesOnHost(Operation *symbol) {
  return symbol && symbol->hasAttr(OffloadDialect::kHost);
}

bool offload::isMadeOnHost(Operation *update) {
  return isa<train::OptimizerInterface>(update) && update->hasAttr(OffloadDialect::kOnHost);
}

bool offload::isOnHost(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto read = dyn_cast<train::ReadOp>(op))
    return livesOnHost(SymbolTable::lookupNearestSymbolFrom(op, read.getSymbolAttr()));
  if (isa<ToHostOp, ToHostStartOp>(op))
    return true;
  if (auto wait = dyn_cast<WaitOp>(op))
    return isa_and_nonnull<ToHostStartOp>(wait.getToken().getDefiningOp());
  if (!isMadeOnHost(op))
    return false;
  std::optional<unsigned> updated = cast<train::OptimizerInterface>(op).getUpdatedOperand(
      cast<OpResult>(value).getResultNumber());
  return updated && isOnHost(op->getOperand(*updated)); // a rounded value goes to the device
}
