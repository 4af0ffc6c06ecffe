#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Interfaces/Provenance.h"

using namespace mlir;

#include "dialects/Interfaces/Interfaces.cpp.inc"

FailureOr<bool> partita::parseFlag(AsmParser &parser) {
  bool isTrue = succeeded(parser.parseOptionalKeyword("true"));
  if (!isTrue && failed(parser.parseKeyword("false", ": a flag is true or false")))
    return failure();
  return isTrue;
}

int64_t partita::bytesOf(TypeRange tensors) {
  int64_t bytes = 0;
  for (Type type : tensors) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
  }
  return bytes;
}

std::string partita::typeName(Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  return (element.isBF16()          ? "bfloat"
          : isa<FloatType>(element) ? "float"
                                    : "int") +
         std::to_string(width);
}

int64_t partita::wireBytesOf(Operation *collective, CollectiveKind kind, int64_t ranks) {
  using partita_rt::Extent;
  const CollectiveRow &row = partita_rt::rowOf(kind);
  int64_t operands = bytesOf(collective->getOperandTypes());
  if (row.from == Extent::Shard)
    return partita_rt::wireBytes(kind, operands, ranks);
  if (row.to == Extent::Full) // all full: a rank's shards are its blocks of them
    return partita_rt::wireBytes(kind, operands / ranks, ranks);
  // The first result of a start is its token.
  TypeRange shards = collective->getResultTypes();
  if (isa<AsyncStartInterface>(collective))
    shards = shards.drop_front();
  return partita_rt::wireBytes(kind, bytesOf(shards), ranks);
}

bool partita::computesGradients(Operation *op) {
  auto work = dyn_cast<ShardInterface>(op);
  return provenance::isBackward(op) || (work && work.getGradientMatmuls() > 0);
}

bool partita::isTransparent(Operation *op) {
  return isa<TransparentInterface>(op) && op->getNumOperands() == 1;
}

Value partita::handedOut(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto op = result ? dyn_cast<HandsOutInterface>(result.getOwner()) : HandsOutInterface();
  Value inside = op ? op.getHandedOut(result) : Value();
  return inside ? inside : value;
}

Value partita::behindRegion(Value value) {
  if (!value.hasOneUse())
    return value;
  OpOperand &use = *value.use_begin();
  auto op = use.getOwner()->hasTrait<OpTrait::IsTerminator>()
                ? dyn_cast_or_null<HandsOutInterface>(use.getOwner()->getParentOp())
                : HandsOutInterface();
  OpResult result = op ? op.getHandingOut(use) : OpResult();
  return result ? Value(result) : value;
}

LogicalResult partita::verifyStart(Operation *op) {
  auto start = cast<AsyncStartInterface>(op);
  Value token = behindRegion(start.getToken());
  Operation *wait = token.hasOneUse() ? *token.getUsers().begin() : nullptr;
  bool isWaited =
      isa_and_nonnull<AsyncWaitInterface>(wait) && wait->getBlock() == token.getParentBlock();
  bool isFilledForWait =
      start.worksInOperands() || llvm::all_of(start.getFilled(), [&](Value filled) {
        Value behind = behindRegion(filled);
        return behind.hasOneUse() && *behind.getUsers().begin() == wait;
      });
  if (isWaited && isFilledForWait)
    return success();
  return op->emitOpError() << "needs one wait in its block, for its token and all that it fills, "
                              "and no other use of them";
}

LogicalResult partita::verifyWait(Operation *op) {
  auto wait = cast<AsyncWaitInterface>(op);
  AsyncStartInterface start = wait.getStart();
  bool isInside = handedOut(wait.getToken()) != wait.getToken();
  if (!start || (start->getBlock() != op->getBlock() && !isInside))
    return op->emitOpError() << "waits for a token that no op of this block started";
  SmallVector<Value> filled(wait.getFilled());
  if (isInside)
    filled = llvm::map_to_vector(filled, [](Value value) { return handedOut(value); });
  if (!llvm::equal(start.getFilled(), filled))
    return op->emitOpError() << "must take all that its start fills, in order";
  if (op->getNumResults() != wait.getFilled().size())
    return op->emitOpError() << "needs a result for each of the " << wait.getFilled().size()
                             << " values that its start fills";
  return success();
}
