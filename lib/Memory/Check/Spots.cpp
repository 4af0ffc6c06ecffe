//===- Spots.cpp - see Spots.h ------------------------------------------------------------------===//

#include "lib/Memory/Check/Spots.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory::check;
using rt::AtAttr;
using rt::KernelInterface;
using rt::RtDialect;
using rt::Space;

std::string memory::check::textOf(Space space) {
  return space == Space::Arena ? "arena" : (rt::toString(space) + " memory").str();
}

static bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

const Spot &Spots::of(Value value) const {
  static const Spot nowhere;
  auto found = spotOf.find(value);
  return found == spotOf.end() ? nowhere : spots[found->second];
}

ArrayRef<Spot> Spots::workedIn(Operation *op) const {
  auto found = worked.find(op);
  return found == worked.end() ? ArrayRef<Spot>() : ArrayRef<Spot>(found->second);
}

std::optional<Bytes> Spots::workspaceOf(Operation *op) const {
  auto found = workspaces.find(op);
  return found == workspaces.end() ? std::nullopt : std::optional(found->second);
}

bool Spots::worksInOperands(Operation *op) {
  auto kernel = dyn_cast<KernelInterface>(op);
  return kernel && op->getNumOperands() > 0 && kernel.overwritesOperand(0);
}

LogicalResult Spots::find() {
  counter = 1; // 0 is before the first op: the values of symbols
  Block &body = function.getBody().front();
  number(body);
  for (BlockArgument argument : function.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()); type && type.hasStaticShape())
      setSpot(argument,
              {AtAttr::get(function.getContext(), Space::Input, argument.getArgNumber(), {}),
               {},
               rt::View::dense(type.getShape())});
  for (auto &[name, symbol] : symbols) {
    Content content(symbol.bytes, symbol.op);
    content.isOfSymbol = true;
    content.lastRead = train::is(function, train::EntryPoint::Init) ? -1 : Content::kAlways;
    initial[name] = contents.add(std::move(content));
  }
  function.walk([&](train::WriteOp write) {
    if (auto found = initial.find(write.getSymbolAttr().getAttr()); found != initial.end())
      contents[found->second].lastRead = -1; // unless it is read
  });
  return failure(failed(note(body)) || failed(checkPersistent()));
}

/// Memory that outlives the function holds only parameters and states, and their new values.
LogicalResult Spots::checkPersistent() {
  for (int number = 0, count = contents.size(); number < count; ++number) {
    const Content &content = contents[number];
    if (rt::isPersistent(content.bytes.space) && !content.isOfSymbol)
      return content.maker->emitOpError()
             << "has a result at byte " << content.bytes.begin << " of the "
             << textOf(content.bytes.space)
             << ", which is not the place of a parameter or state that it is written to";
  }
  return success();
}

void Spots::number(Block &block) {
  for (Operation &op : block) {
    numbers[&op] = counter++;
    if (isa<train::AccumulateOp>(op)) // ops inside a kernel have no memory
      for (Region &region : op.getRegions())
        number(region.front());
    ends[&op] = counter - 1;
  }
}

//===------------------------------------------------------------------------------------------===//
// Places
//===------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<AtAttr>> Spots::placesOf(Operation *op, size_t count, const char *ofWhat) {
  auto list = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  if (!list && count == 0)
    return SmallVector<AtAttr>();
  if (!list)
    return op->emitOpError() << "has no " << RtDialect::kBuffers << "; run plan-memory first";
  if (list.size() != count || !llvm::all_of(list, llvm::IsaPred<AtAttr>))
    return op->emitOpError() << "has " << list << " as " << RtDialect::kBuffers << ", and " << count
                             << " " << ofWhat << " need a place each (#rt.at)";
  return llvm::map_to_vector(list, [](Attribute at) { return cast<AtAttr>(at); });
}

FailureOr<Spot> Spots::spotAt(Operation *op, AtAttr at, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Spot spot;
  spot.at = at;
  if (!tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return op->emitOpError() << "has a " << type << " at " << at
                             << "; memory is for tensors of known size only";
  std::optional<Bytes> bytes = Bytes::at(at, tensor);
  if (!bytes)
    return op->emitOpError()
           << "has a " << type << " at " << at
           << "; a place has an offset, and perhaps a stride for each dimension, none below 0";
  spot.view = rt::viewOf(at, tensor);
  if (!rt::hasOffsets(at.getSpace()))
    return spot;
  spot.bytes = std::move(*bytes);
  if (spot.bytes.begin % spot.bytes.width != 0)
    return op->emitOpError() << "has a " << type << " at " << at
                             << ", and an element of it needs a multiple of " << spot.bytes.width
                             << " bytes";
  if (at.getSpace() == Space::InFlight)
    return failed(checkInFlight(op, spot)) ? FailureOr<Spot>(failure()) : FailureOr<Spot>(spot);
  int64_t limit = sizeOf(limits, at.getSpace());
  if (spot.bytes.end > limit)
    return op->emitOpError() << "has a " << type << " at " << at << ", up to byte "
                             << spot.bytes.end << " of the " << textOf(at.getSpace())
                             << ", which has " << limit;
  int64_t &end = sizeOf(used, at.getSpace());
  end = std::max(end, spot.bytes.end);
  return spot;
}

LogicalResult Spots::checkInFlight(Operation *op, const Spot &spot) {
  if (!inFlight || inFlight.getRings().empty())
    return op->emitOpError() << "has a place at " << spot.at
                             << ", and no micro-batches are in flight here";
  auto [number, offset] = inFlight.locate(spot.bytes.begin);
  const rt::InFlightAttr::Ring ring = inFlight.getRings()[number];
  int64_t end = 0;
  if (llvm::AddOverflow(offset, spot.bytes.end - spot.bytes.begin, end) || end > ring.bytes)
    return op->emitOpError() << "has a place at " << spot.at << " that ends after the "
                             << ring.bytes << " bytes of a block of ring " << number << " of "
                             << inFlight;
  return success();
}

int Spots::addContent(const Spot &spot, Operation *maker) {
  return contents.add({spot.bytes, maker, maker->getBlock()});
}

void Spots::setSpot(Value value, Spot spot) {
  spotOf[value] = spots.size();
  spots.push_back(std::move(spot));
}

/// A result without a place needs no memory: its users have the value as a literal, or there are
/// none.
LogicalResult Spots::checkLiteral(OpResult result) {
  auto kernel = dyn_cast<KernelInterface>(result.getOwner());
  if (result.use_empty() && kernel && !kernel.needsResult(result.getResultNumber()))
    return success();
  DenseElementsAttr value;
  bool isLiteral = matchPattern(result, m_Constant(&value)) && value.isSplat();
  for (OpOperand &use : result.getUses()) {
    auto user = dyn_cast<KernelInterface>(use.getOwner());
    if (!isLiteral || !user || !user.acceptsLiteral(use.getOperandNumber()))
      return use.getOwner()->emitOpError() << "needs operand number " << use.getOperandNumber()
                                           << " in memory, and its place is #rt.at<none>";
  }
  if (!isLiteral)
    return result.getOwner()->emitOpError()
           << "has no place for result number " << result.getResultNumber()
           << ", which its kernel writes";
  return success();
}

/// Kernels of the device work in its memory, those of the host in the host's.
LogicalResult Spots::checkSpace(KernelInterface kernel, OpResult result, const Spot &spot) {
  Space wanted = kernel.resultSpace(result.getResultNumber()), space = spot.at.getSpace();
  bool isPinned = space == Space::Pinned || space == Space::Host;
  if (space == Space::InFlight)
    isPinned = inFlight.getRings()[inFlight.locate(spot.bytes.begin).first].isPinned;
  bool fits = rt::hasOffsets(wanted)
                  ? rt::hasOffsets(space) && isPinned == (wanted == Space::Pinned)
                  : space == wanted;
  if (fits)
    return success();
  return result.getOwner()->emitOpError()
         << "has result number " << result.getResultNumber() << " at " << spot.at
         << ", and its kernel writes to "
         << (wanted == Space::Pinned  ? "the host's memory"
             : rt::hasOffsets(wanted) ? "the device's memory"
                                      : ("#rt.at<" + rt::toString(wanted) + ">").str());
}

//===------------------------------------------------------------------------------------------===//
// Reads
//===------------------------------------------------------------------------------------------===//

void Spots::want(int content, Operation *user) {
  if (content < 0)
    return;
  Content &wanted = contents[content];
  Block *home = wanted.home ? wanted.home : &function.getBody().front();
  Operation *ancestor = home->findAncestorOpInBlock(*user);
  bool isAgain = ancestor && ancestor != user;
  wanted.lastRead = std::max(wanted.lastRead, isAgain ? ends[ancestor] : numbers[user]);
}

void Spots::want(Value value, Operation *user) {
  if (isTensor(value))
    want(of(value).content, user);
}

//===------------------------------------------------------------------------------------------===//
// Op by op
//===------------------------------------------------------------------------------------------===//

LogicalResult Spots::note(Block &block) {
  for (Operation &op : block)
    if (failed(note(&op)))
      return failure();
  return success();
}

LogicalResult Spots::note(Operation *op) {
  if (auto read = dyn_cast<train::ReadOp>(op))
    return noteRead(read);
  if (auto loop = dyn_cast<train::AccumulateOp>(op))
    return noteLoop(loop);
  for (Value operand : op->getOperands())
    want(operand, op);
  if (auto write = dyn_cast<train::WriteOp>(op))
    return noteWrite(write);
  if (auto yield = dyn_cast<train::YieldOp>(op))
    return noteYield(yield);
  if (auto end = dyn_cast<func::ReturnOp>(op))
    return noteReturn(end);
  auto kernel = dyn_cast<KernelInterface>(op);
  if (!kernel)
    return success(); // lower-to-rt reports it
  if (failed(noteWorkspace(kernel)))
    return failure();
  if (worksInOperands(op))
    return noteWorkedIn(op);
  if (auto wait = dyn_cast<AsyncWaitInterface>(op))
    return noteWait(wait);
  return noteResults(kernel);
}

LogicalResult Spots::noteRead(train::ReadOp read) {
  auto symbol = symbols.find(read.getSymbolAttr().getAttr());
  if (symbol == symbols.end())
    return read.emitOpError() << "reads " << read.getSymbolAttr() << ", which does not exist";
  FailureOr<SmallVector<AtAttr>> places = placesOf(read, 1, "result");
  if (failed(places))
    return failure();
  if (places->front() != symbol->second.at)
    return read.emitOpError() << "has its result at " << places->front() << ", and "
                              << read.getSymbolAttr() << " is at " << symbol->second.at;
  Spot spot{symbol->second.at, symbol->second.bytes, symbol->second.bytes.view,
            initialOf(symbol->first)};
  spot.view = rt::viewOf(spot.at, read.getType());
  setSpot(read.getResult(), std::move(spot));
  return success();
}

LogicalResult Spots::noteWrite(train::WriteOp write) {
  auto symbol = symbols.find(write.getSymbolAttr().getAttr());
  if (symbol == symbols.end())
    return write.emitOpError() << "writes " << write.getSymbolAttr() << ", which does not exist";
  const Spot &spot = of(write.getValue());
  bool isThere = spot.at == symbol->second.at && spot.content >= 0;
  int content =
      isThere ? spot.content : contents.add({symbol->second.bytes, write, write->getBlock()});
  contents[content].lastRead = Content::kAlways;
  contents[content].isOfSymbol = true;
  written[write] = content;
  lastWrites[symbol->first] = write;
  return success();
}

LogicalResult Spots::noteReturn(func::ReturnOp end) {
  if (!train::is(function, train::EntryPoint::Forward) || end.getNumOperands() == 0)
    return success();
  FailureOr<SmallVector<AtAttr>> places = placesOf(end, end.getNumOperands(), "operands");
  if (failed(places))
    return failure();
  for (auto [operand, at] : llvm::zip(end.getOperands(), *places)) {
    FailureOr<Spot> spot = spotAt(end, at, operand.getType());
    if (failed(spot))
      return failure();
    if (at.getSpace() != Space::Arena || !at.getStrides().empty())
      return end.emitOpError() << "returns a " << operand.getType() << " at " << at
                               << "; the host reads results in the arena, dense";
    spot->content = at == of(operand).at ? of(operand).content : addContent(*spot, end);
    contents[spot->content].lastRead = Content::kAlways;
    worked[end].push_back(std::move(*spot));
  }
  return success();
}

LogicalResult Spots::noteWorkspace(KernelInterface kernel) {
  int64_t elements = kernel.workspaceElements();
  if (elements <= 0)
    return success();
  auto at = kernel->getAttrOfType<AtAttr>(RtDialect::kWorkspace);
  if (!at)
    return kernel->emitOpError() << "has no " << RtDialect::kWorkspace
                                 << ", and its kernel needs scratch memory for " << elements
                                 << " floats";
  if (at.getSpace() != kernel.workspaceSpace() || !at.getStrides().empty())
    return kernel->emitOpError() << "has " << RtDialect::kWorkspace << " at " << at
                                 << ", and its kernel needs it in the "
                                 << textOf(kernel.workspaceSpace()) << ", dense";
  FailureOr<Spot> spot =
      spotAt(kernel, at, RankedTensorType::get({elements}, Float32Type::get(kernel->getContext())));
  if (failed(spot))
    return failure();
  workspaces[kernel] = spot->bytes;
  return success();
}

LogicalResult Spots::noteWorkedIn(Operation *op) {
  FailureOr<SmallVector<AtAttr>> places = placesOf(op, op->getNumOperands(), "operands");
  if (failed(places))
    return failure();
  // The wait of a start has the results.
  unsigned first = isa<AsyncStartInterface>(op) ? op->getNumResults() : 0;
  for (auto [number, at] : llvm::enumerate(*places)) {
    FailureOr<Spot> spot = spotAt(op, at, op->getOperand(number).getType());
    if (failed(spot))
      return failure();
    if (!rt::hasOffsets(at.getSpace()) || !spot->view.isDense())
      return op->emitOpError() << "works in " << at << "; it needs memory of the device, dense";
    spot->content = addContent(*spot, op);
    if (first + number < op->getNumResults())
      setSpot(op->getResult(number), *spot);
    worked[op].push_back(std::move(*spot));
  }
  return success();
}

LogicalResult Spots::noteWait(AsyncWaitInterface wait) {
  AsyncStartInterface start = wait.getStart();
  FailureOr<SmallVector<AtAttr>> places = placesOf(wait, wait->getNumResults(), "results");
  if (failed(places))
    return failure();
  bool isBeside = start->getBlock() == wait->getBlock();
  for (Value operand : start->getOperands()) // which the start reads until now
    if (isBeside && isTensor(operand))
      want(of(operand).content, wait);
  for (auto [number, at] : llvm::enumerate(*places)) {
    FailureOr<Spot> spot = spotAt(wait, at, wait->getResult(number).getType());
    if (failed(spot))
      return failure();
    Spot filled = start.worksInOperands() ? workedIn(start)[number] : of(wait.getFilledBy(number));
    bool isThere = filled.at && filled.at.getSpace() == at.getSpace() && filled.view == spot->view;
    if (start.worksInOperands() && !isThere)
      return wait->emitOpError() << "has result number " << number << " at " << at << ", and '"
                                 << start->getName().getStringRef() << "' works at " << filled.at;
    spot->content = isThere ? filled.content : addContent(*spot, wait);
    want(filled.content, wait);
    setSpot(wait->getResult(number), std::move(*spot));
  }
  return success();
}

bool Spots::isViewOf(KernelInterface kernel, const Spot &from, const Spot &to) const {
  if (!from.at || from.at.getSpace() != to.at.getSpace() || from.at.getSpace() == Space::None)
    return false;
  std::optional<rt::View> view = kernel.viewOfOperand(from.view);
  return view && *view == to.view &&
         (from.at.getSpace() != Space::Input || from.at.getOffset() == to.at.getOffset());
}

LogicalResult Spots::noteResults(KernelInterface kernel) {
  Operation *op = kernel;
  auto results = llvm::filter_to_vector(op->getResults(), isTensor);
  FailureOr<SmallVector<AtAttr>> places = placesOf(op, results.size(), "results");
  if (failed(places))
    return failure();
  for (auto [result, at] : llvm::zip(results, *places)) {
    FailureOr<Spot> spot = spotAt(op, at, result.getType());
    if (failed(spot))
      return failure();
    Spot from =
        op->getNumOperands() == 1 && op->getNumResults() == 1 ? of(op->getOperand(0)) : Spot();
    if (at.getSpace() == Space::None) {
      if (failed(checkLiteral(cast<OpResult>(result))))
        return failure();
    } else if (isViewOf(kernel, from, *spot)) {
      spot->content = from.content;
      if ((spot->isMicroBatch = from.isMicroBatch))
        spot->bytes = from.bytes;
    } else if (failed(checkSpace(kernel, cast<OpResult>(result), *spot))) {
      return failure();
    } else if (rt::hasOffsets(at.getSpace())) {
      spot->content = addContent(*spot, op);
    }
    setSpot(result, std::move(*spot));
  }
  return success();
}
