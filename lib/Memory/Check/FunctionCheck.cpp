//===- FunctionCheck.cpp - see FunctionCheck.h --------------------------------------------------===//

#include "lib/Memory/Check/FunctionCheck.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory::check;
using rt::KernelInterface;

LogicalResult FunctionCheck::run() {
  if (failed(spots.find()))
    return failure();
  for (auto &[name, symbol] : symbols)
    spots.contents.write(spots.initialOf(name), symbol.op, 0);
  return failure(failed(check(function.getBody().front())) || failed(checkSymbols()));
}

//===------------------------------------------------------------------------------------------===//
// Reads and writes
//===------------------------------------------------------------------------------------------===//

static std::string ownerOf(const Content &content) {
  if (isa<train::ParameterOp, train::StateOp>(content.maker))
    return ("the value of @" + SymbolTable::getSymbolName(content.maker).getValue()).str();
  return ("the value that '" + content.maker->getName().getStringRef() + "' puts").str();
}

LogicalResult FunctionCheck::read(int number, const Bytes &bytes, Operation *user) {
  if (number < 0)
    return success();
  std::optional<Contents::Loss> loss = spots.contents.findLoss(number, bytes);
  if (!loss)
    return success();
  const Content &content = spots.contents[number];
  InFlightDiagnostic error = user->emitError()
                             << "needs " << ownerOf(content) << " at byte " << loss->byte
                             << " of the " << textOf(bytes.space) << ", where '"
                             << loss->by->getName().getStringRef() << "' has written since";
  error.attachNote(content.maker->getLoc()) << "it is made here";
  error.attachNote(loss->by->getLoc()) << "and overwritten here";
  return error;
}

LogicalResult FunctionCheck::read(Value value, Operation *user) {
  const Spot &spot = spots.of(value);
  return read(spot.content, spot.bytes, user);
}

LogicalResult FunctionCheck::noteWrite(const Bytes &bytes, Operation *by) {
  for (const Bytes &ring : rings)
    if (bytes.meets(ring) && analysis::commonByte(bytes, ring))
      return by->emitError() << "writes byte " << std::max(bytes.begin, ring.begin) << " of the "
                             << textOf(bytes.space)
                             << ", where the loop keeps its micro-batches in flight";
  if (trace)
    trace->writes.push_back(bytes);
  else if (isInLastSlot)
    traces[by->getParentRegion()->getRegionNumber()].lastWrites.push_back(bytes);
  return success();
}

LogicalResult FunctionCheck::write(int number, Operation *by) {
  spots.contents.write(number, by, spots.numberOf(by));
  return noteWrite(spots.contents[number].bytes, by);
}

//===------------------------------------------------------------------------------------------===//
// Ops
//===------------------------------------------------------------------------------------------===//

LogicalResult FunctionCheck::check(Block &block) {
  for (Operation &op : block)
    if (failed(check(&op)))
      return failure();
  return success();
}

LogicalResult FunctionCheck::check(Operation *op) {
  if (isa<train::ReadOp>(op))
    return success();
  if (auto write = dyn_cast<train::WriteOp>(op))
    return checkWrite(write);
  if (auto loop = dyn_cast<train::AccumulateOp>(op))
    return checkLoop(loop);
  if (auto end = dyn_cast<func::ReturnOp>(op))
    return checkReturn(end);
  if (Spots::worksInOperands(op))
    return checkWorkedIn(op);
  if (auto wait = dyn_cast<AsyncWaitInterface>(op))
    return checkWait(wait);
  if (auto kernel = dyn_cast<KernelInterface>(op))
    return checkKernel(kernel);
  return success();
}

/// Is the result the memory of its operand? Then the op has nothing to do.
static bool isThereAlready(const Spot &from, const Spot &to) {
  return from.content >= 0 && from.content == to.content;
}

LogicalResult FunctionCheck::checkKernel(KernelInterface kernel) {
  Operation *op = kernel;
  if (op->getNumOperands() == 1 && op->getNumResults() == 1 &&
      isThereAlready(spots.of(op->getOperand(0)), spots.of(op->getResult(0))))
    return success();
  for (Value operand : op->getOperands())
    if (failed(read(operand, op)))
      return failure();
  if (std::optional<Bytes> workspace = spots.workspaceOf(op)) {
    spots.contents.scribble(*workspace, op, spots.numberOf(op));
    if (failed(noteWrite(*workspace, op)))
      return failure();
    for (Value operand : op->getOperands())
      if (failed(read(operand, op)))
        return failure();
    for (Value result : op->getResults())
      if (const Spot &spot = spots.of(result);
          spot.content >= 0 && analysis::commonByte(*workspace, spot.bytes))
        return op->emitError() << "has scratch memory in its result number "
                               << cast<OpResult>(result).getResultNumber() << " at " << spot.at;
  }
  for (OpResult result : op->getResults())
    if (failed(checkResult(kernel, result)))
      return failure();
  return success();
}

/// The same elements in the same places, whatever shape they have.
static bool isSameLayout(const Spot &a, const Spot &b) {
  return a.bytes.begin == b.bytes.begin && a.bytes.end == b.bytes.end &&
         a.bytes.width == b.bytes.width &&
         ((a.view.isDense() && b.view.isDense()) || a.view == b.view);
}

/// May the kernel write the result over the operand?
static bool mayLieOver(KernelInterface kernel, OpResult result, const Spot &to, unsigned operand,
                       const Spot &from) {
  if (llvm::is_contained(kernel.inPlaceOperands(result.getResultNumber()), operand) &&
      isSameLayout(from, to))
    return true;
  std::optional<rt::View> slice = kernel.sliceOfResult(operand, to.view);
  return slice && *slice == from.view;
}

LogicalResult FunctionCheck::checkResult(KernelInterface kernel, OpResult result) {
  const Spot &to = spots.of(result);
  if (to.content < 0)
    return success();
  Operation *op = kernel;
  for (OpOperand &operand : op->getOpOperands()) {
    const Spot &from = spots.of(operand.get());
    if (from.content >= 0 && from.bytes.meets(to.bytes) &&
        !mayLieOver(kernel, result, to, operand.getOperandNumber(), from) &&
        analysis::commonByte(from.bytes, to.bytes))
      return op->emitError() << "writes result number " << result.getResultNumber() << " at "
                             << to.at << " over operand number " << operand.getOperandNumber()
                             << " at " << from.at << ", which its kernel still reads";
  }
  for (OpResult other : op->getResults().take_front(result.getResultNumber()))
    if (const Spot &before = spots.of(other);
        before.content >= 0 && analysis::commonByte(before.bytes, to.bytes))
      return op->emitError() << "has results number " << other.getResultNumber() << " at "
                             << before.at << " and number " << result.getResultNumber() << " at "
                             << to.at << ", which share bytes";
  return write(to.content, op);
}

LogicalResult FunctionCheck::checkWorkedIn(Operation *op) {
  ArrayRef<Spot> buffers = spots.workedIn(op);
  for (auto [operand, buffer] : llvm::zip(op->getOperands(), buffers)) // copied, if it is elsewhere
    if (failed(read(operand, op)) ||
        (buffer.at != spots.of(operand).at && failed(write(buffer.content, op))))
      return failure();
  for (auto [operand, buffer] : llvm::zip(op->getOperands(), buffers))
    if (buffer.at == spots.of(operand).at &&
        (failed(read(operand, op)) || failed(write(buffer.content, op))))
      return failure();
  for (const Spot &buffer : buffers)
    if (failed(read(buffer.content, buffer.bytes, op)))
      return failure();
  return success();
}

LogicalResult FunctionCheck::checkWait(AsyncWaitInterface wait) {
  AsyncStartInterface start = wait.getStart();
  if (!start.worksInOperands() && start->getBlock() == wait->getBlock())
    for (Value operand : start->getOperands())
      if (failed(read(operand, wait)))
        return failure();
  for (OpResult result : wait->getResults()) {
    Spot filled = start.worksInOperands() ? spots.workedIn(start)[result.getResultNumber()]
                                          : spots.of(wait.getFilledBy(result.getResultNumber()));
    if (failed(read(filled.content, filled.bytes, wait)))
      return failure();
    if (!isThereAlready(filled, spots.of(result)) &&
        failed(checkResult(cast<KernelInterface>(wait.getOperation()), result)))
      return failure();
  }
  return success();
}

LogicalResult FunctionCheck::checkWrite(train::WriteOp write) {
  if (failed(read(write.getValue(), write)))
    return failure();
  int content = spots.contentOf(write);
  return content == spots.of(write.getValue()).content ? success() : this->write(content, write);
}

LogicalResult FunctionCheck::checkReturn(func::ReturnOp end) {
  ArrayRef<Spot> places = spots.workedIn(end);
  for (auto [number, operand] : llvm::enumerate(end.getOperands())) {
    if (failed(read(operand, end)))
      return failure();
    if (number < places.size() && !isThereAlready(spots.of(operand), places[number]) &&
        failed(write(places[number].content, end)))
      return failure();
  }
  for (const Spot &place : places)
    if (failed(read(place.content, place.bytes, end)))
      return failure();
  return success();
}

/// Checks that at the end of the function each symbol has the value last written to it, or else its
/// old one.
LogicalResult FunctionCheck::checkSymbols() {
  bool isInit = train::is(function, train::EntryPoint::Init);
  for (auto &[name, symbol] : symbols) {
    train::WriteOp write = spots.lastWriteTo(name);
    if (isInit && !write)
      continue; // lower-to-rt reports it
    std::optional<Contents::Loss> loss = spots.contents.findLoss(
        write ? spots.contentOf(write) : spots.initialOf(name), symbol.bytes);
    if (!loss)
      continue;
    InFlightDiagnostic error = loss->by->emitError() << "writes byte " << loss->byte << " of the "
                                                     << textOf(symbol.bytes.space) << ", where @"
                                                     << name.getValue() << " has its value";
    error.attachNote(symbol.op->getLoc()) << "it is placed at " << symbol.at << " here";
    return error;
  }
  return success();
}
