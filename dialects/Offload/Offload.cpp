//===- Offload.cpp - what is on the host ------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita;
using namespace partita::offload;

#include "dialects/Offload/OffloadDialect.cpp.inc"
#include "dialects/Offload/OffloadEnums.cpp.inc"
#include "dialects/Offload/OffloadInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Offload/OffloadAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Offload/OffloadOps.cpp.inc"

void OffloadDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Offload/OffloadAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Offload/OffloadOps.cpp.inc"
      >();
}

Operation *ToHostOp::buildStart(OpBuilder &builder) {
  return ToHostStartOp::create(builder, getLoc(), builder.getI64Type(), getType(), getValue());
}

Operation *ToHostOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<WaitOp>(builder, *this, start);
}

Operation *ToDeviceOp::buildStart(OpBuilder &builder) {
  return ToDeviceStartOp::create(builder, getLoc(), builder.getI64Type(), getType(), getValue());
}

Operation *ToDeviceOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<WaitOp>(builder, *this, start);
}

LogicalResult WaitOp::verify() {
  Operation *start = AsyncWaitInterface(*this).getStart(); // verifyWait has found it
  if (!isa<CopyInterface>(start))
    return emitOpError() << "completes a copy, not '" << start->getName().getStringRef()
                         << "'; a collective has par.wait";
  return success();
}

std::optional<Direction> offload::directionOf(Operation *op) {
  auto copy = dyn_cast_or_null<CopyInterface>(op);
  return copy ? std::optional(copy.getDirection()) : std::nullopt;
}

bool offload::livesOnHost(Operation *symbol) {
  return symbol && symbol->hasAttr(OffloadDialect::kHost);
}

bool offload::isMadeOnHost(Operation *update) {
  return isa<train::OptimizerInterface>(update) && update->hasAttr(OffloadDialect::kOnHost);
}

bool offload::isOnHost(Value value) {
  value = train::forwardOf(value);
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto read = dyn_cast<train::ReadOp>(op))
    return livesOnHost(SymbolTable::lookupNearestSymbolFrom(op, read.getSymbolAttr()));
  if (auto wait = dyn_cast<AsyncWaitInterface>(op))
    op = wait.getToken().getDefiningOp();
  if (std::optional<Direction> direction = directionOf(op))
    return *direction == Direction::ToHost;
  if (!isMadeOnHost(op))
    return false;
  std::optional<unsigned> updated = cast<train::OptimizerInterface>(op).getUpdatedOperand(
      cast<OpResult>(value).getResultNumber());
  return updated && isOnHost(op->getOperand(*updated)); // a rounded value goes to the device
}
