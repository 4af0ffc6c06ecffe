//===- SentMessages.cpp - see SentMessages.h --------------------------------------------------===//

#include "lib/Overlap/SentMessages.h"
#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;
using namespace partita::overlap;
using rt::Space;

SentMessages::SentMessages(train::AccumulateOp loop) : steps(loop->getNumRegions()), loop(loop) {
  for (train::Slot slot : loop.getOrderAttr().getSlots())
    slots.push_back({*loop.findPass(slot), slot.microBatch});
  if (auto inFlight = loop->getAttrOfType<rt::InFlightAttr>(rt::RtDialect::kInFlight))
    rings = inFlight.getRings();
}

void SentMessages::add(Operation *op, const Accesses &accesses) {
  if (accesses.writes.empty() && !isa<pipe::SendOp>(op))
    return;
  Region *region = op->getParentRegion();
  while (region->getParentOp() != loop.getOperation())
    region = region->getParentOp()->getParentRegion();
  bool isInFlight =
      llvm::any_of(llvm::concat<const Access>(accesses.reads, accesses.writes),
                   [](const Access &access) { return access.space == Space::InFlight; });
  steps[loop.numberOf(*region)].push_back({op, accesses, isInFlight});
}

LogicalResult SentMessages::check() {
  for (auto [time, sender] : llvm::enumerate(slots)) {
    if (llvm::none_of(steps[sender.pass],
                      [](const Step &step) { return isa<pipe::SendOp>(step.op); }))
      continue;
    if (failed(checkBeside(sender, sender)))
      return failure();
    for (Slot other : ArrayRef(slots).drop_front(time + 1)) {
      if (other.pass == sender.pass)
        break;
      if (failed(checkBeside(sender, other)))
        return failure();
    }
  }
  return success();
}

LogicalResult SentMessages::checkBeside(Slot sender, Slot other) {
  bool isKnown = !checked.insert({sender.pass, other.pass}).second;
  std::vector<int64_t> blocks = {sender.pass, other.pass};
  for (const rt::InFlightAttr::Ring &ring : rings) {
    blocks.push_back(sender.microBatch % ring.blocks);
    blocks.push_back(other.microBatch % ring.blocks);
  }
  if (!checkedBlocks.insert(std::move(blocks)).second)
    return success();
  for (const Step &send : steps[sender.pass])
    if (isa<pipe::SendOp>(send.op) && failed(checkSend(send, sender, other, isKnown)))
      return failure();
  return success();
}

LogicalResult SentMessages::checkSend(const Step &send, Slot sender, Slot other,
                                      bool isKnown) const {
  Flight flight{send.op, cast<pipe::SendOp>(send.op).getChannel(),
                resolve(send.accesses, sender.microBatch)};
  ArrayRef<Step> beside = steps[other.pass];
  if (other.pass == sender.pass) // earlier steps are complete
    beside = beside.drop_front(&send - beside.begin() + 1);
  for (const Step &step : beside)
    if ((!isKnown || send.isInFlight || step.isInFlight) &&
        failed(checkPair(step.op, resolve(step.accesses, other.microBatch), flight)))
      return failure();
  return success();
}

Accesses SentMessages::resolve(const Accesses &accesses, int64_t microBatch) const {
  Accesses resolved = accesses;
  for (Access &access : llvm::concat<Access>(resolved.reads, resolved.writes))
    resolve(access, microBatch);
  return resolved;
}

void SentMessages::resolve(Access &access, int64_t microBatch) const {
  if (access.space != Space::InFlight || rings.empty())
    return;
  auto inFlight = loop->getAttrOfType<rt::InFlightAttr>(rt::RtDialect::kInFlight);
  auto [number, offset] = inFlight.locate(access.begin);
  const rt::InFlightAttr::Ring &ring = rings[number];
  int64_t begin = ring.offset + microBatch % ring.blocks * ring.bytes + offset;
  access.space = ring.isPinned ? Space::Pinned : Space::Arena;
  access.end += begin - access.begin;
  access.begin = begin;
}
