//===- LoopCheck.cpp - loops over micro-batches, and those whose passes take turns --------------===//

#include "lib/Memory/Check/FunctionCheck.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory::check;
using rt::RtDialect;
using rt::Space;

LogicalResult FunctionCheck::checkLoop(train::AccumulateOp loop) {
  for (OpResult sum : loop.getSums()) // they begin as zeros
    if (failed(write(spots.of(sum).content, loop)))
      return failure();
  for (OpResult sum : loop.getSums())
    if (failed(read(sum, loop)))
      return failure();
  if (loop.getOrder())
    return checkOrder(loop);
  for (int64_t run = 0; run < std::min<int64_t>(loop.getCount(), 2); ++run)
    if (failed(checkPass(loop, loop.getBody(), /*isLastSlot=*/false)))
      return failure();
  return success();
}

/// Runs each pass once, in program order, and records its accesses; then the last slots. Other passes run between a pass's
/// slots, so values from outside have to be there in the second run, too.
LogicalResult FunctionCheck::checkOrder(train::AccumulateOp loop) {
  auto memory = loop->getAttrOfType<rt::InFlightAttr>(RtDialect::kInFlight);
  for (const rt::InFlightAttr::Ring &ring : memory.getRings()) {
    rings.push_back(Bytes::run(ring.isPinned ? Space::Pinned : Space::Arena, ring.offset,
                               ring.blocks * ring.bytes));
    spots.contents.scribble(rings.back(), loop, spots.numberOf(loop));
  }
  traces.assign(loop->getNumRegions(), {});
  for (Region &region : loop->getRegions()) {
    trace = &traces[loop.numberOf(region)];
    if (failed(checkPass(loop, region, /*isLastSlot=*/false)))
      return failure();
    trace = nullptr;
  }
  for (unsigned pass : loop.getPassesByEnd())
    if (failed(checkPass(loop, loop->getRegion(pass), /*isLastSlot=*/true)))
      return failure();
  if (failed(checkSlots(loop)))
    return failure();
  rings.clear();
  return success();
}

LogicalResult FunctionCheck::checkPass(train::AccumulateOp loop, Region &region, bool isLastSlot) {
  PassTrace unused;
  if (loop.getOrder())
    putSaved(loop, region, trace ? *trace : unused);
  for (Operation &op : region.front()) {
    if (auto yield = dyn_cast<train::YieldOp>(op))
      return checkYield(yield, isLastSlot);
    bool isLast = op.hasAttr(train::TrainDialect::kLast);
    if (isLast && !isLastSlot)
      continue;
    isInLastSlot = isLast;
    if (failed(check(&op)))
      return failure();
    isInLastSlot = false;
  }
  return success();
}

void FunctionCheck::putSaved(train::AccumulateOp loop, Region &region, PassTrace &trace) {
  llvm::SmallSetVector<int, 16> contents;
  for (BlockArgument argument : region.getArguments()) {
    const Spot &spot = spots.of(argument);
    if (argument.use_empty() || spot.content < 0)
      continue;
    Block *home = spots.contents[spot.content].home;
    if (!home || home->getParentOp() != loop || home == &region.front())
      continue; // the same for all micro-batches
    contents.insert(spot.content);
    trace.reads.push_back({spot.content, spot.bytes, *argument.getUsers().begin()});
  }
  for (int content : contents)
    spots.contents.write(content, spots.contents[content].maker,
                         spots.numberOf(&region.front().front()) - 1);
}

LogicalResult FunctionCheck::checkYield(train::YieldOp yield, bool isLastSlot) {
  auto loop = cast<train::AccumulateOp>(yield->getParentOp());
  for (OpOperand &part : yield->getOpOperands()) {
    std::optional<unsigned> number = loop.getSumOf(part);
    if (!number)
      continue;
    OpResult sum = loop.getSums()[*number];
    const Spot &from = spots.of(part.get()), &to = spots.of(sum);
    bool isGrown = bool(loop.getSoFar(*number));
    if (isGrown && from.at == to.at) {
      // In the last slot, its reduction may already work there.
      std::optional<Contents::Loss> loss = spots.contents.findLoss(from.content, from.bytes);
      if (loss && isLastSlot && loss->by->hasAttr(train::TrainDialect::kLast))
        continue;
      if (failed(read(part.get(), yield)) || failed(write(to.content, yield)))
        return failure();
      continue;
    }
    if (!isGrown && analysis::commonByte(from.bytes, to.bytes))
      return yield.emitError() << "adds a value at " << from.at << " to sum number " << *number
                               << " at " << to.at << ", which share bytes";
    if (failed(read(part.get(), yield)) || (!isGrown && failed(read(sum, yield))) ||
        failed(write(to.content, yield)))
      return failure();
  }
  llvm::SmallSetVector<int, 16> saves;
  for (Value saved : yield.getSaved()) {
    const Spot &spot = spots.of(saved);
    if (failed(read(saved, yield)))
      return failure();
    if (spot.content >= 0 && spots.contents[spot.content].home == yield->getBlock())
      saves.insert(spot.content);
  }
  if (trace)
    trace->saves.assign(saves.begin(), saves.end());
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Slots
//===------------------------------------------------------------------------------------------===//

namespace {

/// Runs the slots of an order one after another: is a saved value still in its micro-batch's block when a later pass reads
/// it? All accesses of a pass count as one, so that long schedules are checked quickly.
class SlotsCheck {
public:
  SlotsCheck(train::AccumulateOp loop, const Contents &contents, ArrayRef<PassTrace> traces)
      : loop(loop), contents(contents), traces(traces),
        inFlight(loop->getAttrOfType<rt::InFlightAttr>(RtDialect::kInFlight)) {
    for (train::Slot slot : loop.getOrderAttr().getSlots())
      slots.push_back({*loop.findPass(slot), slot.microBatch});
    rings = inFlight.getRings();
    for (const PassTrace &trace : traces)
      for (int content : trace.saves)
        isKeptIn[static_cast<size_t>(contents[content].bytes.space)] = true;
    for (const PassTrace &trace : traces) {
      writes.push_back(joined(trace.writes));
      lastWrites.push_back(joined(trace.lastWrites));
      lastSlots.push_back(loop.getLastSlot(lastSlots.size()));
    }
  }

  LogicalResult run() {
    for (auto [time, slot] : llvm::enumerate(slots))
      for (const PassTrace::Read &read : traces[slot.pass].reads)
        lastReads[{read.content, slot.microBatch}] = static_cast<int>(time);
    for (auto [time, slot] : llvm::enumerate(slots))
      if (failed(runSlot(static_cast<int>(time), slot)))
        return failure();
    return success();
  }

private:
  struct Slot {
    unsigned pass;
    int64_t microBatch;
  };

  LogicalResult runSlot(int time, Slot slot) {
    for (const PassTrace::Read &read : traces[slot.pass].reads)
      if (failed(checkRead(read, time, slot)))
        return failure();
    bool isLast = lastSlots[slot.pass] == static_cast<unsigned>(time);
    for (const Bytes &bytes : writes[slot.pass])
      memory.scribble(inBlock(bytes, slot.microBatch), loop, time);
    for (const Bytes &bytes : isLast ? ArrayRef<Bytes>(lastWrites[slot.pass]) : ArrayRef<Bytes>())
      memory.scribble(inBlock(bytes, slot.microBatch), loop, time);
    for (int content : traces[slot.pass].saves) {
      auto lastRead = lastReads.find({content, slot.microBatch});
      if (lastRead == lastReads.end())
        continue;
      Content instance(inBlock(contents[content].bytes, slot.microBatch), contents[content].maker);
      instance.lastRead = lastRead->second;
      memory.write(instances[{content, slot.microBatch}] = memory.add(std::move(instance)), loop,
                   time);
    }
    return success();
  }

  LogicalResult checkRead(const PassTrace::Read &read, int time, Slot slot) {
    auto instance = instances.find({read.content, slot.microBatch});
    if (instance == instances.end())
      return success(); // the order's verifier requires the pass that saves it first
    Bytes bytes = inBlock(read.bytes, slot.microBatch);
    std::optional<Contents::Loss> loss = memory.findLoss(instance->second, bytes);
    if (!loss)
      return success();
    const Content &content = contents[read.content];
    InFlightDiagnostic error = read.user->emitError()
                               << "needs the value that '"
                               << content.maker->getName().getStringRef()
                               << "' saves for micro-batch " << slot.microBatch << " at byte "
                               << loss->byte << " of the " << textOf(bytes.space) << ", where "
                               << textOf(slots[loss->when]) << " has written since";
    error.attachNote(content.maker->getLoc()) << "it is made here";
    if (content.bytes.space == Space::InFlight) {
      unsigned number = inFlight.locate(content.bytes.begin).first;
      error.attachNote(loop.getLoc())
          << "ring " << number << " has " << rings[number].blocks << " blocks";
    }
    return error;
  }

  std::string textOf(Slot slot) {
    return loop.getPass(slot.pass).text() + " of micro-batch " + std::to_string(slot.microBatch);
  }
  static std::string textOf(Space space) { return memory::check::textOf(space); }

  /// Moves bytes in flight to the micro-batch's block.
  Bytes inBlock(const Bytes &bytes, int64_t microBatch) const {
    if (bytes.space != Space::InFlight)
      return bytes;
    Bytes moved = bytes;
    auto [number, offset] = inFlight.locate(bytes.begin);
    const rt::InFlightAttr::Ring &ring = rings[number];
    moved.space = ring.isPinned ? Space::Pinned : Space::Arena;
    moved.begin = ring.offset + microBatch % ring.blocks * ring.bytes + offset;
    moved.end = moved.begin + (bytes.end - bytes.begin);
    return moved;
  }

  /// Joins dense runs that touch within one block, and drops those in spaces where no saved value
  /// is.
  std::vector<Bytes> joined(ArrayRef<Bytes> all) const {
    std::vector<Bytes> dense, result;
    for (const Bytes &bytes : all) {
      if (!isKeptIn[static_cast<size_t>(bytes.space)] || bytes.begin == bytes.end)
        continue;
      (bytes.view.isDense() ? dense : result).push_back(bytes);
    }
    llvm::sort(dense, [](const Bytes &a, const Bytes &b) {
      return std::make_pair(a.space, a.begin) < std::make_pair(b.space, b.begin);
    });
    size_t first = result.size();
    for (const Bytes &bytes : dense) {
      Bytes *last = result.size() > first ? &result.back() : nullptr;
      bool touches = last && last->space == bytes.space && bytes.begin <= last->end &&
                     (bytes.space != Space::InFlight ||
                      inFlight.locate(bytes.begin).first == inFlight.locate(last->begin).first);
      if (touches)
        *last = Bytes::run(bytes.space, last->begin, std::max(last->end, bytes.end) - last->begin);
      else
        result.push_back(Bytes::run(bytes.space, bytes.begin, bytes.end - bytes.begin));
    }
    return result;
  }

  train::AccumulateOp loop;
  const Contents &contents;
  ArrayRef<PassTrace> traces;
  rt::InFlightAttr inFlight;
  std::vector<Slot> slots;
  SmallVector<rt::InFlightAttr::Ring> rings;
  std::array<bool, 8> isKeptIn{};
  std::vector<std::vector<Bytes>> writes, lastWrites; ///< by pass
  std::vector<unsigned> lastSlots;                    ///< by pass
  Contents memory;
  llvm::DenseMap<std::pair<int, int64_t>, int> instances, lastReads; ///< by content and micro-batch
};

} // namespace

LogicalResult FunctionCheck::checkSlots(train::AccumulateOp loop) {
  return SlotsCheck(loop, spots.contents, traces).run();
}
