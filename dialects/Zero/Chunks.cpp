//===- Chunks.cpp - sums of numbers in 4 bits: types, start and wait --------------------------===//

#include "dialects/Zero/Zero.h"
#include "runtime/include/partita_rt/int4_chunks.h"

using namespace mlir;
using namespace partita;
using namespace partita::zero;
using par::Kind;
using par::Layout;

/// Adds the other axes whose ranks have different values, or different terms of one.
static void addOthers(Type shard, StringAttr axis, llvm::SetVector<StringAttr> &others) {
  Layout layout = Layout::of(shard);
  llvm::SetVector<StringAttr> axes;
  layout.axes(axes);
  for (StringAttr each : axes)
    if (each != axis && !llvm::is_contained({Kind::Invariant, Kind::Replicated}, layout.kind(each)))
      others.insert(each);
}

RankedTensorType partita::zero::chunksType(TypeRange shards, StringAttr axis, int64_t block,
                                           par::MeshAttr mesh, bool received) {
  if (shards.empty() || !mesh)
    return {};
  llvm::SetVector<StringAttr> others;
  int64_t bytes = 0;
  for (Type shard : shards) {
    auto type = dyn_cast_or_null<RankedTensorType>(shard);
    if (!type || Layout::of(type).flat.empty() || Layout::of(type).flat.back() != axis)
      return {};
    addOthers(type, axis, others);
    bytes += partita_rt::int4_chunks::chunkBytes(type.getNumElements(), block);
  }
  SmallVector<int64_t> shape;
  for (StringAttr each : mesh.getAxes()) // a dimension for each, in the mesh's order
    if (others.contains(each))
      shape.push_back(mesh.sizeOf(each));
  int64_t ranks = mesh.sizeOf(axis);
  shape.append({ranks, ranks, bytes});
  Layout layout(shape);
  unsigned dim = 0;
  for (StringAttr each : mesh.getAxes())
    if (others.contains(each))
      layout.shard(each, dim++);
  layout.shard(axis, received ? dim : dim + 1);
  auto type = layout.localType(IntegerType::get(axis.getContext(), 8), mesh, [](const Twine &) {});
  return succeeded(type) ? *type : RankedTensorType();
}

//===----------------------------------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------------------------------===//

LogicalResult zero::verifyWholeWords(Operation *op, uint64_t block) {
  if (block % partita_rt::int4_chunks::kWord == 0)
    return success();
  return op->emitOpError() << "rounds in blocks of " << block << ", expected a multiple of "
                           << partita_rt::int4_chunks::kWord << ", the numbers of a word";
}

/// Checks the type of chunks of which these are the shards.
static LogicalResult verifyChunks(Operation *op, TypeRange shards, StringAttr axis, uint64_t block,
                                  Type chunks, bool received) {
  if (failed(par::verifyAxis(op, axis)) || failed(verifyWholeWords(op, block)))
    return failure();
  if (shards.empty())
    return op->emitOpError() << "needs at least one value";
  RankedTensorType expected =
      chunksType(shards, axis, static_cast<int64_t>(block), par::MeshAttr::of(op), received);
  if (!expected)
    return op->emitOpError() << "over " << axis << " needs flat shards over this axis, found "
                             << shards;
  if (chunks == expected)
    return success();
  return op->emitOpError() << "over " << axis << " in blocks of " << block
                           << (received ? " receives " : " yields ") << expected << ", not "
                           << chunks;
}

LogicalResult QuantizeChunksOp::verify() {
  SmallVector<Type> shards;
  for (Value value : getValues()) {
    Layout layout = Layout::of(value.getType());
    if (layout.kind(getAxisAttr()) != Kind::Partial)
      return emitOpError() << "over " << getAxisAttr() << " expects values that are "
                           << par::toString(Kind::Partial) << ", it is "
                           << par::toString(layout.kind(getAxisAttr())) << ": " << value.getType();
    shards.push_back(shardType(value.getType(), getAxisAttr(), par::MeshAttr::of(*this)));
  }
  return verifyChunks(*this, shards, getAxisAttr(), getBlock(), getChunks().getType(),
                      /*received=*/false);
}

std::optional<Loss> SumChunksOp::getLoss() { return Loss{kRoundedGradients}; }

LogicalResult SumChunksOp::verify() {
  return verifyChunks(*this, getShards().getTypes(), getAxisAttr(), getBlock(),
                      getReceived().getType(), /*received=*/true);
}

/// Checks that chunks go from senders to receivers.
static LogicalResult verifyExchange(Operation *op, StringAttr axis, Type sent, Type received) {
  if (failed(par::verifyAxis(op, axis)))
    return failure();
  auto type = cast<RankedTensorType>(sent);
  Layout layout = Layout::of(type);
  int64_t senders = type.getRank() - 2;
  if (senders < 1 || layout.dimOf(axis) != senders)
    return op->emitOpError() << "over " << axis
                             << " expects chunks of senders along this axis, in the last dimension "
                                "but one; it is "
                             << sent;
  int64_t ranks = par::MeshAttr::of(op).sizeOf(axis);
  if (layout.shape[senders - 1] != ranks || layout.shape[senders] != ranks)
    return op->emitOpError() << "over " << axis << " expects a chunk from each of " << ranks
                             << " ranks to each, found " << sent;
  layout.shard(axis, senders - 1);
  auto expected = layout.localType(type.getElementType(), par::MeshAttr::of(op),
                                   [&](const Twine &error) { op->emitOpError() << error; });
  if (failed(expected) || received == *expected)
    return success(succeeded(expected));
  return op->emitOpError() << "over " << axis << " yields " << *expected << ", not " << received;
}

LogicalResult ExchangeChunksOp::verify() {
  return verifyExchange(*this, getAxisAttr(), getChunks().getType(), getReceived().getType());
}

LogicalResult ExchangeChunksStartOp::verify() {
  if (getValues().size() != 1 || getBuffers().size() != 1)
    return emitOpError() << "has chunks and what is received, not " << getValues().size()
                         << " values and " << getBuffers().size() << " results";
  return verifyExchange(*this, getAxisAttr(), getValues()[0].getType(), getBuffers()[0].getType());
}

//===----------------------------------------------------------------------------------------------===//
// Start and wait
//===----------------------------------------------------------------------------------------------===//

Operation *ExchangeChunksOp::buildStart(OpBuilder &builder) {
  return ExchangeChunksStartOp::create(builder, getLoc(), builder.getI64Type(),
                                       getResult().getType(), getChunks(), getAxisAttr(),
                                       getReasonAttr());
}

Operation *ExchangeChunksOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<par::WaitOp>(builder, *this, start);
}

Value SumChunksOp::getSummed(unsigned result) {
  Value received = handedOut(getReceived());
  if (auto wait = received.getDefiningOp<AsyncWaitInterface>())
    received = handedOut(wait.getFilledBy(cast<OpResult>(received).getResultNumber()));
  Operation *exchange = received.getDefiningOp();
  if (!isa_and_nonnull<ExchangeChunksOp, ExchangeChunksStartOp>(exchange))
    return {};
  auto sent = handedOut(exchange->getOperand(0)).getDefiningOp<QuantizeChunksOp>();
  return sent && result < sent.getValues().size() ? sent.getValues()[result] : Value();
}
