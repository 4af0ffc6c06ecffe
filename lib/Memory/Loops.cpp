//===- Loops.cpp - the memory of loops over micro-batches -------------------------------------===//
//
// One region runs once per micro-batch, with the same memory each time; the sums live as long as the
// loop. Of a loop with an order, a stage's of a pipeline, the regions take turns:
//
//   1. What one region alone uses is dead when the other one runs, whichever micro-batch it is of: one
//      instance is enough, and both regions may use the same memory.
//   2. What the forward pass saves has an instance for each micro-batch in flight. All of it together
//      is a block, and the blocks live as long as the loop; micro-batches take them in turn.
//   3. What is sent may be read until its pass runs again.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "lib/Memory/Planner.h"

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

/// Does every micro-batch in flight have a block for itself?
static bool isEnough(int64_t blocks, ArrayRef<OrderAttr::Slot> slots) {
  std::vector<bool> taken(blocks);
  for (OrderAttr::Slot slot : slots) {
    auto block = taken[slot.microBatch % blocks];
    if (block != slot.isBackward)
      return false;
    block = !slot.isBackward;
  }
  return true;
}

/// How many blocks micro-batches in flight need if number i has block i modulo their number: as many as
/// there are in flight, but for orders in which micro-batches overtake each other.
static int64_t blocksFor(OrderAttr order) {
  constexpr int64_t kMostTries = 64; // then each micro-batch gets one
  std::vector<OrderAttr::Slot> slots = order.getSlots();
  auto microBatches = static_cast<int64_t>(slots.size()) / 2;
  int64_t inFlight = order.getInFlight();
  for (int64_t blocks = inFlight; blocks < std::min(microBatches, inFlight + kMostTries); ++blocks)
    if (isEnough(blocks, slots))
      return blocks;
  return microBatches;
}

LogicalResult Planner::planLoop(AccumulateOp loop) {
  placeMicroBatches(loop, loop.getBody());
  placeSums(loop);
  if (failed(planBlock(loop.getBody().front())))
    return failure();
  if (loop.hasBackward()) {
    placeMicroBatches(loop, loop.getBackward());
    if (failed(placeSaved(loop)) || failed(planBlock(loop.getBackward().front())) ||
        failed(keepSent(loop)))
      return failure();
  }
  return keepSums(loop);
}

void Planner::placeMicroBatches(AccumulateOp loop, Region &region) {
  for (auto [argument, batch] : llvm::zip(region.getArguments(), loop.getBatches())) {
    Place from = plan.places[batch];
    place(argument, from.storage, View::dense(tensorType(argument).getShape(), from.view.offset));
    plan.storages[from.storage].last = std::max(plan.storages[from.storage].last, ends[loop]);
  }
}

void Planner::placeSums(AccumulateOp loop) {
  for (OpResult sum : loop->getResults()) {
    BlockArgument soFar = loop.getSoFar(sum.getResultNumber());
    if (soFar) // dies where the region makes it another one, which may take its place
      place(soFar, newStorage(Space::Arena, sum, bytesOf(tensorType(sum))),
            View::dense(tensorType(sum).getShape()));
    else
      placeNew(sum);
    Storage &storage = plan.storages[plan.places[soFar ? Value(soFar) : Value(sum)].storage];
    storage.last = std::max(storage.last, soFar ? now : ends[loop]);
  }
}

LogicalResult Planner::placeSaved(AccumulateOp loop) {
  if (plan.inFlight.loop)
    return loop.emitOpError() << "is a second loop with an order, in one function";
  plan.inFlight = {loop, blocksFor(loop.getOrderAttr()), 0, 0, plan.number[loop], ends[loop]};
  for (auto [number, saved] : llvm::enumerate(loop.getSaved())) {
    BlockArgument argument = loop.getSavedArgument(number);
    Place from = plan.places[saved];
    if (from.storage < 0) {
      plan.places[argument] = from;
      continue;
    }
    place(argument, from.storage, from.view);
    Storage &storage = plan.storages[from.storage];
    storage.last = std::max(storage.last, ends[loop]);
    if (storage.first <= plan.number[loop])
      continue; // from outside: the same for all micro-batches
    if (storage.space == Space::Pinned)
      return loop.emitOpError() << "keeps saved values in host memory, of which several micro-batches "
                                   "in flight have no instances; offload no activations";
    if (storage.space == Space::Arena)
      storage.space = Space::InFlight;
  }
  return success();
}

LogicalResult Planner::keepSent(AccumulateOp loop) {
  WalkResult result = loop.getBackward().walk([&](pipe::SendOp send) -> WalkResult {
    Storage &storage = plan.storages[plan.places[send.getValue()].storage];
    if (storage.space == Space::InFlight)
      return send.emitOpError() << "sends a saved value back as it is, whose memory the next "
                                   "micro-batch takes before it is awaited";
    storage.first = std::min(storage.first, plan.number[loop]);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Planner::keepSums(AccumulateOp loop) {
  for (OpResult sum : loop->getResults()) {
    BlockArgument soFar = loop.getSoFar(sum.getResultNumber());
    if (!soFar)
      continue;
    int storage = plan.places[soFar].storage;
    for (unsigned other = 0; other < loop->getNumResults(); ++other)
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
