//===- Norms.cpp - where norms are in a program of pipeline stages ------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

unsigned FrozenTrustRatioOp::getStepNumberIndex() {
  return OptimizerInterface::kBeforeStates + OneBitLambOp::getStateNames().size();
}

FloatAttr FrozenTrustRatioOp::getFreeze() {
  return getHyper().getAs<FloatAttr>(OneBitLambOp::getExactNames().front());
}

LogicalResult FrozenTrustRatioOp::verify() {
  for (Hyperparameter each : OneBitLambOp::getHyperparameters())
    if (!isa_and_nonnull<FloatAttr>(getHyper().get(each.name)))
      return emitOpError() << "has no number " << each.name;
  if (getValues().size() <= getStepNumberIndex())
    return emitOpError() << "takes a value, a gradient, " << OneBitLambOp::getStateNames().size()
                         << " states and t, not " << getValues().size() << " operands";
  return success();
}

/// `expand-norms` sums the squares over all stages.
std::optional<Holders> GlobalNormOp::placeResults(ArrayRef<Holders> operands, std::string &) {
  if (llvm::any_of(operands, [](const Holders &each) { return each.partial; }))
    return std::nullopt;
  return Holders();
}

/// Each position has the numbers of its own values, and zeros for the others.
std::optional<Holders> SquareSumOp::placeResults(ArrayRef<Holders> operands, std::string &) {
  Holders common, all{{}, true};
  for (const Holders &each : operands) {
    if (each.partial)
      return std::nullopt;
    common.positions &= each.positions;
    all.positions |=
        each.isEverywhere() ? Holders::only(0).positions : each.positions; // counts once
  }
  return common.isOne() || common.isEverywhere() ? common : all;
}

/// Builds the sums of the stage's own values, with zeros for those of other stages. A value that
/// several stages have counts on the first of them.
SmallVector<Value> SquareSumOp::cutTo(OpBuilder &builder, const StageShare &stage) {
  if (!stage.isPartialOverStages(getSum()))
    return {};
  auto type = cast<RankedTensorType>(getSum().getType());
  auto sized = [&](int64_t size) {
    par::Layout layout = par::Layout::of(type);
    layout.shape = {size};
    return RankedTensorType::get({size}, type.getElementType(),
                                 layout.encoding(builder.getContext()));
  };
  SmallVector<Value> own, parts;
  SmallVector<bool> isOwn;
  for (Value value : getValues()) {
    isOwn.push_back(stage.hasFirst(value));
    if (isOwn.back())
      own.push_back(stage.copyOf(value));
  }
  auto count = static_cast<int64_t>(own.size());
  if (count == 0)
    return {tx::createSplat(builder, builder.getUnknownLoc(), type, 0)};
  auto made = SquareSumOp::create(builder, getLoc(), sized(count), own);
  made->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  int64_t taken = 0;
  for (size_t begin = 0, end = 0; begin < isOwn.size(); begin = end) {
    while (end < isOwn.size() && isOwn[end] == isOwn[begin])
      ++end;
    auto size = static_cast<int64_t>(end - begin);
    Operation *part =
        !isOwn[begin]
            ? tx::createSplat(builder, builder.getUnknownLoc(), sized(size), 0).getDefiningOp()
            : tx::SliceOp::create(builder, getLoc(), sized(size), made.getSum(),
                                  ArrayRef<int64_t>{taken}, ArrayRef<int64_t>{1});
    part->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
    taken += isOwn[begin] ? size : 0;
    parts.push_back(part->getResult(0));
  }
  auto full = tx::ConcatOp::create(builder, getLoc(), type, parts, 0);
  full->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return {full.getResult()};
}
