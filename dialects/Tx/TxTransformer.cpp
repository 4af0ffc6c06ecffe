//===- TxTransformer.cpp - see TxTransformer.td -----------------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxTransformer.cpp.inc"

/// Checks what the rule does not: the type of the first keys.
template <typename Op> static LogicalResult verifyFirstKeys(Op op) {
  if (Value first = op.getFirstKeys();
      first && !cast<RankedTensorType>(first.getType()).getElementType().isInteger(32))
    return op.emitOpError() << "begins at keys of type " << first.getType()
                            << ", expected 32-bit integers";
  return success();
}

//===------------------------------------------------------------------------------------------------===//
// Dropout, also of attention's probabilities
//===------------------------------------------------------------------------------------------------===//

/// Checks the numbers of the elements of `numbered`.
template <typename Op> static LogicalResult verifyNumbers(Op op, RankedTensorType numbered) {
  if (!op.getKey() != !op.getMicro())
    return op.emitOpError() << "needs both a key and a micro-batch, or neither";
  if (op.getFirst() &&
      (!op.getFullShape() || static_cast<int64_t>(op.getFullShape()->size()) != numbered.getRank()))
    return op.emitOpError() << "needs the full shape of " << numbered << " where it is a shard";
  for (const auto &split : par::Layout::of(numbered).splits)
    for (const par::AxisSplit &part : split)
      if (part.blocks != 1)
        return op.emitOpError() << "numbers the elements of one shard, " << numbered
                                << " is several, one in each block; choose a mesh without "
                                << part.axis;
  return success();
}

static LogicalResult verifyRatio(Operation *op, double ratio) {
  if (!(ratio >= 0 && ratio <= 1))
    return op->emitOpError() << "has a ratio of " << ratio << ", expected one between 0 and 1";
  return success();
}

/// Computes the numbers of a shard's elements from the first one's and the full shape.
template <typename Op> static void localizeNumbers(Op op, RankedTensorType numbered) {
  par::Layout layout = par::Layout::of(numbered), numbers;
  for (auto &split : layout.splits)
    if (!split.empty()) {
      int64_t shards = 1;
      for (const par::AxisSplit &part : split)
        shards *= par::MeshAttr::of(op).sizeOf(part.axis);
      numbers.shape.push_back(shards);
      numbers.splits.push_back(split);
    }
  if (!op.getKey() || numbers.shape.empty())
    return;
  OpBuilder builder(op);
  auto type = RankedTensorType::get(SmallVector<int64_t>(numbers.shape.size(), 1),
                                    builder.getI64Type(), numbers.encoding(op.getContext()));
  op.getFirstMutable().assign(
      par::FirstElementOp::create(builder, op.getLoc(), type, TypeAttr::get(numbered)));
  op.setFullShapeAttr(builder.getDenseI64ArrayAttr(layout.shape));
}

LogicalResult DropoutOp::verify() {
  if (failed(verifyRatio(*this, getRatio().convertToDouble())))
    return failure();
  return verifyNumbers(*this, getX().getType());
}
void DropoutOp::localize() { localizeNumbers(*this, getX().getType()); }
bool DropoutOp::drops() { return true; }
StringAttr DropoutOp::getDropoutIdName() { return getIdAttrName(); }
void DropoutOp::giveKey(Value key, Value micro) {
  getKeyMutable().assign(key);
  getMicroMutable().assign(micro);
}
void DropoutOp::dropNothing() {
  getResult().replaceAllUsesWith(getX());
  erase();
}

/// The type of attention's probabilities [b, h, s, t] on one rank; in a ring, of full sequences: their elements
/// are numbered by where its queries and keys lie in these.
template <typename Op> static RankedTensorType probabilitiesOf(Op op) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  par::Layout ofQ = par::Layout::of(q), ofK = par::Layout::of(k);
  par::Layout layout({ofQ.shape[0], ofQ.shape[2], ofQ.shape[1], ofK.shape[1]});
  layout.splits[0] = ofQ.splits[0];
  layout.splits[1] = ofQ.splits[2];
  return RankedTensorType::get({q.getDimSize(0), q.getDimSize(2), ofQ.shape[1], ofK.shape[1]},
                               q.getElementType(), layout.encoding(op.getContext()));
}

template <typename Op> static LogicalResult verifyDropout(Op op) {
  if (!op.getRatio() != !op.getId())
    return op.emitOpError() << "needs both a ratio and an id of its dropout, or neither";
  if (!op.getRatio()) {
    if (op.getKey() || op.getMicro() || op.getFirst())
      return op.emitOpError() << "has a key of dropout, but no ratio";
    return success();
  }
  if (failed(verifyRatio(op, op.getRatio()->convertToDouble())))
    return failure();
  return verifyNumbers(op, probabilitiesOf(op));
}

template <typename Op> static void giveKeyTo(Op op, Value key, Value micro) {
  op.getKeyMutable().assign(key);
  op.getMicroMutable().assign(micro);
}

template <typename Op> static void switchDropoutOff(Op op) {
  op.removeRatioAttr();
  op.removeIdAttr();
  op.removeFullShapeAttr();
  op.getKeyMutable().clear();
  op.getMicroMutable().clear();
  op.getFirstMutable().clear();
}

template <typename Op> static void localizeAttention(Op op) {
  localizeNumbers(op, probabilitiesOf(op));
  if (op.getBlocksAttr() && op.getBlocksAttr().isPerHead())
    addFirstIndex(op, op.getFirstHeadMutable(), op.getQ().getType(), /*dim=*/2);
}

void AttentionOp::localize() { localizeAttention(*this); }
bool AttentionOp::drops() { return getRatio().has_value(); }
StringAttr AttentionOp::getDropoutIdName() { return getIdAttrName(); }
void AttentionOp::giveKey(Value key, Value micro) { giveKeyTo(*this, key, micro); }
void AttentionOp::dropNothing() { switchDropoutOff(*this); }

TypedValue<RankedTensorType> AttentionGradOp::getDbias() {
  if (!getBias())
    return {};
  return cast<TypedValue<RankedTensorType>>(Value(getOthers().front()));
}

AttentionGradOp AttentionGradOp::withSums() {
  OpBuilder builder(*this);
  auto made =
      create(builder, getLoc(), getQ(), getK(), getV(), getOut(), getLse(), getDout(), getBias(),
             getFirstKeys(), getFirstHead(), getKey(), getMicro(), getFirst(), getScaleAttr(),
             getCausalAttr(), getWindowAttr(), getZeroHiddenAttr(), getRatioAttr(), getIdAttr(),
             getFullShapeAttr(), getBlocksAttr(), getRingAttr(), builder.getUnitAttr());
  made->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return made;
}

void AttentionGradOp::localize() { localizeAttention(*this); }
bool AttentionGradOp::drops() { return getRatio().has_value(); }
StringAttr AttentionGradOp::getDropoutIdName() { return getIdAttrName(); }
void AttentionGradOp::giveKey(Value key, Value micro) { giveKeyTo(*this, key, micro); }
void AttentionGradOp::dropNothing() { switchDropoutOff(*this); }

//===------------------------------------------------------------------------------------------------===//
// Attention
//===------------------------------------------------------------------------------------------------===//

/// Checks the blocks against the full shape, and that a shard knows which of their heads it has.
template <typename Op> static LogicalResult verifyBlocks(Op op) {
  BlocksAttr blocks = op.getBlocksAttr();
  bool isPerHead = blocks && blocks.isPerHead();
  if (op.getFirstHead() && !isPerHead)
    return op.emitOpError() << "has a first head, but no blocks that differ between heads";
  if (!blocks)
    return success();
  par::Layout q = par::Layout::of(op.getQ().getType()), k = par::Layout::of(op.getK().getType());
  OtherMask mask{op.getCausal(), op.getWindow() ? int64_t(*op.getWindow()) : 0};
  if (std::string problem = blocks.problemFor(q.shape[1], k.shape[1], q.shape[2], mask);
      !problem.empty())
    return op.emitOpError() << problem;
  if (isPerHead && !q.splits[2].empty() && !op.getFirstHead())
    return op.emitOpError()
           << "needs the first head of a shard, as its heads have different blocks";
  return success();
}

/// Checks what a ring needs beyond the rule: the mesh axis, and keys that are exchanged whole.
template <typename Op> static LogicalResult verifyRing(Op op) {
  StringAttr ring = op.getRingAttr();
  if (!ring)
    return success();
  if (failed(par::verifyAxis(op, ring)))
    return failure();
  for (const par::DimSplit &splits : {par::Layout::of(op.getQ().getType()).splits[1],
                                      par::Layout::of(op.getK().getType()).splits[1]})
    for (const par::AxisSplit &split : splits)
      if (split.axis != ring)
        return op.emitOpError() << "exchanges keys over " << ring << ", but " << split.axis
                                << " splits a sequence, too";
  return success();
}

/// Checks that runs of queries and keys have whole blocks.
template <typename Op> static LogicalResult verifyBlocksOfRuns(Op op) {
  if (!op.getBlocksAttr() != !op.getBehind())
    return op.emitOpError()
           << "needs both blocks and how far behind the rank of its keys is, or neither";
  if (!op.getBlocksAttr())
    return success();
  int64_t size = op.getBlocksAttr().getSize();
  for (auto [positions, first] :
       {std::pair(op.getQ(), op.getFirstQuery()), std::pair(op.getK(), op.getFirstKey())}) {
    int64_t count = positions.getType().getDimSize(1), runs = first.getType().getDimSize(0);
    if (count % (runs * size) != 0)
      return op.emitOpError() << "has blocks of " << size << ", which do not divide " << count
                              << " positions in " << runs << (runs == 1 ? " run" : " runs");
  }
  int64_t ranks = par::Layout::of(op.getK().getType()).shape[1] /
                  std::max<int64_t>(1, op.getK().getType().getDimSize(1));
  if (auto behind = static_cast<int64_t>(*op.getBehind()); behind < 0 || behind >= ranks)
    return op.emitOpError() << "has keys of the rank " << behind << " places behind, in a ring of "
                            << ranks;
  return verifyBlocks(op);
}

template <typename Op> static LogicalResult verifyStep(Op op) {
  for (TypedValue<RankedTensorType> first : {op.getFirstQuery(), op.getFirstKey()})
    if (first.getType().getDimSize(0) < 1)
      return op.emitOpError() << "needs the number of the first query and of the first key";
  return success(succeeded(verifyRing(op)) && succeeded(verifyFirstKeys(op)) &&
                 succeeded(verifyDropout(op)) && succeeded(verifyBlocksOfRuns(op)));
}

/// Checks that a sum is in 32 bits, or 64.
static LogicalResult verifySum(Operation *op, Value sum) {
  Type element = getElementTypeOrSelf(sum.getType());
  if (element.isF32() || element.isF64())
    return success();
  return op->emitOpError() << "adds up in 32 bits, not in " << element;
}

LogicalResult AttentionStepOp::verify() {
  if (!getOutBefore() != !getLseBefore())
    return emitOpError() << "continues from two values, or from none";
  if (getOutBefore() && getOutBefore().getType() != getOut().getType())
    return emitOpError() << "continues from " << getOutBefore().getType() << " to "
                         << getOut().getType();
  return success(succeeded(verifySum(*this, getOut())) && succeeded(verifyStep(*this)));
}

LogicalResult AttentionStepGradOp::verify() {
  for (Value sum : {getDq(), getDk(), getDv()})
    if (failed(verifySum(*this, sum)))
      return failure();
  if (getDqBefore() && getDqBefore().getType() != getDq().getType())
    return emitOpError() << "adds " << getDqBefore().getType() << " to " << getDq().getType();
  if (!getBias() != !getDbias() && getDbias())
    return emitOpError() << "has no bias whose gradient it could compute";
  return verifyStep(*this);
}

LogicalResult AttentionGradOp::verify() {
  if (getSums() && getRing())
    return emitOpError() << "cannot have sums in a ring, whose ranks exchange the terms";
  return success(succeeded(verifyRing(*this)) && succeeded(verifyFirstKeys(*this)) &&
                 succeeded(verifyDropout(*this)) && succeeded(verifyBlocks(*this)));
}

LogicalResult DocumentStartsOp::verify() {
  auto ids = getIds().getType();
  if (ids.getRank() == 0 ||
      !(ids.getElementType().isInteger(32) || ids.getElementType().isInteger(64)))
    return emitOpError() << "wants ids of 32 or 64 bits along a sequence, not " << ids;
  if (auto after = static_cast<int64_t>(getAfter().value_or(0)); after < 0)
    return emitOpError() << "has documents begin after token " << after
                         << ", and tokens are not negative";
  return success();
}

LogicalResult AttentionOp::verify() {
  int64_t heads = getQ().getType().getDimSize(2), keyHeads = getK().getType().getDimSize(2);
  if (keyHeads == 0 || heads % keyHeads != 0)
    return emitOpError() << "has " << heads << " query heads for " << keyHeads
                         << " key heads, expected a multiple";
  if (getWindow() && (*getWindow() < 1 || !getCausal()))
    return emitOpError() << "has a window of " << *getWindow()
                         << ": a window is at least 1 and needs 'causal'";
  return success(succeeded(verifyRing(*this)) && succeeded(verifyFirstKeys(*this)) &&
                 succeeded(verifyDropout(*this)) && succeeded(verifyBlocks(*this)));
}

AttentionOp AttentionOp::rebuild(OpBuilder &builder, Value k, Value v) {
  return create(builder, getLoc(), (*this)->getResultTypes(), getQ(), k, v, getBias(),
                getFirstKeys(), getFirstHead(), getKey(), getMicro(), getFirst(), getScaleAttr(),
                getCausalAttr(), getWindowAttr(), getZeroHiddenAttr(), getRatioAttr(), getIdAttr(),
                getFullShapeAttr(), getBlocksAttr(), getRingAttr());
}

LogicalResult LogSumExpOp::verify() {
  ArrayRef<int64_t> x = getX().getType().getShape(), parts = getType().getShape();
  if (x.empty() || x.size() != parts.size() || parts.back() < 1)
    return emitOpError() << "wants the parts of the last dimension of " << getX().getType()
                         << " in the last of " << getType();
  if (!par::shardSize(x.back(), parts.back()))
    return emitOpError() << "has no element in the last of " << parts.back() << " parts of "
                         << x.back();
  return success();
}

/// Checks that the rows of `type` consist of pairs.
static LogicalResult verifyPairs(Operation *op, RankedTensorType type) {
  if (type.getRank() == 0 || type.getShape().back() % 2 != 0)
    return op->emitOpError() << "turns pairs of the last dimension, which " << type << " has not";
  return success();
}

LogicalResult RotateHalfOp::verify() { return verifyPairs(*this, getX().getType()); }

/// Checks that angles are not rounded to 16 bits, which no kernel reads.
LogicalResult RotaryOp::verify() {
  Type element = getX().getType().getElementType();
  Type angle = element.isF64() ? element : Float32Type::get(getContext());
  for (Value angles : {getCos(), getSin()})
    if (getElementTypeOrSelf(angles.getType()) != angle)
      return emitOpError() << "turns elements of type " << element << " by angles of type " << angle
                           << ", not " << getElementTypeOrSelf(angles.getType());
  return verifyPairs(*this, getX().getType());
}
