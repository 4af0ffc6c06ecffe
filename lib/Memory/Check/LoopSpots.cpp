//===- LoopSpots.cpp - where a loop over micro-batches has its values ---------------------------===//

#include "lib/Memory/Check/Spots.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory::check;
using rt::AtAttr;
using rt::RtDialect;
using rt::Space;

LogicalResult Spots::noteLoop(train::AccumulateOp loop) {
  for (Value batch : loop.getBatches())
    want(batch, loop);
  size_t tensors = llvm::count_if(loop->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  FailureOr<SmallVector<AtAttr>> places = placesOf(loop, tensors, "results");
  if (failed(places) || failed(noteRings(loop)))
    return failure();
  for (OpResult sum : loop.getSums()) {
    AtAttr at = (*places)[sum.getResultNumber()];
    FailureOr<Spot> spot = spotAt(loop, at, sum.getType());
    if (failed(spot))
      return failure();
    if (at.getSpace() != Space::Arena || !at.getStrides().empty())
      return loop.emitOpError() << "has sum number " << sum.getResultNumber() << " at " << at
                                << "; it is added up in the arena, dense";
    spot->content = addContent(*spot, loop);
    if (!loop.getSoFar(sum.getResultNumber())) // each micro-batch adds to it
      contents[spot->content].lastRead = endOf(loop);
    setSpot(sum, std::move(*spot));
  }
  inFlight = loop->getAttrOfType<rt::InFlightAttr>(RtDialect::kInFlight);
  for (Region &region : loop->getRegions())
    if (failed(noteArguments(loop, region)) || failed(note(region.front())))
      return failure();
  inFlight = {};
  return noteLast(loop, ArrayRef(*places).drop_front(loop.getSums().size()));
}

LogicalResult Spots::noteRings(train::AccumulateOp loop) {
  auto memory = loop->getAttrOfType<rt::InFlightAttr>(RtDialect::kInFlight);
  if (!memory && !loop.getOrder())
    return success();
  if (!memory)
    return loop.emitOpError() << "has no " << RtDialect::kInFlight << "; run plan-memory first";
  if (!loop.getOrder())
    return loop.emitOpError() << "has " << RtDialect::kInFlight
                              << ", and no order in which its micro-batches could be in flight";
  SmallVector<Bytes> known;
  for (auto [number, ring] : llvm::enumerate(memory.getRings())) {
    Space space = ring.isPinned ? Space::Pinned : Space::Arena;
    int64_t size = 0, end = 0, limit = sizeOf(limits, space);
    if (llvm::MulOverflow(ring.blocks, ring.bytes, size) ||
        llvm::AddOverflow(ring.offset, size, end) || end > limit)
      return loop.emitOpError() << "has ring " << number << " of " << memory << " end after byte "
                                << limit << ", the end of the " << textOf(space);
    Bytes bytes = Bytes::run(space, ring.offset, size);
    for (auto [other, before] : llvm::enumerate(known))
      if (bytes.meets(before))
        return loop.emitOpError() << "has rings " << other << " and " << number << " of " << memory
                                  << " share byte " << std::max(bytes.begin, before.begin)
                                  << " of the " << textOf(space);
    known.push_back(bytes);
    sizeOf(used, space) = std::max(sizeOf(used, space), end);
  }
  return success();
}

LogicalResult Spots::noteArguments(train::AccumulateOp loop, Region &region) {
  for (BlockArgument argument : region.getArguments()) {
    Spot spot;
    Value earlier = train::forwardOf(argument);
    auto first = dyn_cast<BlockArgument>(earlier);
    bool isOfLoop = first && first.getOwner()->getParentOp() == loop;
    if (Value batch = isOfLoop ? loop.getBatchOf(first) : Value()) {
      spot = of(batch);
      spot.isMicroBatch = true;
      spot.view = rt::View::dense(cast<RankedTensorType>(argument.getType()).getShape());
    } else if (Value sum = isOfLoop ? loop.getSumOf(first) : Value()) {
      spot = of(sum);
    } else {
      spot = of(earlier);
    }
    if (spot.at && spot.at.getSpace() == Space::None && !argument.use_empty())
      return loop.emitOpError() << "saves a value whose place is #rt.at<none>";
    setSpot(argument, std::move(spot));
  }
  return success();
}

LogicalResult Spots::noteYield(train::YieldOp yield) {
  auto loop = cast<train::AccumulateOp>(yield->getParentOp());
  for (OpOperand &part : yield->getOpOperands())
    if (std::optional<unsigned> sum = loop.getSumOf(part))
      want(of(loop.getSums()[*sum]).content, yield);
  return success();
}

LogicalResult Spots::noteLast(train::AccumulateOp loop, ArrayRef<AtAttr> places) {
  unsigned number = 0;
  for (OpResult result : loop.getLast()) {
    Value inside = loop.getHandedOut(result);
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    AtAttr at = places[number++];
    Spot spot = of(inside);
    if (at != spot.at)
      return loop.emitOpError() << "has result number " << result.getResultNumber() << " at " << at
                                << ", and the pass leaves it at " << spot.at;
    want(spot.content, loop->getBlock()->getTerminator());
    setSpot(result, std::move(spot));
  }
  return success();
}
