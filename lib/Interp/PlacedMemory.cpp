//===- PlacedMemory.cpp - the planned memory of one rank --------------------------------------===//

#include "lib/Interp/PlacedMemory.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::interp;
using rt::RtDialect;

/// The places in an op's `rt.buffers`, one per tensor result; of a collective or a return, one per
/// tensor operand.
static ArrayRef<Attribute> buffersOf(Operation *op) {
  auto buffers = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  return buffers ? buffers.getValue() : ArrayRef<Attribute>();
}

std::unique_ptr<PlacedMemory> PlacedMemory::create(ModuleOp module) {
  auto arena = module->getAttrOfType<IntegerAttr>(RtDialect::kArenaBytes);
  auto persistent = module->getAttrOfType<IntegerAttr>(RtDialect::kPersistentBytes);
  if (!arena || !persistent || arena.getInt() < 0 || persistent.getInt() < 0)
    return nullptr;
  auto memory = std::make_unique<PlacedMemory>();
  memory->unit = 4;
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !buffersOf(op).empty())
        memory->unit = std::min(memory->unit, rt::elementBytes(tensor.getElementType()));
  });
  auto forward = module->getAttrOfType<IntegerAttr>(RtDialect::kForwardArenaBytes);
  memory->arena.resize(std::max(arena.getInt(), forward ? forward.getInt() : 0) / memory->unit);
  memory->persistent.resize(persistent.getInt() / memory->unit);
  for (auto [name, space] : {std::pair(RtDialect::kHostBytes, &memory->host),
                             {RtDialect::kPinnedBytes, &memory->pinned}})
    if (auto bytes = module->getAttrOfType<IntegerAttr>(name); bytes && bytes.getInt() > 0)
      space->resize(bytes.getInt() / memory->unit);
  return memory;
}

PlacedMemory::Memory *PlacedMemory::memoryOf(rt::Space space) {
  switch (space) {
  case rt::Space::Arena:
    return &arena;
  case rt::Space::Persistent:
    return &persistent;
  case rt::Space::Host:
    return &host;
  case rt::Space::Pinned:
    return &pinned;
  default:
    return nullptr;
  }
}

//===------------------------------------------------------------------------------------------===//
// Places
//===------------------------------------------------------------------------------------------===//

/// Where the micro-batch's block of a ring is, of an offset as #rt.in_flight counts it; where nothing is
/// in flight, outside of the arena.
std::pair<rt::Space, int64_t> PlacedMemory::locateInFlight(int64_t offset) const {
  auto [memory, microBatch] = inFlight;
  if (!memory || memory.getRings().empty())
    return {rt::Space::Arena, -1};
  auto [number, inBlock] = memory.locate(offset);
  rt::InFlightAttr::Ring ring = memory.getRings()[number];
  return {ring.isPinned ? rt::Space::Pinned : rt::Space::Arena,
          ring.offset + microBatch % ring.blocks * ring.bytes + inBlock};
}

FailureOr<PlacedMemory::Place> PlacedMemory::placeOf(Operation *op, Attribute attribute,
                                                     Type type) {
  Place place;
  auto at = dyn_cast_or_null<rt::AtAttr>(attribute);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!at || !tensor)
    return place;
  rt::Space space = at.getSpace();
  int64_t offset = at.getOffset();
  if (space == rt::Space::InFlight)
    std::tie(space, offset) = locateInFlight(offset);
  place.space = memoryOf(space);
  if (!place.space)
    return place;
  place.width = rt::elementBytes(tensor.getElementType()) / unit;
  SmallVector<int64_t> strides = rowMajorStrides(tensor.getShape());
  if (!at.getStrides().empty())
    strides.assign(at.getStrides().begin(), at.getStrides().end());
  if (static_cast<int64_t>(strides.size()) != tensor.getRank() || offset % unit != 0)
    return op->emitError() << "the place " << at << " does not fit " << type;
  bool inside = true;
  int64_t end = static_cast<int64_t>(place.space->size());
  walk(tensor.getShape(), strides, 0, [&](int64_t, int64_t element) {
    place.first.push_back(offset / unit + element * place.width);
    inside &= place.first.back() >= 0 && place.first.back() + place.width <= end;
  });
  if (inside)
    return place;
  return op->emitError() << "the place " << at << " of a " << type << " lies outside the "
                         << end * unit << " bytes that the plan announces";
}

/// Writes the tensor; without one, what no value is equal to.
void PlacedMemory::fill(Operation *op, const Place &place, const Tensor *tensor) {
  for (auto [i, first] : llvm::enumerate(place.first))
    for (int64_t slot = first; slot < first + place.width; ++slot)
      (*place.space)[slot] = {tensor ? tensor->number(i) : std::nan(""), op};
}

static bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool PlacedMemory::holds(const Place &place, const Tensor &tensor) const {
  for (auto [i, first] : llvm::enumerate(place.first))
    for (int64_t slot = first; slot < first + place.width; ++slot)
      if (!same((*place.space)[slot].value, tensor.number(i)))
        return false;
  return true;
}

//===------------------------------------------------------------------------------------------===//
// Operands
//===------------------------------------------------------------------------------------------===//

LogicalResult PlacedMemory::check(Operation *user, Value value, const Tensor &tensor) {
  Attribute at = places.lookup(value);
  auto place = placeOf(user, at, value.getType());
  if (failed(place))
    return failure();
  if (!place->space || holds(*place, tensor))
    return success();
  for (auto [i, first] : llvm::enumerate(place->first)) {
    const Slot &slot = (*place->space)[first];
    if (same(slot.value, tensor.number(i)))
      continue;
    InFlightDiagnostic error = user->emitError()
                               << "needs a value at " << at << " that was overwritten: element "
                               << indexText(tensor.shape, i) << " was " << tensor.number(i)
                               << " and is " << slot.value;
    if (slot.writer)
      error.attachNote(slot.writer->getLoc())
          << "by '" << slot.writer->getName().getStringRef() << "' here";
    return error;
  }
  return user->emitError() << "needs a value at " << at << " that was overwritten in part";
}

/// The start that the op waits for, if that works in its operands' buffers.
static AsyncStartInterface completedInOperands(Operation *op) {
  auto wait = dyn_cast<AsyncWaitInterface>(op);
  AsyncStartInterface start = wait ? wait.getStart() : AsyncStartInterface();
  return start && start.worksInOperands() ? start : AsyncStartInterface();
}

LogicalResult PlacedMemory::checkOperands(Operation *op,
                                          function_ref<const Tensor &(Value)> valueOf) {
  if (AsyncStartInterface start = completedInOperands(op))
    return endCollective(start); // worked in its buffers, perhaps copies of its operands
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) && failed(check(op, operand, valueOf(operand))))
      return failure();
  auto start = dyn_cast<AsyncStartInterface>(op);
  return start && start.worksInOperands() ? beginCollective(op) : success();
}

/// Between start and wait nobody knows what the buffers hold.
LogicalResult PlacedMemory::beginCollective(Operation *op) {
  for (auto [at, operand] : llvm::zip(buffersOf(op), op->getOperands())) {
    auto place = placeOf(op, at, operand.getType());
    if (failed(place))
      return failure();
    if (place->space)
      fill(op, *place, nullptr);
  }
  return success();
}

LogicalResult PlacedMemory::endCollective(Operation *start) {
  if (!start)
    return success();
  for (auto [at, operand] : llvm::zip(buffersOf(start), start->getOperands())) {
    auto place = placeOf(start, at, operand.getType());
    if (failed(place))
      return failure();
    for (int64_t first : place->first)
      for (int64_t slot = first; slot < first + place->width; ++slot)
        if (Operation *writer = (*place->space)[slot].writer; writer != start) {
          InFlightDiagnostic error = start->emitError()
                                     << "works in " << at << ", which is written "
                                     << "before the collective is complete";
          error.attachNote(writer->getLoc())
              << "by '" << writer->getName().getStringRef() << "' here";
          return error;
        }
  }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Results
//===------------------------------------------------------------------------------------------===//

/// Is the operand exactly where the kernel would put it into the result (a part of a concatenation
/// that was computed into place while others are copied)?
static bool isInItsSlice(rt::KernelInterface kernel, unsigned operand, OpResult result,
                         ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  auto shape = cast<RankedTensorType>(result.getType()).getShape();
  std::optional<rt::View> slice = kernel.sliceOfResult(operand, rt::View::dense(shape));
  if (!slice)
    return false;
  bool same = true;
  walk(slice->shape, slice->strides, slice->offset,
       [&](int64_t i, int64_t element) { same &= from[i] == to[element]; });
  return same;
}

/// A result may lie over an operand only where the kernel takes them in one place.
LogicalResult PlacedMemory::checkOverwrites(Operation *op, unsigned result, const Place &place) {
  auto kernel = dyn_cast<rt::KernelInterface>(op);
  if (!kernel)
    return success();
  llvm::DenseSet<int64_t> written(place.first.begin(), place.first.end());
  SmallVector<unsigned> allowed = kernel.inPlaceOperands(result);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    auto from = placeOf(op, places.lookup(operand), operand.getType());
    if (failed(from))
      return failure();
    if (from->space != place.space ||
        llvm::none_of(from->first, [&](int64_t slot) { return written.contains(slot); }))
      continue;
    if (isInItsSlice(kernel, i, op->getResult(result), from->first, place.first))
      continue;
    if (!llvm::is_contained(allowed, i) || from->first != place.first)
      return op->emitError() << "result " << result << " at "
                             << places.lookup(op->getResult(result)) << " overwrites operand " << i
                             << " at " << places.lookup(operand)
                             << " while its kernel still reads it";
  }
  return success();
}

LogicalResult PlacedMemory::put(OpResult result, const Tensor &tensor) {
  Operation *op = result.getOwner();
  unsigned index = 0;
  for (OpResult other : op->getResults().take_front(result.getResultNumber()))
    index += isa<RankedTensorType>(other.getType());
  if (index >= buffersOf(op).size())
    return success();
  places[result] = buffersOf(op)[index];
  if (handedOut(result) != result) // stands where the region left it, perhaps on its way
    return success();
  auto place = placeOf(op, places[result], result.getType());
  if (failed(place))
    return failure();
  if (!place->space || holds(*place, tensor)) // a view, or computed into place by its operands
    return success();
  auto kernel = dyn_cast<rt::KernelInterface>(op);
  bool reduces =
      completedInOperands(op) || (kernel && op->getNumOperands() && kernel.overwritesOperand(0));
  if (!reduces && failed(checkOverwrites(op, result.getResultNumber(), *place)))
    return failure();
  fill(op, *place, &tensor);
  return success();
}

LogicalResult PlacedMemory::putResults(Operation *op, ArrayRef<const Tensor *> results) {
  if (buffersOf(op).empty())
    return success();
  scribble(op);
  for (auto [result, tensor] : llvm::zip(op->getResults(), results)) {
    bool isForgotten = isa<train::AccumulateOp>(op) && result.use_empty();
    if (tensor && !isForgotten && failed(put(result, *tensor)))
      return failure();
  }
  return success();
}

LogicalResult PlacedMemory::putReturned(Operation *end, ArrayRef<const Tensor *> values) {
  SmallVector<Place> written;
  for (auto [operand, at, value] : llvm::zip(end->getOperands(), buffersOf(end), values)) {
    auto place = placeOf(end, at, operand.getType());
    if (failed(place) || failed(check(end, operand, *value)))
      return failure();
    if (place->space && !holds(*place, *value))
      fill(end, *place, value);
    written.push_back(std::move(*place));
  }
  for (auto [at, place, value] : llvm::zip(buffersOf(end), written, values))
    if (place.space && !holds(place, *value))
      return end->emitError() << "the result at " << at << " is overwritten by another";
  return success();
}

/// What the kernel leaves in its scratch memory.
void PlacedMemory::scribble(Operation *op) {
  auto at = op->getAttrOfType<rt::AtAttr>(RtDialect::kWorkspace);
  auto kernel = dyn_cast<rt::KernelInterface>(op);
  if (!at || !kernel)
    return;
  int64_t first = at.getOffset() / unit,
          end = (at.getOffset() + 4 * kernel.workspaceElements()) / unit;
  Memory *scratch = memoryOf(at.getSpace());
  for (int64_t slot = first; scratch && slot < std::min<int64_t>(end, scratch->size()); ++slot)
    (*scratch)[slot] = {std::nan(""), op};
}

LogicalResult PlacedMemory::write(Operation *op, StringRef symbol, const Tensor &tensor) {
  Operation *declared =
      SymbolTable::lookupNearestSymbolFrom(op, StringAttr::get(op->getContext(), symbol));
  auto local = declared ? declared->getAttrOfType<TypeAttr>(RtDialect::kLocal) : TypeAttr();
  if (!local)
    return success();
  auto place = placeOf(op, declared->getAttr(RtDialect::kAt), local.getValue());
  if (failed(place))
    return failure();
  if (place->space && static_cast<int64_t>(place->first.size()) == tensor.size())
    fill(op, *place, &tensor);
  return success();
}
