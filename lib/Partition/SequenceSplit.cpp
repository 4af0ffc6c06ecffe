//===- SequenceSplit.cpp ------------------------------------------------------------------------===//

#include "lib/Partition/SequenceSplit.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Causes.h"

using namespace mlir;
using namespace partita;

//===----------------------------------------------------------------------------------------------===//
// The batch, in samples
//===----------------------------------------------------------------------------------------------===//

/// Visits the batch arguments of functions, with the batch dimension and its size.
static void forBatches(ModuleOp module,
                       function_ref<void(BlockArgument, unsigned, int64_t)> visit) {
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (auto dim = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                            train::TrainDialect::kBatch))
        visit(argument, dim.getInt(),
              cast<RankedTensorType>(argument.getType()).getDimSize(dim.getInt()));
}

static int64_t batchSize(ModuleOp module) {
  int64_t found = 1;
  forBatches(module, [&](BlockArgument, unsigned, int64_t size) { found = std::max(found, size); });
  return found;
}

SampleSplits::SampleSplits(ModuleOp module, StringRef axisName)
    : module(module), axis(StringAttr::get(module.getContext(), axisName)),
      batch(StringAttr::get(module.getContext(), "batch")),
      mesh(par::MeshAttr::get(
          module.getContext(), ArrayRef<StringAttr>{batch, axis},
          ArrayRef<int64_t>{batchSize(module), par::MeshAttr::of(module).sizeOf(axisName)})),
      propagation(module, mesh) {
  if (par::splits(axisName, par::Splits::Context))
    return;
  for (const par::AxisRow &row : par::kAxes)
    if (int64_t size = par::MeshAttr::of(module).sizeOf(row.name);
        row.splits == par::Splits::Context && size > 1) {
      outer *= size;
      outerName += (outerName.empty() ? "" : " x ") + row.name.str();
    }
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto split = function.getArgAttrOfType<par::PlacementAttr>(i, kArgumentSplit))
        if (par::Layout layout = par::Layout::of(split); layout.mirroredDim() >= 0)
          dealt = 2;
}

LogicalResult SampleSplits::run() {
  int64_t samples = mesh.sizeOf(batch);
  forBatches(module, [&](BlockArgument argument, unsigned dim, int64_t size) {
    if (size == samples)
      propagation.seed(argument, dim, {batch, 1});
  });
  return propagation.run();
}

LogicalResult SequenceSplit::run(bool apply) {
  SmallVector<Operation *> ops = opsWithRules();
  for (Operation *op : ops)
    if (failed(forward(op)))
      return failure();
  for (Operation *op : llvm::reverse(ops))
    for (Value result : op->getResults())
      if (cuts.contains(result))
        leaveBehind(result);
  return complete(ops, apply);
}

LogicalResult SequenceSplit::runOn(function_ref<bool(Operation *)> isWanted, StringRef asked) {
  mark = asked;
  SmallVector<Operation *> ops = opsWithRules();
  for (Operation *op : ops)
    if (isWanted(op) && failed(enterAlone(op)))
      return failure();
  return complete(ops, /*apply=*/true);
}

SmallVector<Operation *> SequenceSplit::opsWithRules() {
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (hasRule(op))
      ops.push_back(op);
  });
  return ops;
}

/// Splits what is only computed for shards, then inserts the moves between shards and full values.
LogicalResult SequenceSplit::complete(ArrayRef<Operation *> ops, bool apply) {
  for (Operation *op : llvm::reverse(ops))
    if (failed(backward(op)))
      return failure();
  if (!apply)
    return success();
  SmallVector<Operation *> all;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function)
      all.push_back(op);
  });
  for (Operation *op : all)
    settleUses(op);
  return success();
}

//===- Deciding what is split

/// Returns the letter of an op that tensor parallelism splits.
std::optional<par::LetterSplit> SequenceSplit::tensorLetter(Operation *op) {
  const ShardRule &rule = propagation.ruleOf(op);
  std::optional<par::LetterSplit> letter;
  auto visit = [&](const RulePattern &pattern, Value value) {
    par::Layout layout = propagation.layoutOf(value);
    if (int dim = layout.dimOf(axis); dim >= 0 && !letter)
      letter = par::splitLetter(pattern.dims[dim], layout.blocksOf(axis), propagation.sizesOf(op));
  };
  for (auto [pattern, value] : llvm::zip(rule.operands, op->getOperands()))
    visit(pattern, value);
  for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
    visit(pattern, value);
  return letter;
}

LogicalResult SequenceSplit::forward(Operation *op) {
  if (auto letter = tensorLetter(op))
    return openSum(op, letter->letter);
  const ShardRule &rule = propagation.ruleOf(op);
  for (auto [pattern, operand] : llvm::zip(rule.operands, op->getOperands()))
    if (auto cut = cuts.find(operand); cut != cuts.end())
      if (auto letter = mayEnter(op, pattern, cut->second))
        return enter(op, *letter);
  return success();
}

/// Handles an op that leaves a sum over the axis open: splits its results along the data's own
/// dimension.
LogicalResult SequenceSplit::openSum(Operation *op, unsigned summed) {
  const ShardRule &rule = propagation.ruleOf(op);
  if (!rule.letters[summed].summed)
    return success();
  for (auto [pattern, result] : llvm::zip(rule.results, op->getResults())) {
    if (pattern.contains(summed) || !par::isDifferentiable(result.getType()))
      continue;
    for (unsigned dim = 0; dim < pattern.dims.size(); ++dim) {
      Cut cut{dim, batchBlocks(result, dim) * dealt};
      auto letter = par::splitLetter(pattern.dims[dim], cut.blocks, propagation.sizesOf(op));
      if (!letter || !isOfData(op, letter->letter) ||
          propagation.sizesOf(op)[letter->letter] <= letter->blocks.count)
        continue;
      if (failed(divides(op, *letter)))
        return failure();
      cuts[result] = cut;
      open.insert(result);
      ++openSums;
      break;
    }
  }
  return success();
}

/// Returns the number of blocks of a dimension that are samples of the batch.
int64_t SequenceSplit::batchBlocks(Value value, unsigned dim) {
  par::Layout layout = propagation.layoutOf(value);
  for (const par::AxisSplit &split : layout.splits[dim])
    if (split.axis == batch)
      return split.blocks.count * mesh.sizeOf(batch);
  return 1;
}

/// Splits an op with one operand along its outermost dimension that is not the batch, if the size
/// divides.
LogicalResult SequenceSplit::enterAlone(Operation *op) {
  Value value = op->getOperand(0);
  if (tensorLetter(op) || !par::isDifferentiable(value.getType()))
    return success();
  const RulePattern &pattern = propagation.ruleOf(op).operands[0];
  if (auto known = cuts.find(value); known != cuts.end()) { // the result of another such op
    auto letter = mayEnter(op, pattern, known->second);
    return letter ? enter(op, *letter) : success();
  }
  for (unsigned dim = 0; dim < pattern.dims.size(); ++dim) {
    auto letter = mayEnter(op, pattern, {dim, batchBlocks(value, dim) * dealt});
    if (letter && isOfData(op, letter->letter) && sizeOf(op, *letter) > 1)
      return sizeOf(op, *letter) % mesh.sizeOf(axis) == 0 ? enter(op, *letter) : success();
  }
  return success();
}

/// Returns true if the letter is free and not a dimension of parameters.
bool SequenceSplit::isOfData(Operation *op, unsigned letter) {
  const ShardRule &rule = propagation.ruleOf(op);
  const RuleLetter &description = rule.letters[letter];
  if (isOfPart(rule, letter) || description.never || description.byForm || description.summed)
    return false;
  return llvm::none_of(llvm::zip(rule.operands, op->getOperands()), [&](auto pair) {
    return std::get<0>(pair).contains(letter) && independent(std::get<1>(pair));
  });
}

/// Returns true if the letter is in part of a dimension: the rest of the dimension would have to be
/// cut too, and no rule says how.
bool SequenceSplit::isOfPart(const ShardRule &rule, unsigned letter) {
  auto inPart = [&](const RulePattern &pattern) {
    int dim = pattern.dimOf(letter);
    return dim >= 0 && pattern.dims[dim].isPart();
  };
  return llvm::any_of(rule.operands, inPart) || llvm::any_of(rule.results, inPart);
}

/// Returns the blocks of a cut as a placement has them.
par::Blocks SequenceSplit::placed(Cut cut) const {
  return par::Blocks::equal(cut.blocks, mirrored);
}

/// Returns the letter that a cut of an operand or result splits, if the op allows it.
std::optional<par::LetterSplit> SequenceSplit::mayEnter(Operation *op, const RulePattern &pattern,
                                                        Cut cut) {
  const ShardRule &rule = propagation.ruleOf(op);
  auto letter = par::splitLetter(pattern.dims[cut.dim], placed(cut), propagation.sizesOf(op));
  if (!letter)
    return {};
  const RuleLetter &description = rule.letters[letter->letter];
  // A shard needs one first index, which shards of several blocks do not have.
  if (isOfPart(rule, letter->letter) || description.never || description.byForm ||
      description.max || !par::allows(description, letter->blocks))
    return {};
  return letter;
}

LogicalResult SequenceSplit::enter(Operation *op, par::LetterSplit letter, bool isCoarse) {
  if (failed(divides(op, letter)))
    return failure();
  entered[op] = letter;
  if (isCoarse)
    enteredCoarse.insert(op);
  const ShardRule &rule = propagation.ruleOf(op);
  for (auto [pattern, result] : llvm::zip(rule.results, op->getResults()))
    if (MaybeCut cut = cutOf(op, pattern, letter))
      cuts[result] = *cut;
  return success();
}

/// Returns the size that the axis splits: that of one block.
int64_t SequenceSplit::sizeOf(Operation *op, par::LetterSplit letter) const {
  return propagation.sizesOf(op)[letter.letter] / letter.blocks.count;
}

LogicalResult SequenceSplit::divides(Operation *op, par::LetterSplit letter) {
  int64_t size = sizeOf(op, letter);
  bool isContext = par::splits(axis, par::Splits::Context);
  int64_t parts = mesh.sizeOf(axis) * outer;
  if (size % parts == 0)
    return success();
  indivisible = true;
  int64_t nearest = std::max(parts, size / parts * parts);
  InFlightDiagnostic error = op->emitError() << (isContext ? "context" : "sequence")
                                             << " parallelism splits a dimension of size " << size
                                             << ", which does not divide over " << axis.getValue()
                                             << " = " << mesh.sizeOf(axis);
  if (outer > 1)
    error << (isContext ? " times " : " within ") << outerName << " = " << outer;
  if (isInput(size))
    return error << "; take a multiple of " << parts << " (" << nearest << ", " << nearest + parts
                 << ", ...)";
  error << "; no input has a dimension of this size, the model makes it: ";
  if (!isContext)
    error << "leave --sequence-parallel out, or ";
  return error << "take a size of " << axis.getValue() << " that divides it";
}

/// Returns true if an input has a dimension of this size, so that the user may choose another.
bool SequenceSplit::isInput(int64_t size) {
  return llvm::any_of(function.getArgumentTypes(), [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::is_contained(tensor.getShape(), size);
  });
}

SequenceSplit::MaybeCut SequenceSplit::cutOf(Operation *op, const RulePattern &pattern,
                                             par::LetterSplit letter) {
  int dim = pattern.dimOf(letter.letter);
  if (dim < 0)
    return {};
  return Cut{static_cast<unsigned>(dim),
             par::blocksOfDim(pattern.dims[dim], letter, propagation.sizesOf(op)).count,
             enteredCoarse.contains(op)};
}

/// Splits an op if all uses need its results split in the same way.
LogicalResult SequenceSplit::backward(Operation *op) {
  if (entered.contains(op) || op->use_empty() || tensorLetter(op))
    return success();
  const ShardRule &rule = propagation.ruleOf(op);
  std::optional<par::LetterSplit> letter;
  bool isCoarse = false;
  for (auto [pattern, result] : llvm::zip(rule.results, op->getResults()))
    for (OpOperand &use : result.getUses()) {
      MaybeCut cut = wanted(use);
      auto found = cut ? mayEnter(op, pattern, *cut) : std::nullopt;
      if (!found || (letter && (letter->letter != found->letter ||
                                letter->blocks != found->blocks || isCoarse != cut->isCoarse)))
        return success();
      letter = found;
      isCoarse = cut->isCoarse;
    }
  return letter ? enter(op, *letter, isCoarse) : success();
}

/// Returns the cut of an operand that its op needs; nothing if it needs the full value.
SequenceSplit::MaybeCut SequenceSplit::wanted(OpOperand &use) {
  if (auto made = dyn_cast<par::AllToAllOp>(use.getOwner());
      made && exchanged.contains(made) && made.getFrom() < made.getTo())
    return Cut{unsigned(made.getFrom()), 1};
  if (par::splits(axis, par::Splits::Context) &&
      isa<func::ReturnOp>(use.getOwner())) { // each rank returns its shard
    auto cut = cuts.find(use.get());
    return cut == cuts.end() ? MaybeCut() : MaybeCut(cut->second);
  }
  auto found = entered.find(use.getOwner());
  if (found == entered.end())
    return {};
  const ShardRule &rule = propagation.ruleOf(use.getOwner());
  MaybeCut cut = cutOf(use.getOwner(), rule.operands[use.getOperandNumber()], found->second);
  if (cut && coarse.contains(&use))
    cut->isCoarse = true;
  return cut;
}

//===- Gathering earlier

/// Removes a set of ops from the split if they work on shards of the value and of nothing else, and
/// others need their full results: if these have more bytes than the value, or if the value is
/// gathered anyway.
void SequenceSplit::leaveBehind(Value value) {
  llvm::SetVector<Operation *> leaving;
  auto comesFrom = [&](Value operand) {
    return operand == value || !cuts.contains(operand) || leaving.contains(operand.getDefiningOp());
  };
  collectUsers(value, comesFrom, leaving);
  auto staysCut = [&](Operation *op) {
    return llvm::any_of(op->getUses(), [&](OpOperand &use) {
      return wanted(use) && !leaving.contains(use.getOwner());
    });
  };
  while (true) { // the largest set whose shards are used only inside it
    auto *wrong = llvm::find_if(leaving, [&](Operation *op) {
      return staysCut(op) || !llvm::all_of(op->getOperands(), comesFrom);
    });
    if (wrong == leaving.end())
      break;
    leaving.remove(*wrong);
  }
  int64_t saved = 0;
  for (Operation *op : leaving)
    for (Value result : op->getResults())
      if (cuts.contains(result) && llvm::any_of(result.getUses(), [&](OpOperand &use) {
            return !leaving.contains(use.getOwner());
          }))
        saved += bytesOf(result.getType());
  bool isGathered = llvm::any_of(value.getUses(), [&](OpOperand &use) { return !wanted(use); });
  if (saved <= (isGathered ? 0 : bytesOf(value.getType())))
    return;
  for (Operation *op : leaving) {
    entered.erase(op);
    for (Value result : op->getResults())
      cuts.erase(result);
  }
}

/// Collects ops on shards that use a value, directly or through others, in program order.
void SequenceSplit::collectUsers(Value value, function_ref<bool(Value)> comesFrom,
                                 llvm::SetVector<Operation *> &users) {
  SmallVector<Operation *> next(value.user_begin(), value.user_end());
  llvm::sort(next, [](Operation *a, Operation *b) {
    return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b);
  });
  for (Operation *user : next)
    if (entered.contains(user) && user->getBlock() == value.getParentBlock() &&
        llvm::all_of(user->getOperands(), comesFrom) && users.insert(user))
      for (Value result : user->getResults())
        collectUsers(result, comesFrom, users);
}

//===- Inserting moves

void SequenceSplit::settleUses(Operation *op) {
  if (!entryEdges(op).empty()) // its regions' arguments are split as what they come from
    return;
  for (OpOperand &use : op->getOpOperands()) {
    Value value = use.get();
    auto found = cuts.find(value);
    MaybeCut have = found == cuts.end() ? MaybeCut() : MaybeCut(found->second);
    MaybeCut want = wanted(use);
    if (have && open.contains(value))
      value = narrow(value, *have, value.getDefiningOp());
    if (have && want && have->sameOutside(*want)) {
      if (have->isCoarse != want->isCoarse)
        value = want->isCoarse ? gatherOver(inside, value, *have, op)
                               : narrowOver(inside, value, *want, nullptr, op);
    } else if (have != want) {
      if (have)
        value = gather(value, *have, op);
      if (want)
        value = narrow(value, *want, nullptr, op);
    }
    use.set(value);
  }
}

/// Marks an inserted op.
template <typename Op> static Value marked(Op op, StringRef mark) {
  if (!mark.empty())
    op->setAttr(mark, UnitAttr::get(op.getContext()));
  return op.getResult();
}

/// Returns the shard of a full value, made directly after `behind` or before `before`.
Value SequenceSplit::narrow(Value value, Cut cut, Operation *behind, Operation *before) {
  Value shard = narrowOver(axis, value, cut, behind, before);
  return inside && !cut.isCoarse
             ? narrowOver(inside, shard, cut, behind ? shard.getDefiningOp() : nullptr, before)
             : shard;
}

Value SequenceSplit::narrowOver(StringAttr over, Value value, Cut cut, Operation *behind,
                                Operation *before) {
  Value &known = narrowed[{value, before ? before->getBlock() : behind->getBlock()}][cut.dim];
  if (known && known.getDefiningOp<par::NarrowOp>().getBlocks() == uint64_t(cut.blocks))
    return known;
  OpBuilder builder(function.getContext());
  behind ? builder.setInsertionPointAfter(behind) : builder.setInsertionPoint(before);
  ++narrows;
  auto narrow = par::NarrowOp::create(
      builder, inLayerOf((behind ? behind : before)->getLoc(), value.getLoc()), value.getType(),
      value, over, builder.getI64IntegerAttr(cut.dim), builder.getI64IntegerAttr(cut.blocks),
      StringAttr(), mirrored && over == axis ? builder.getUnitAttr() : UnitAttr());
  return known = marked(narrow, mark);
}

/// Returns the full value of a shard: one gather for all users in a block.
Value SequenceSplit::gather(Value value, Cut cut, Operation *before) {
  if (inside && !cut.isCoarse)
    value = gatherOver(inside, value, cut, before);
  return gatherOver(axis, value, cut, before);
}

Value SequenceSplit::gatherOver(StringAttr over, Value value, Cut cut, Operation *before) {
  Value &known = gathered[{value, before->getBlock()}];
  if (known)
    return known;
  OpBuilder builder(before);
  ++gathers;
  auto gather =
      par::AllGatherOp::create(builder, inLayerOf(before->getLoc(), value.getLoc()),
                               value.getType(), value, over, builder.getI64IntegerAttr(cut.dim),
                               builder.getI64IntegerAttr(cut.blocks), StringAttr(), UnitAttr());
  return known = marked(gather, mark);
}
