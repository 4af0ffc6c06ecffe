//===- Accumulate.cpp - train.accumulate: the passes of each micro-batch ------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/RunningSums.h"

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
// Running sums
//===----------------------------------------------------------------------------------------------===//

SmallVector<int64_t> train::grownIn(AccumulateOp op, Region &region) {
  return llvm::filter_to_vector(op.getGrown().value_or(ArrayRef<int64_t>()), [&](int64_t sum) {
    return op.getPart(sum).getOwner()->getParentRegion() == &region;
  });
}

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
// Passes, and what they save for later ones
//===----------------------------------------------------------------------------------------------===//

static YieldOp yieldOf(Region &region) { return cast<YieldOp>(region.front().getTerminator()); }

PassName AccumulateOp::getPass(unsigned number) {
  return number == 0 ? PassName() : cast<PassAttr>(getLaterPassesAttr()[number - 1]).getName();
}

SmallVector<PassName> AccumulateOp::getPasses() {
  return llvm::map_to_vector(llvm::seq<unsigned>(0, (*this)->getNumRegions()),
                             [&](unsigned number) { return getPass(number); });
}

std::optional<unsigned> AccumulateOp::findPass(PassName name) {
  for (unsigned number = 0; number < (*this)->getNumRegions(); ++number)
    if (getPass(number) == name)
      return number;
  return std::nullopt;
}

OpOperand &AccumulateOp::getPart(unsigned sum) {
  for (Region &region : (*this)->getRegions()) {
    YieldOp yield = yieldOf(region);
    if (sum < yield.getValues().size())
      return yield->getOpOperand(sum);
    sum -= yield.getValues().size();
  }
  llvm_unreachable("no such sum");
}

std::optional<unsigned> AccumulateOp::getSumOf(OpOperand &yielded) {
  auto yield = cast<YieldOp>(yielded.getOwner());
  unsigned number = yielded.getOperandNumber();
  if (number >= yield.getValues().size())
    return std::nullopt;
  for (Region &earlier : (*this)->getRegions().take_front(numberOf(*yield->getParentRegion())))
    number += yieldOf(earlier).getValues().size();
  return number;
}

OperandRange AccumulateOp::getSaved(unsigned pass) {
  return yieldOf((*this)->getRegion(pass)).getSaved();
}

MutableOperandRange AccumulateOp::getSavedMutable(unsigned pass) {
  return yieldOf((*this)->getRegion(pass)).getSavedMutable();
}

unsigned AccumulateOp::countSavedBefore(unsigned pass) {
  unsigned count = 0;
  for (unsigned earlier = 0; earlier < pass; ++earlier)
    count += getSaved(earlier).size();
  return count;
}

SmallVector<Value> AccumulateOp::getAllSaved() {
  SmallVector<Value> all;
  for (unsigned pass = 0; pass < (*this)->getNumRegions(); ++pass)
    llvm::append_range(all, getSaved(pass));
  return all;
}

BlockArgument AccumulateOp::getSavedArgument(unsigned number, unsigned reader) {
  return (*this)->getRegion(reader).getArgument(getBatches().size() + number);
}

/// Returns an earlier region's value for an argument of a region; null for a running sum, or in the
/// first region.
static Value earlierOf(AccumulateOp loop, BlockArgument argument) {
  unsigned pass = loop.numberOf(*argument.getParentRegion()), number = argument.getArgNumber(),
           batches = loop.getBatches().size();
  if (number < batches)
    return pass == 0 ? Value() : Value(loop.getBody().getArgument(number));
  number -= batches;
  for (unsigned earlier = 0; earlier < pass; ++earlier) {
    OperandRange saved = loop.getSaved(earlier);
    if (number < saved.size())
      return saved[number];
    number -= saved.size();
  }
  return {};
}

Value train::forwardOf(Value value) {
  while (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<AccumulateOp>(argument.getOwner()->getParentOp());
    Value earlier = loop ? earlierOf(loop, argument) : Value();
    if (!earlier)
      return value;
    value = earlier;
  }
  return value;
}

/// Returns a later region's argument for an argument of a region; null for a running sum.
static BlockArgument handedOn(AccumulateOp loop, BlockArgument argument, unsigned reader) {
  unsigned pass = loop.numberOf(*argument.getParentRegion());
  if (argument.getArgNumber() >= loop.getBatches().size() + loop.countSavedBefore(pass))
    return {};
  return loop->getRegion(reader).getArgument(argument.getArgNumber());
}

BlockArgument AccumulateOp::save(Value value, unsigned reader) {
  unsigned maker = numberOf(*value.getParentRegion());
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (BlockArgument known = handedOn(*this, argument, reader))
      return known;
  unsigned first = countSavedBefore(maker);
  for (auto [number, saved] : llvm::enumerate(getSaved(maker)))
    if (saved == value)
      return getSavedArgument(first + number, reader);
  unsigned number = first + getSaved(maker).size();
  getSavedMutable(maker).append(value);
  for (Region &later : (*this)->getRegions().drop_front(maker + 1))
    later.insertArgument(getBatches().size() + number, value.getType(), value.getLoc());
  return getSavedArgument(number, reader);
}

/// Replaces uses of a saved value that a later region can get otherwise. Returns true if the
/// argument has no uses then.
static bool isNeedless(AccumulateOp loop, Value saved, unsigned number, unsigned maker,
                       unsigned reader, const llvm::SmallDenseMap<Value, unsigned> &known) {
  BlockArgument argument = loop.getSavedArgument(number, reader);
  auto own = dyn_cast<BlockArgument>(saved);
  if (saved.getParentRegion() != &loop->getRegion(maker))
    argument.replaceAllUsesWith(saved);
  else if (BlockArgument before = own ? handedOn(loop, own, reader) : BlockArgument())
    argument.replaceAllUsesWith(before);
  else if (auto first = known.find(saved); first != known.end())
    argument.replaceAllUsesWith(loop.getSavedArgument(first->second, reader));
  return argument.use_empty();
}

bool AccumulateOp::simplifySaved() {
  unsigned passes = (*this)->getNumRegions();
  bool changed = false;
  for (unsigned maker = passes; maker-- > 0;) { // later ones first, as they may save an argument
    unsigned first = countSavedBefore(maker);
    SmallVector<Value> kept;
    llvm::BitVector dropped(getSaved(maker).size());
    llvm::SmallDenseMap<Value, unsigned> known; // the number under which it is saved
    for (auto [number, saved] : llvm::enumerate(getSaved(maker))) {
      bool isUsed = false;
      for (unsigned reader = maker + 1; reader < passes; ++reader)
        isUsed |= !isNeedless(*this, saved, first + number, maker, reader, known);
      dropped[number] = !isUsed;
      if (isUsed && known.try_emplace(saved, first + number).second)
        kept.push_back(saved);
    }
    if (dropped.none())
      continue;
    changed = true;
    getSavedMutable(maker).assign(kept);
    for (Region &later : (*this)->getRegions().drop_front(maker + 1))
      later.front().eraseArguments([&](BlockArgument argument) {
        unsigned number = argument.getArgNumber() - getBatches().size() - first;
        return argument.getArgNumber() >= getBatches().size() + first && number < dropped.size() &&
               dropped[number];
      });
  }
  return changed;
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

/// Checks that a region has the right number of arguments: micro-batches, saved values, running
/// sums.
static LogicalResult verifyArguments(AccumulateOp op, Region &region) {
  unsigned pass = op.numberOf(region);
  size_t batches = op.getBatches().size(), saved = op.countSavedBefore(pass),
         grown = grownIn(op, region).size(), found = region.getNumArguments();
  if (found == batches + saved + grown)
    return success();
  InFlightDiagnostic error = op.emitOpError() << "expects " << batches + saved + grown;
  if (pass > 0)
    return error << " arguments of its " << op.getPass(pass).text() << " region (" << batches
                 << " micro-batches, " << saved << " saved values, " << grown
                 << " running sums), found " << found;
  return error << " region arguments (" << batches << " micro-batches, " << grown
               << " running sums), found " << found;
}

/// Checks that running sums exist and occur once.
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

/// Checks that a region receives and yields a running sum in the sum's type.
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

/// Returns the passes that must run before the pass with this number: those that it reads, and
/// earlier kinds of passes of its chunk.
static llvm::BitVector needs(AccumulateOp op, unsigned reader) {
  llvm::BitVector result(op->getNumRegions());
  PassName pass = op.getPass(reader);
  for (unsigned maker = 0; maker < reader; ++maker) {
    PassName other = op.getPass(maker);
    unsigned first = op.countSavedBefore(maker), count = op.getSaved(maker).size();
    result[maker] = (other.chunk == pass.chunk && other.kind < pass.kind) ||
                    llvm::any_of(llvm::seq(first, first + count), [&](unsigned number) {
                      return !op.getSavedArgument(number, reader).use_empty();
                    });
  }
  return result;
}

static std::string textOf(Slot slot) {
  return "'" + slot.text(".") + " " + std::to_string(slot.microBatch) + "'";
}

/// Checks that the order has every micro-batch's passes once, each after those that it needs.
static LogicalResult verifyOrder(AccumulateOp op) {
  if (!op.getOrder())
    return success();
  unsigned passes = op->getNumRegions();
  std::vector<llvm::BitVector> needed,
      done(op.getCount(), llvm::BitVector(passes)); // by pass; by micro-batch
  for (unsigned pass = 0; pass < passes; ++pass)
    needed.push_back(needs(op, pass));
  for (Slot slot : op.getOrderAttr().getSlots()) {
    std::optional<unsigned> pass = op.findPass(slot.pass());
    if (!pass)
      return op.emitOpError() << "has no " << slot.text() << " region for its order's "
                              << textOf(slot);
    if (slot.microBatch < 0 || slot.microBatch >= op.getCount())
      return op.emitOpError() << "has no micro-batch " << slot.microBatch << " for its order's "
                              << textOf(slot) << ": there are " << op.getCount();
    llvm::BitVector &before = done[slot.microBatch];
    if (before[*pass])
      return op.emitOpError() << "has an order in which " << textOf(slot) << " stands twice";
    llvm::BitVector missing = needed[*pass];
    if (missing.reset(before).any())
      return op.emitOpError() << "has an order in which " << textOf(slot) << " stands in front of "
                              << textOf({op.getPass(missing.find_first()), slot.microBatch})
                              << ", which it needs";
    before.set(*pass);
  }
  for (auto [microBatch, before] : llvm::enumerate(done))
    if (int missing = before.find_first_unset(); missing >= 0)
      return op.emitOpError() << "has an order without "
                              << textOf({op.getPass(missing), static_cast<int64_t>(microBatch)});
  return success();
}

/// Checks that each pass occurs once, a backward pass after its forward pass, and weights after
/// both.
static LogicalResult verifyPasses(AccumulateOp op) {
  ArrayAttr passes = op.getLaterPassesAttr();
  if ((passes ? passes.size() : 0) != op.getLater().size())
    return op.emitOpError() << "has " << op.getLater().size() << " later regions, and says of "
                            << (passes ? passes.size() : 0) << " which passes they are";
  for (unsigned number = 1; number < op->getNumRegions(); ++number) {
    PassName pass = op.getPass(number);
    if (*op.findPass(pass) != number)
      return op.emitOpError() << "has two " << pass.text() << " regions";
    for (PassName first{PassKind::Forward, pass.chunk}; first.kind != pass.kind;
         first.kind = PassKind(uint32_t(first.kind) + 1))
      if (std::optional<unsigned> found = op.findPass(first); !found || *found > number)
        return op.emitOpError() << "has a " << pass.text() << " region, and no " << first.text()
                                << " region in front of it";
  }
  return success();
}

static std::string whereOf(AccumulateOp op, Value value) {
  Region &region = *value.getParentRegion();
  return region.getParentOp() == op ? "in the " + op.getPass(op.numberOf(region)).text() + " region"
                                    : "outside";
}

/// Checks later regions: their arguments are the micro-batches and what earlier regions save; the
/// last region saves nothing.
static LogicalResult verifyLater(AccumulateOp op) {
  for (Region &region : op.getLater()) {
    if (failed(verifyArguments(op, region)))
      return failure();
    for (BlockArgument argument : region.getArguments())
      if (Value before = earlierOf(op, argument); before && before.getType() != argument.getType())
        return op.emitOpError() << "has a " << op.getPass(op.numberOf(region)).text()
                                << " region whose argument #" << argument.getArgNumber()
                                << " has type " << argument.getType() << "; " << whereOf(op, before)
                                << " it has type " << before.getType();
  }
  unsigned last = op->getNumRegions() - 1;
  if (op.getSaved(last).empty())
    return success();
  return last == 0 ? op.emitOpError() << "saves values, but has no later region that takes them"
                   : op.emitOpError() << "has a " << op.getPass(last).text()
                                      << " region that saves values, and none after it";
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
  for (Region &region : (*this)->getRegions()) {
    auto yield = dyn_cast<YieldOp>(region.front().getTerminator());
    if (!yield)
      return emitOpError() << "needs regions that end in train.yield";
    llvm::append_range(parts, yield.getValues());
  }
  auto addsUp = [](auto pair) { // 16-bit parts may be added up in 32 bits
    auto part = cast<RankedTensorType>(std::get<0>(pair).getType()),
         sum = cast<RankedTensorType>(std::get<1>(pair).getType());
    return part == sum || inSingleAtLeast(part) == sum;
  };
  if (parts.size() != getSums().size() || !llvm::all_of(llvm::zip(parts, getSums()), addsUp))
    return emitOpError() << "yields types that do not match its sums";
  return success(succeeded(verifyPasses(*this)) && succeeded(verifyGrown(*this)) &&
                 succeeded(verifyArguments(*this, getBody())) && succeeded(verifyLater(*this)) &&
                 succeeded(verifyGrownTypes(*this)) && succeeded(verifyOrder(*this)) &&
                 succeeded(verifyLast(*this)));
}

void YieldOp::build(OpBuilder &, OperationState &) {}
