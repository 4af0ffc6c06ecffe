//===- Accumulate.cpp - train.accumulate: a forward and a backward pass per micro-batch --------===//

#include "dialects/Interfaces/BoundRegion.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

int64_t AccumulateOp::getCount() {
  return cast<RankedTensorType>(getBatches().front().getType()).getDimSize(0);
}

RankedTensorType AccumulateOp::microBatchType(Type batch) {
  auto type = cast<RankedTensorType>(batch);
  par::Layout layout = par::Layout::of(type);
  layout.shape.erase(layout.shape.begin());
  layout.splits.erase(layout.splits.begin());
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType(),
                               layout.encoding(type.getContext()));
}

//===----------------------------------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------------------------------===//

using Arguments = SmallVectorImpl<OpAsmParser::Argument>;

/// `onto (%so_far = 1)`: arguments that are sums, and their numbers.
static ParseResult parseOnto(OpAsmParser &parser, OperationState &result, Arguments &arguments,
                             SmallVectorImpl<int64_t> &grown) {
  if (failed(parser.parseOptionalKeyword("onto")))
    return success();
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
    OpAsmParser::Argument &argument = arguments.emplace_back();
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseInteger(grown.emplace_back()))
      return failure();
    auto count = static_cast<int64_t>(result.types.size());
    if (grown.back() < 0 || grown.back() >= count)
      return parser.emitError(at, "there is no sum number ") << grown.back() << " of " << count;
    argument.type = result.types[grown.back()];
    return success();
  });
}

/// `backward (%ids, %h) { ... }`: the arguments' types are those of the micro-batches and of what the
/// forward region saves.
static ParseResult parseBackward(OpAsmParser &parser, OperationState &result,
                                 SmallVectorImpl<int64_t> &grown) {
  Region &forward = *result.regions.front(), &backward = *result.addRegion();
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword("backward")))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
    return failure();
  SmallVector<Type> types;
  for (Value batch : result.operands)
    types.push_back(AccumulateOp::microBatchType(batch.getType()));
  auto yield = forward.empty() || forward.front().empty() ? YieldOp()
                                                          : dyn_cast<YieldOp>(forward.front().back());
  if (yield)
    llvm::append_range(types, yield.getSaved().getTypes());
  if (types.size() != arguments.size())
    return parser.emitError(loc, "expects ")
           << types.size() << " arguments of the backward region (" << result.operands.size()
           << " micro-batches, " << types.size() - result.operands.size()
           << " saved values), found " << arguments.size();
  for (auto [argument, type] : llvm::zip(arguments, types))
    argument.type = type;
  if (parseOnto(parser, result, arguments, grown))
    return failure();
  return parser.parseRegion(backward, arguments);
}

ParseResult AccumulateOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  auto microBatch = [&](Type batch) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(batch);
    if (tensor && tensor.getRank() > 0)
      return microBatchType(batch);
    parser.emitError(loc, "a batch needs a first dimension to run over, it is ") << batch;
    return {};
  };
  SmallVector<int64_t> grown;
  auto onto = [&](Arguments &arguments) { return parseOnto(parser, result, arguments, grown); };
  auto backward = [&] { return parseBackward(parser, result, grown); };
  if (parseBoundRegion(parser, result, microBatch, onto, backward))
    return failure();
  if (!grown.empty())
    result.addAttribute(getGrownAttrName(result.name),
                        parser.getBuilder().getDenseI64ArrayAttr(grown));
  ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  if (!result.regions.back()->empty())
    ensureTerminator(*result.regions.back(), parser.getBuilder(), result.location);
  return success();
}

/// Those of the sums that a region makes itself, in the order of its arguments.
static SmallVector<int64_t> grownIn(AccumulateOp op, Region &region) {
  return llvm::filter_to_vector(op.getGrown().value_or(ArrayRef<int64_t>()), [&](int64_t sum) {
    return op.getPart(sum).getOwner()->getParentRegion() == &region;
  });
}

void AccumulateOp::print(OpAsmPrinter &printer) {
  auto onto = [&](Region &region) {
    SmallVector<int64_t> grown = grownIn(*this, region);
    if (grown.empty())
      return;
    printer << "onto (";
    llvm::interleaveComma(llvm::zip(region.getArguments().take_back(grown.size()), grown), printer,
                          [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") ";
  };
  auto backward = [&] {
    if (!hasBackward())
      return;
    Region &region = getBackward();
    printer << " backward (";
    llvm::interleaveComma(region.getArguments().drop_back(grownIn(*this, region).size()), printer,
                          [&](Value argument) { printer << argument; });
    printer << ") ";
    onto(region);
    printer.printRegion(region, /*printEntryBlockArgs=*/false);
  };
  printBoundRegion(printer, *this, [&] { onto(getBody()); }, backward, {getGrownAttrName()});
}

//===----------------------------------------------------------------------------------------------===//
// Sums that a region makes
//===----------------------------------------------------------------------------------------------===//

static ArrayRef<int64_t> grownOf(AccumulateOp op) {
  return op.getGrown().value_or(ArrayRef<int64_t>());
}

Value AccumulateOp::getBatchOf(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  return number < getBatches().size() ? getBatches()[number] : Value();
}

Value AccumulateOp::getSumOf(BlockArgument argument) {
  SmallVector<int64_t> grown = grownIn(*this, *argument.getParentRegion());
  size_t first = argument.getParentRegion()->getNumArguments() - grown.size(),
         number = argument.getArgNumber();
  return number >= first ? getSums()[grown[number - first]] : Value();
}

BlockArgument AccumulateOp::getSoFar(unsigned sum) {
  if (!llvm::is_contained(grownOf(*this), static_cast<int64_t>(sum)))
    return {};
  Region &region = *getPart(sum).getOwner()->getParentRegion();
  SmallVector<int64_t> grown = grownIn(*this, region);
  size_t first = region.getNumArguments() - grown.size();
  return region.getArgument(first + (llvm::find(grown, static_cast<int64_t>(sum)) - grown.begin()));
}

BlockArgument AccumulateOp::growSum(unsigned sum) {
  SmallVector<int64_t> grown(grownOf(*this));
  grown.push_back(sum);
  setGrown(grown);
  Region &region = *getPart(sum).getOwner()->getParentRegion();
  return region.addArgument(getSums()[sum].getType(), getLoc());
}

//===----------------------------------------------------------------------------------------------===//
// What the forward pass saves for the backward pass
//===----------------------------------------------------------------------------------------------===//

static YieldOp yieldOf(Region &region) { return cast<YieldOp>(region.front().getTerminator()); }

OpOperand &AccumulateOp::getPart(unsigned sum) {
  YieldOp forward = yieldOf(getBody());
  unsigned count = forward.getValues().size();
  return sum < count ? forward->getOpOperand(sum)
                     : yieldOf(getBackward())->getOpOperand(sum - count);
}

std::optional<unsigned> AccumulateOp::getSumOf(OpOperand &yielded) {
  auto yield = cast<YieldOp>(yielded.getOwner());
  unsigned number = yielded.getOperandNumber();
  if (number >= yield.getValues().size())
    return std::nullopt;
  bool isForward = yield->getParentRegion() == &getBody();
  return number + (isForward ? 0 : yieldOf(getBody()).getValues().size());
}

OperandRange AccumulateOp::getSaved() { return yieldOf(getBody()).getSaved(); }

MutableOperandRange AccumulateOp::getSavedMutable() { return yieldOf(getBody()).getSavedMutable(); }

BlockArgument AccumulateOp::getSavedArgument(unsigned number) {
  return getBackward().getArgument(getBatches().size() + number);
}

Value train::forwardOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp()) : AccumulateOp();
  if (!loop || argument.getParentRegion() != &loop.getBackward())
    return value;
  unsigned number = argument.getArgNumber(), batches = loop.getBatches().size();
  if (number < batches)
    return loop.getBody().getArgument(number);
  OperandRange saved = loop.getSaved();
  return number - batches < saved.size() ? saved[number - batches] : value;
}

BlockArgument AccumulateOp::save(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == &getBody().front())
    return getBackward().getArgument(argument.getArgNumber());
  YieldOp yield = yieldOf(getBody());
  for (auto [number, saved] : llvm::enumerate(yield.getSaved()))
    if (saved == value)
      return getSavedArgument(number);
  yield.getSavedMutable().append(value);
  auto number = static_cast<unsigned>(getBatches().size() + yield.getSaved().size()) - 1;
  return getBackward().insertArgument(number, value.getType(), value.getLoc());
}

bool AccumulateOp::simplifySaved() {
  if (!hasBackward())
    return false;
  YieldOp yield = yieldOf(getBody());
  SmallVector<Value> kept;
  llvm::BitVector dropped(getBackward().getNumArguments());
  llvm::SmallDenseMap<Value, Value> known; // in the forward pass -> in the backward pass
  auto microBatches = getBody().getArguments().take_front(getBatches().size());
  for (auto [microBatch, again] : llvm::zip(microBatches, getBackward().getArguments()))
    known[microBatch] = again;
  for (auto [number, saved] : llvm::enumerate(yield.getSaved())) {
    BlockArgument argument = getSavedArgument(number);
    if (saved.getParentRegion() != &getBody())
      argument.replaceAllUsesWith(saved);
    else if (Value other = known.lookup(saved))
      argument.replaceAllUsesWith(other);
    if (argument.use_empty()) {
      dropped.set(argument.getArgNumber());
      continue;
    }
    known[saved] = argument;
    kept.push_back(saved);
  }
  if (dropped.none())
    return false;
  yield.getSavedMutable().assign(kept);
  getBackward().front().eraseArguments(dropped);
  return true;
}

LogicalResult AccumulateOp::canonicalize(AccumulateOp op, PatternRewriter &rewriter) {
  rewriter.startOpModification(op);
  if (!op.simplifySaved()) {
    rewriter.cancelOpModification(op);
    return failure();
  }
  rewriter.finalizeOpModification(op);
  return success();
}

//===----------------------------------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------------------------------===//

/// As many as a region must have: micro-batches, saved values, running sums.
static LogicalResult verifyArguments(AccumulateOp op, Region &region, size_t saved) {
  size_t batches = op.getBatches().size(), grown = grownIn(op, region).size(),
         found = region.getNumArguments();
  if (found == batches + saved + grown)
    return success();
  InFlightDiagnostic error = op.emitOpError() << "expects " << batches + saved + grown;
  if (&region == &op.getBackward())
    return error << " arguments of its backward region (" << batches << " micro-batches, " << saved
                 << " saved values, " << grown << " running sums), found " << found;
  return error << " region arguments (" << batches << " micro-batches, " << grown
               << " running sums), found " << found;
}

/// Each once, an argument of its type, and yielded in that type.
static LogicalResult verifyGrown(AccumulateOp op) {
  if (op.isUnscheduled() && !grownOf(op).empty())
    return op.emitOpError() << "adds to running sums, but its passes are not scheduled";
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t sum : grownOf(op)) {
    if (sum < 0 || sum >= static_cast<int64_t>(op.getSums().size()))
      return op.emitOpError() << "has " << op.getSums().size() << " sums; there is no #" << sum
                              << " for its region to add to";
    if (!seen.insert(sum).second)
      return op.emitOpError() << "has a region that receives running sum #" << sum << " twice";
  }
  return success();
}

/// The regions' arguments are there.
static LogicalResult verifyGrownTypes(AccumulateOp op) {
  for (int64_t sum : grownOf(op)) {
    Type type = op.getSums()[sum].getType(), given = op.getSoFar(sum).getType(),
         made = op.getPart(sum).get().getType();
    if (given != type || made != type)
      return op.emitOpError() << "has sum #" << sum << " of type " << type
                              << ", but its region receives " << given << " and yields " << made;
  }
  return success();
}

/// Every micro-batch's passes once, the backward pass behind the forward pass.
static LogicalResult verifyOrder(AccumulateOp op) {
  if (!op.getOrder())
    return success();
  if (!op.hasBackward())
    return op.emitOpError() << "has an order of passes, but no backward region";
  std::vector<int> state(op.getCount(), 0); // 1: forward done, 2: backward done
  for (OrderAttr::Slot slot : op.getOrderAttr().getSlots()) {
    StringRef pass = slot.isBackward ? "backward" : "forward";
    if (slot.microBatch < 0 || slot.microBatch >= op.getCount())
      return op.emitOpError() << "has no micro-batch " << slot.microBatch << " for its order's '"
                              << pass << " " << slot.microBatch << "': there are "
                              << op.getCount();
    if (state[slot.microBatch]++ != slot.isBackward)
      return op.emitOpError() << "has an order in which '" << pass << " " << slot.microBatch
                              << "' stands " << (slot.isBackward ? "not behind" : "not in front of")
                              << " the micro-batch's other pass, or twice";
  }
  for (auto [microBatch, done] : llvm::enumerate(state))
    if (done != 2)
      return op.emitOpError() << "has an order without '" << (done ? "backward" : "forward") << " "
                              << microBatch << "'";
  return success();
}

/// Its arguments are the micro-batches and what the forward region saves; who has no backward region
/// saves nothing.
static LogicalResult verifyBackward(AccumulateOp op) {
  YieldOp forward = yieldOf(op.getBody());
  if (!op.hasBackward())
    return forward.getSaved().empty()
               ? success()
               : op.emitOpError() << "saves values, but has no backward region that takes them";
  if (failed(verifyArguments(op, op.getBackward(), forward.getSaved().size())))
    return failure();
  Block &backward = op.getBackward().front();
  for (BlockArgument argument : backward.getArguments())
    if (Value before = forwardOf(argument); before.getType() != argument.getType())
      return op.emitOpError() << "has a backward region whose argument #" << argument.getArgNumber()
                              << " has type " << argument.getType()
                              << "; in the forward region it has type " << before.getType();
  if (!yieldOf(op.getBackward()).getSaved().empty())
    return op.emitOpError() << "has a backward region that saves values";
  return success();
}

LogicalResult AccumulateOp::verify() {
  if (getBatches().empty())
    return emitOpError() << "needs a batch to run over";
  if (getCount() < 1)
    return emitOpError() << "needs at least one micro-batch, and has none: "
                         << getBatches().front().getType();
  Block &block = getBody().front();
  for (auto [batch, argument] : llvm::zip(getBatches(), block.getArguments())) {
    auto type = cast<RankedTensorType>(batch.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != getCount())
      return emitOpError() << "all batches need the same number of micro-batches, " << getCount()
                           << " and " << type;
    if (!par::Layout::of(type).splits[0].empty())
      return emitOpError() << "the dimension of micro-batches cannot be split: " << type;
    if (argument.getType() != microBatchType(type))
      return emitOpError() << "one micro-batch of " << type << " is " << microBatchType(type)
                           << ", not " << argument.getType();
  }
  SmallVector<Value> parts;
  for (Region *region : {&getBody(), &getBackward()})
    if (!region->empty()) {
      auto yield = dyn_cast<YieldOp>(region->front().getTerminator());
      if (!yield)
        return emitOpError() << "needs regions that end in train.yield";
      llvm::append_range(parts, yield.getValues());
    }
  auto addsUp = [](auto pair) { // in 32 bits what is yielded in 16
    auto part = cast<RankedTensorType>(std::get<0>(pair).getType()),
         sum = cast<RankedTensorType>(std::get<1>(pair).getType());
    return part == sum || inSingleAtLeast(part) == sum;
  };
  if (parts.size() != getSums().size() || !llvm::all_of(llvm::zip(parts, getSums()), addsUp))
    return emitOpError() << "yields types that do not match its sums";
  return success(succeeded(verifyGrown(*this)) && succeeded(verifyArguments(*this, getBody(), 0)) &&
                 succeeded(verifyBackward(*this)) && succeeded(verifyGrownTypes(*this)) &&
                 succeeded(verifyOrder(*this)));
}

void YieldOp::build(OpBuilder &, OperationState &) {}
