#include "dialects/Interfaces/Interfaces.h"

using namespace mlir;

#include "dialects/Interfaces/Interfaces.cpp.inc"

int64_t partita::bytesOf(TypeRange tensors) {
  int64_t bytes = 0;
  for (Type type : tensors) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
  }
  return bytes;
}

LogicalResult partita::verifyStart(Operation *op) {
  auto start = cast<AsyncStartInterface>(op);
  Value token = start.getToken();
  Operation *wait = token.hasOneUse() ? *token.getUsers().begin() : nullptr;
  bool isWaited = isa_and_nonnull<AsyncWaitInterface>(wait) && wait->getBlock() == op->getBlock();
  bool isFilledForWait =
      start.worksInOperands() || llvm::all_of(start.getFilled(), [&](Value filled) {
        return filled.hasOneUse() && *filled.getUsers().begin() == wait;
      });
  if (isWaited && isFilledForWait)
    return success();
  return op->emitOpError() << "needs one wait in its block, for its token and all that it fills, "
                              "and no other use of them";
}

LogicalResult partita::verifyWait(Operation *op) {
  auto wait = cast<AsyncWaitInterface>(op);
  AsyncStartInterface start = wait.getStart();
  if (!start || start->getBlock() != op->getBlock() || start->getDialect() != op->getDialect())
    return op->emitOpError() << "waits for a token that no '" << op->getName().getDialectNamespace()
                             << "' op of this block started";
  if (!llvm::equal(start.getFilled(), wait.getFilled()))
    return op->emitOpError() << "must take all that its start fills, in order";
  if (op->getNumResults() != wait.getFilled().size())
    return op->emitOpError() << "needs a result for each of the " << wait.getFilled().size()
                             << " values that its start fills";
  return success();
}
