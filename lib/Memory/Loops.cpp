//===- Loops.cpp - memory of loops over micro-batches -----------------------------------------===//
//
// A loop with one region runs it once per micro-batch, with the same memory each time; the sums
// live as long as the loop. In a loop with an order (a pipeline stage's) the regions alternate:
//
//   1. What only one region uses is dead while another one runs, for any micro-batch: one instance
//      suffices, and all regions may use the same memory.
//   2. What a region saves has an instance for each micro-batch in flight, from the slot that makes
//      it to the last slot that reads it. Values with equal lives form a block; the blocks form a
//      ring, which lives as long as the loop, and micro-batches take them in turn. Offloaded
//      activations have rings in pinned memory.
//   3. What is sent may be read until its pass runs again.
//   4. What starts in a pass's last slot (`train.last`) lives until its wait after the loop: in the
//      rest of the pass, and in passes that end later. Passes that end earlier may use its memory.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "lib/Memory/Planner.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace partita;
using namespace partita::memory;
using rt::Space;
using rt::View;
using train::AccumulateOp;
using train::OrderAttr;

AccumulateOp memory::orderedLoopOf(Operation *op) {
  auto loop = op->getParentOfType<AccumulateOp>();
  return loop && loop.getOrder() ? loop : AccumulateOp();
}

namespace {

/// The slots during which a micro-batch has its block: [begin, end).
struct Life {
  int64_t begin = 0, end = 0;
  bool operator<(const Life &other) const {
    return std::tie(begin, end) < std::tie(other.begin, other.end);
  }
};

/// The slots of an order, by pass and micro-batch.
class Slots {
public:
  Slots(AccumulateOp loop) : slots(loop.getOrderAttr().getSlots()) {
    for (auto [time, slot] : llvm::enumerate(slots)) {
      auto &times = at.try_emplace(*loop.findPass(slot.pass()), loop.getCount()).first->second;
      times[slot.microBatch] = static_cast<int64_t>(time);
    }
  }

  int64_t timeOf(unsigned pass, int64_t microBatch) const { return at.at(pass)[microBatch]; }
  /// Returns when the pass runs next, for any micro-batch; the end if it does not.
  int64_t nextOf(unsigned pass, int64_t microBatch) const {
    auto time = static_cast<size_t>(timeOf(pass, microBatch));
    auto next = std::find_if(slots.begin() + time + 1, slots.end(),
                             [&](train::Slot slot) { return slot.pass() == slots[time].pass(); });
    return next - slots.begin();
  }

private:
  std::vector<train::Slot> slots;
  std::map<unsigned, std::vector<int64_t>> at;
};

} // namespace

/// Returns true if each block is free when a micro-batch needs it, with micro-batches assigned to
/// blocks round-robin.
static bool isEnough(int64_t blocks, ArrayRef<Life> lives) {
  SmallVector<std::pair<Life, int64_t>> order; // with the block
  for (auto [microBatch, life] : llvm::enumerate(lives))
    order.push_back({life, static_cast<int64_t>(microBatch) % blocks});
  llvm::sort(order);
  std::vector<int64_t> free(blocks, 0); // since when
  for (auto [life, block] : order)
    if (life.begin < std::exchange(free[block], life.end))
      return false;
  return true;
}

/// Returns how many blocks micro-batches need: as many as are in flight, or more in orders in which
/// micro-batches overtake each other.
static int64_t blocksFor(ArrayRef<Life> lives) {
  constexpr int64_t kMostTries = 64; // beyond this, one block per micro-batch
  int64_t least = 1;
  for (const Life &one : lives)
    least = std::max<int64_t>(least, llvm::count_if(lives, [&](const Life &other) {
                                return other.begin <= one.begin && one.begin < other.end;
                              }));
  auto most = static_cast<int64_t>(lives.size());
  for (int64_t blocks = least; blocks < std::min(most, least + kMostTries); ++blocks)
    if (isEnough(blocks, lives))
      return blocks;
  return most;
}

LogicalResult Planner::planLoop(AccumulateOp loop) {
  placeSums(loop);
  if (loop.getOrder()) {
    if (plan.inFlight.loop)
      return loop.emitOpError() << "is a second loop with an order, in one function";
    plan.inFlight = {loop, {}, plan.number[loop], ends[loop]};
  }
  for (Region &region : loop->getRegions()) {
    placeMicroBatches(loop, region);
    findSaved(loop, region);
    if (failed(planBlock(region.front())))
      return failure();
    keepSaved(loop, region);
    keepSent(loop, region);
  }
  makeRings(loop);
  placeLast(loop);
  return keepSums(loop);
}

void Planner::placeLast(AccumulateOp loop) {
  for (OpResult result : loop.getLast()) {
    Value inside = loop.getHandedOut(result);
    if (auto found = plan.places.find(inside); found == plan.places.end())
      continue; // a token
    else if (Place from = found->second; from.storage < 0)
      plan.places[result] = from;
    else
      place(result, from.storage, from.view);
  }
  if (loop.getLast().empty())
    return;
  auto beginOf = [&](unsigned pass) { return plan.number[&loop->getRegion(pass).front().front()]; };
  auto endOf = [&](unsigned pass) {
    return plan.number[loop->getRegion(pass).front().getTerminator()];
  };
  auto outlives = [&](const Storage &storage, unsigned pass) {
    return storage.space != Space::InFlight && storage.first >= beginOf(pass) &&
           storage.first <= endOf(pass) && storage.last > endOf(pass);
  };
  for (unsigned pass = 0; pass < loop->getNumRegions(); ++pass)
    for (unsigned later = 0; later < pass;
         ++later) // before the pass in the program, but ends later
      if (loop.getLastSlot(later) > loop.getLastSlot(pass))
        for (Storage &storage : plan.storages)
          if (outlives(storage, pass))
            storage.first = std::min(storage.first, beginOf(later));
}

void Planner::placeMicroBatches(AccumulateOp loop, Region &region) {
  for (auto [argument, batch] : llvm::zip(region.getArguments(), loop.getBatches())) {
    Place from = plan.places[batch];
    place(argument, from.storage, View::dense(tensorType(argument).getShape(), from.view.offset));
    plan.storages[from.storage].last = std::max(plan.storages[from.storage].last, ends[loop]);
  }
}

void Planner::placeSums(AccumulateOp loop) {
  for (OpResult sum : loop.getSums()) {
    BlockArgument soFar = loop.getSoFar(sum.getResultNumber());
    if (soFar) // dies where the region adds its part, in place if possible
      place(soFar, newStorage(Space::Arena, sum, bytesOf(tensorType(sum))),
            View::dense(tensorType(sum).getShape()));
    else
      placeNew(sum);
    Storage &storage = plan.storages[plan.places[soFar ? Value(soFar) : Value(sum)].storage];
    storage.last = std::max(storage.last, soFar ? now : ends[loop]);
  }
}

void Planner::findSaved(AccumulateOp loop, Region &region) {
  unsigned pass = loop.numberOf(region);
  SmallVector<Value> saved = loop.getAllSaved();
  for (unsigned number = 0, count = loop.countSavedBefore(pass); number < count; ++number) {
    BlockArgument argument = loop.getSavedArgument(number, pass);
    Place from = plan.places[saved[number]];
    if (from.storage < 0)
      plan.places[argument] = from;
    else
      place(argument, from.storage, from.view);
    if (auto keep = keeps.find(from.storage); keep != keeps.end() && !argument.use_empty())
      keep->second.readers.set(pass);
  }
}

void Planner::keepSaved(AccumulateOp loop, Region &region) {
  unsigned pass = loop.numberOf(region);
  for (Value saved : loop.getSaved(pass)) {
    int number = plan.places[saved].storage;
    if (number < 0)
      continue;
    Storage &storage = plan.storages[number];
    storage.last = std::max(storage.last, ends[loop]);
    if (storage.first <= plan.number[loop])
      continue; // from outside, the same for all micro-batches
    if (storage.space != Space::Arena && storage.space != Space::Pinned)
      continue; // no memory of its own, or saved by an earlier pass, too
    llvm::BitVector none(loop->getNumRegions());
    keeps.insert({number, {storage.space, pass, none, none}});
    storage.space = Space::InFlight;
  }
}

void Planner::keepSent(AccumulateOp loop, Region &region) {
  unsigned pass = loop.numberOf(region);
  region.walk([&](pipe::SendOp send) {
    int number = plan.places[send.getValue()].storage;
    if (auto keep = keeps.find(number); keep != keeps.end()) {
      if (keep->second.maker != pass) // the maker awaits the send before it overwrites it
        keep->second.sends.set(pass);
    } else if (pass > 0) {
      Storage &storage = plan.storages[number];
      storage.first = std::min(storage.first, plan.number[loop]);
    }
  });
}

void Planner::makeRings(AccumulateOp loop) {
  if (keeps.empty())
    return;
  Slots slots(loop);
  std::map<std::pair<Space, std::vector<Life>>, unsigned> rings;
  for (auto &[number, keep] : keeps) {
    std::vector<Life> lives;
    for (int64_t i = 0; i < loop.getCount(); ++i) {
      Life life{slots.timeOf(keep.maker, i), slots.timeOf(keep.maker, i)};
      for (unsigned reader : keep.readers.set_bits())
        life.end = std::max(life.end, slots.timeOf(reader, i));
      for (unsigned sender : keep.sends.set_bits())
        life.end = std::max(life.end, slots.nextOf(sender, i));
      lives.push_back(life);
    }
    auto [ring, isNew] = rings.try_emplace({keep.space, lives}, rings.size());
    if (isNew)
      plan.inFlight.rings.push_back({keep.space, blocksFor(lives)});
    plan.storages[number].ring = ring->second;
  }
}

LogicalResult Planner::keepSums(AccumulateOp loop) {
  for (OpResult sum : loop.getSums()) {
    BlockArgument soFar = loop.getSoFar(sum.getResultNumber());
    if (!soFar)
      continue;
    int storage = plan.places[soFar].storage;
    for (unsigned other = 0; other < loop.getSums().size(); ++other)
      if (other != sum.getResultNumber() &&
          plan.places.lookup(loop.getPart(other).get()).storage == storage)
        return loop.emitOpError() << "yields as sum number " << other
                                  << " what stands in the memory of number "
                                  << sum.getResultNumber();
    place(sum, storage, View::dense(tensorType(sum).getShape()));
    plan.storages[storage].last = std::max(plan.storages[storage].last, ends[loop]);
  }
  return success();
}
