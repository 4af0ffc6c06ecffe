//===- LastValues.cpp - what passes of train.accumulate compute in their last slot ---------------===//

#include "dialects/Train/RunningSums.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

static YieldOp endOf(Region &region) { return cast<YieldOp>(region.front().getTerminator()); }

/// Returns the position of the pass's last slot in the order, and its micro-batch.
static std::pair<unsigned, int64_t> lastOf(OrderAttr order, PassName pass) {
  SmallVector<OrderAttr::Run> runs = order.getRuns();
  int64_t end = 0; // of the run
  for (const OrderAttr::Run &run : runs)
    end += run.slotCount();
  for (const OrderAttr::Run &run : llvm::reverse(runs)) {
    int64_t behind = end; // the part
    for (const OrderAttr::Part &part : llvm::reverse(run.parts)) {
      for (auto [number, slot] : llvm::enumerate(llvm::reverse(part.slots)))
        if (slot.pass() == pass)
          return {behind - number - 1,
                  slot.microBatch + (run.times - 1) * run.step + part.times - 1};
      behind -= part.times * part.slots.size();
    }
    end -= run.slotCount();
  }
  llvm_unreachable("the verifier wants slots for each pass");
}

unsigned AccumulateOp::getLastSlot(unsigned pass) {
  return lastOf(getOrderAttr(), getPass(pass)).first;
}

int64_t AccumulateOp::getLastMicroBatch(unsigned pass) {
  return lastOf(getOrderAttr(), getPass(pass)).second;
}

SmallVector<unsigned> AccumulateOp::getPassesByEnd() {
  SmallVector<std::pair<unsigned, unsigned>> ends;
  for (unsigned pass = 0; pass < (*this)->getNumRegions(); ++pass)
    ends.push_back({getLastSlot(pass), pass});
  llvm::sort(ends);
  return llvm::map_to_vector(ends, [](auto end) { return end.second; });
}

Value AccumulateOp::getHandedOut(OpResult result) {
  unsigned number = result.getResultNumber(), sums = getSums().size();
  if (number < sums)
    return {};
  number -= sums;
  for (Region &region : (*this)->getRegions()) {
    OperandRange last = endOf(region).getLast();
    if (number < last.size())
      return last[number];
    number -= last.size();
  }
  llvm_unreachable("no such last value");
}

OpResult AccumulateOp::getHandingOut(OpOperand &yielded) {
  auto yield = cast<YieldOp>(yielded.getOwner());
  unsigned first = yield.getValues().size() + yield.getSaved().size(),
           number = yielded.getOperandNumber();
  if (number < first)
    return {};
  number -= first;
  for (Region &earlier : (*this)->getRegions().take_front(numberOf(*yield->getParentRegion())))
    number += endOf(earlier).getLast().size();
  return cast<OpResult>(getLast()[number]);
}

AccumulateOp AccumulateOp::withLast(OpBuilder &builder, ArrayRef<SmallVector<Value>> last) {
  SmallVector<Type> types;
  for (const SmallVector<Value> &ofPass : last)
    for (Value value : ofPass)
      types.push_back(value.getType());
  auto made = create(builder, getLoc(), getSums().getTypes(), getBatches(),
                     ArrayRef(getPasses()).drop_front(), types);
  made->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  if (std::optional<ArrayRef<int64_t>> grown = getGrown())
    made.setGrown(*grown);
  if (getOrderAttr())
    made.setOrderAttr(getOrderAttr());
  for (auto [before, after] : llvm::zip((*this)->getRegions(), made->getRegions()))
    after.takeBody(before);
  for (auto [region, values] : llvm::zip(made->getRegions(), last))
    endOf(region).getLastMutable().assign(values);
  for (auto [before, after] : llvm::zip(getSums(), made.getSums()))
    before.replaceAllUsesWith(after);
  return made;
}

/// Checks that ops in every slot do not use results of ops that only run in the last one.
static LogicalResult verifyUsers(Operation *op) {
  for (OpOperand &use : op->getUses()) {
    auto yield = dyn_cast<YieldOp>(use.getOwner());
    bool handsOut =
        yield && use.getOperandNumber() >= yield.getValues().size() + yield.getSaved().size();
    if (!handsOut && !use.getOwner()->hasAttr(TrainDialect::kLast))
      return op->emitOpError() << "runs in the last slot of its pass only, but '"
                               << use.getOwner()->getName().getStringRef()
                               << "', which uses it, in every one";
  }
  return success();
}

LogicalResult train::verifyLast(AccumulateOp op) {
  SmallVector<Type> types;
  for (Region &region : op->getRegions()) {
    llvm::append_range(types, endOf(region).getLast().getTypes());
    for (Operation &inner : region.front())
      if (inner.hasAttr(TrainDialect::kLast) && failed(verifyUsers(&inner)))
        return failure();
  }
  if (!llvm::equal(types, op.getLast().getTypes()))
    return op.emitOpError() << "has last values of types " << op.getLast().getTypes()
                            << ", and its regions yield " << types;
  if (!types.empty() && !op.getOrder())
    return op.emitOpError() << "has last values, but no order that says when a pass runs last";
  return success();
}

LogicalResult train::verifyLastAttribute(Operation *op, Attribute value) {
  auto loop = dyn_cast_or_null<AccumulateOp>(op->getParentOp());
  if (isa<UnitAttr>(value) && loop && loop.getOrder() && !op->hasTrait<OpTrait::IsTerminator>())
    return success();
  return op->emitError() << TrainDialect::kLast << " is " << value
                         << "; an op of a pass of a loop with an order has it, as a unit";
}
