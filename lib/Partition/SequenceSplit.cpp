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
  if (axisName != par::kContextAxis)
    outer = par::MeshAttr::of(module).sizeOf(par::kContextAxis);
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
      Cut cut{dim, batchBlocks(result, dim)};
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
    auto letter = mayEnter(op, pattern, {dim, batchBlocks(value, dim)});
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
  return mirrored ? par::Blocks::backAndForth(cut.blocks) : par::Blocks(cut.blocks);
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

LogicalResult SequenceSplit::enter(Operation *op, par::LetterSplit letter) {
  if (failed(divides(op, letter)))
    return failure();
  entered[op] = letter;
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
  bool isContext = axis == par::kContextAxis;
  int64_t parts = mesh.sizeOf(axis) * outer;
  if (size % parts == 0)
    return success();
  int64_t nearest = std::max(parts, size / parts * parts);
  InFlightDiagnostic error = op->emitError() << (isContext ? "context" : "sequence")
                                             << " parallelism splits a dimension of size " << size
                                             << ", which does not divide over " << axis.getValue()
                                             << " = " << mesh.sizeOf(axis);
  if (outer > 1)
    error << " within " << par::kContextAxis << " = " << outer;
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
             par::blocksOfDim(pattern.dims[dim], letter, propagation.sizesOf(op)).count};
}

/// Splits an op if all uses need its results split in the same way.
LogicalResult SequenceSplit::backward(Operation *op) {
  if (entered.contains(op) || op->use_empty() || tensorLetter(op))
    return success();
  const ShardRule &rule = propagation.ruleOf(op);
  std::optional<par::LetterSplit> letter;
  for (auto [pattern, result] : llvm::zip(rule.results, op->getResults()))
    for (OpOperand &use : result.getUses()) {
      MaybeCut cut = wanted(use);
      auto found = cut ? mayEnter(op, pattern, *cut) : std::nullopt;
      if (!found ||
          (letter && (letter->letter != found->letter || letter->blocks != found->blocks)))
        return success();
      letter = found;
    }
  return letter ? enter(op, *letter) : success();
}

/// Returns the cut of an operand that its op needs; nothing if it needs the full value.
SequenceSplit::MaybeCut SequenceSplit::wanted(OpOperand &use) {
  if (auto made = dyn_cast<par::AllToAllOp>(use.getOwner());
      made && exchanged.contains(made) && made.getFrom() < made.getTo())
    return Cut{unsigned(made.getFrom()), 1};
  if (axis == par::kContextAxis &&
      isa<func::ReturnOp>(use.getOwner())) { // each rank returns its shard
    auto cut = cuts.find(use.get());
    return cut == cuts.end() ? MaybeCut() : MaybeCut(cut->second);
  }
  auto found = entered.find(use.getOwner());
  if (found == entered.end())
    return {};
  const ShardRule &rule = propagation.ruleOf(use.getOwner());
  return cutOf(use.getOwner(), rule.operands[use.getOperandNumber()], found->second);
}

//===- Beginning at the inputs

/// An input's sequence is its outermost dimension that is not the batch.
void SequenceSplit::findSequences(Block &block) {
  auto batchDim = [&](BlockArgument argument, unsigned dropped) -> int64_t {
    auto batch = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                        train::TrainDialect::kBatch);
    return batch ? batch.getInt() - dropped : -1;
  };
  auto find = [&](Value value, int64_t batch) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim)
      if (dim != batch && type.getDimSize(dim) > 1) {
        sequences[value] = {static_cast<unsigned>(dim), mirrored ? 2 : 1};
        return;
      }
  };
  for (BlockArgument argument : block.getArguments())
    find(argument, batchDim(argument, 0));
  for (Operation &op : block)
    for (const FlowEdge &edge : entryEdges(&op))
      if (auto argument = dyn_cast<BlockArgument>(edge.outer)) {
        sequences.erase(argument); // its first dimension is that of micro-batches
        find(edge.inner, batchDim(argument, edge.dropped));
      }
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<train::ReadOp>(op) ||
        (llvm::any_of(op->getOperands(),
                      [&](Value operand) { return ofParameters.contains(operand); }) &&
         llvm::all_of(op->getResults(), [&](Value result) { return independent(result); })))
      ofParameters.insert(op->result_begin(), op->result_end());
  });
}

/// Returns true if the op joins a parameter that lacks the letter to data that has it: a table to tokens,
/// not a table of relative positions to a mask.
bool SequenceSplit::joinsParameter(Operation *op, unsigned letter) {
  return llvm::any_of(
      llvm::zip(propagation.ruleOf(op).operands, op->getOperands()), [&](auto pair) {
        auto [pattern, operand] = pair;
        return ofParameters.contains(operand) && par::isDifferentiable(operand.getType()) &&
               !pattern.contains(letter);
      });
}

/// An op between exchanges: if one of its operands comes from a shard of a sequence, all its operands and its results
/// are exchanged.
void SequenceSplit::exchange(Operation *op) {
  SmallVector<par::AllToAllOp> before;
  bool isSplit = false;
  for (Value operand : op->getOperands())
    if (auto made = operand.getDefiningOp<par::AllToAllOp>()) {
      before.push_back(made);
      auto cut = cuts.find(made.getValue());
      isSplit |= cut != cuts.end() && cut->second == Cut{unsigned(made.getFrom()), 1};
    }
  if (!isSplit)
    return;
  for (par::AllToAllOp made : before)
    exchanged.insert(made);
  for (Operation *user : op->getUsers())
    if (auto made = dyn_cast<par::AllToAllOp>(user)) {
      exchanged.insert(made);
      cuts[made.getResult()] = {unsigned(made.getTo()), 1};
    }
}

/// Splits an op if an operand of it is split, or if it joins a parameter to data with a sequence;
/// otherwise only notes which of the results' dimensions is the sequence.
LogicalResult SequenceSplit::follow(Operation *op) {
  exchange(op);
  const ShardRule &rule = propagation.ruleOf(op);
  for (auto [pattern, operand] : llvm::zip(rule.operands, op->getOperands()))
    if (auto cut = cuts.find(operand); cut != cuts.end())
      if (auto letter = mayEnter(op, pattern, cut->second))
        return enter(op, *letter);
  for (auto [pattern, operand] : llvm::zip(rule.operands, op->getOperands())) {
    auto found = sequences.find(operand);
    auto letter = found == sequences.end() ? std::nullopt : mayEnter(op, pattern, found->second);
    if (!letter || rule.letters[letter->letter].summed)
      continue;
    if (joinsParameter(op, letter->letter))
      return enter(op, *letter);
    for (auto [resultPattern, result] : llvm::zip(rule.results, op->getResults()))
      if (MaybeCut cut = cutOf(op, resultPattern, *letter))
        sequences[result] = *cut;
    return success();
  }
  return success();
}

/// Returns the cut that all uses of a value need; none if they need several, or the full value.
SequenceSplit::MaybeCut SequenceSplit::wantedOf(Value value) {
  MaybeCut all;
  for (OpOperand &use : value.getUses()) {
    MaybeCut cut = wanted(use);
    if (!cut || (all && *all != *cut))
      return {};
    all = cut;
  }
  return all;
}

/// Splits an input of which every use works on shards: its readers, those of its micro-batches, and the
/// count of the labels.
LogicalResult SequenceSplit::settleInput(BlockArgument argument) {
  MaybeCut all;
  auto agrees = [&](MaybeCut cut) {
    bool isSame = cut && (!all || *all == *cut);
    all = cut;
    return isSame;
  };
  SmallVector<OpOperand *> counts;
  SmallVector<std::pair<Value, Cut>> inner;
  for (OpOperand &use : argument.getUses()) {
    Operation *user = use.getOwner();
    if (isa<train::TokenCountOp>(user)) {
      counts.push_back(&use);
      continue;
    }
    MaybeCut cut = wanted(use);
    for (const FlowEdge &edge : entryEdges(user))
      if (edge.outer == argument) {
        if ((cut = wantedOf(edge.inner)))
          inner.push_back({edge.inner, *cut});
        if (cut)
          cut->dim += edge.dropped;
      }
    if (!agrees(cut))
      return success();
  }
  if (!all || all->blocks != (mirrored ? 2 : 1))
    return success();
  cuts[argument] = *all;
  for (auto [value, cut] : inner)
    cuts[value] = cut;
  for (OpOperand *use : counts) {
    Operation *count = use->getOwner();
    const RulePattern &pattern = propagation.ruleOf(count).operands[use->getOperandNumber()];
    if (auto letter = mayEnter(count, pattern, *all))
      if (failed(enter(count, *letter)))
        return failure();
  }
  unsigned number = argument.getArgNumber();
  auto known = function.getArgAttrOfType<par::PlacementAttr>(number, kArgumentSplit);
  par::Layout layout = known ? par::Layout::of(known)
                             : par::Layout(cast<RankedTensorType>(argument.getType()).getShape());
  layout.shard(axis, all->dim, placed(*all));
  function.setArgAttr(number, kArgumentSplit, layout.encoding(function.getContext()));
  ++inputs;
  return success();
}

LogicalResult SequenceSplit::runFromInputs(bool apply) {
  findSequences(function.getBody().front());
  SmallVector<Operation *> ops = opsWithRules();
  for (Operation *op : ops)
    if (failed(follow(op)))
      return failure();
  for (Operation *op : llvm::reverse(ops))
    if (failed(backward(op)))
      return failure();
  for (BlockArgument argument : function.getArguments())
    if (failed(settleInput(argument)))
      return failure();
  return apply ? complete({}, /*apply=*/true) : success();
}

bool SequenceSplit::needsGathers() {
  WalkResult found = function.walk([&](Operation *op) {
    bool needs = op != function && entryEdges(op).empty() &&
                 llvm::any_of(op->getOpOperands(), [&](OpOperand &use) {
                   auto have = cuts.find(use.get());
                   return have != cuts.end() && wanted(use) != MaybeCut(have->second);
                 });
    return needs ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
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
    if (have != want) {
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
  Value &known = narrowed[{value, before ? before->getBlock() : behind->getBlock()}][cut.dim];
  if (known && known.getDefiningOp<par::NarrowOp>().getBlocks() == uint64_t(cut.blocks))
    return known;
  OpBuilder builder(function.getContext());
  behind ? builder.setInsertionPointAfter(behind) : builder.setInsertionPoint(before);
  ++narrows;
  auto narrow = par::NarrowOp::create(
      builder, inLayerOf((behind ? behind : before)->getLoc(), value.getLoc()), value.getType(),
      value, axis, builder.getI64IntegerAttr(cut.dim), builder.getI64IntegerAttr(cut.blocks),
      StringAttr(), mirrored ? builder.getUnitAttr() : UnitAttr());
  return known = marked(narrow, mark);
}

/// Returns the full value of a shard: one gather for all users in a block.
Value SequenceSplit::gather(Value value, Cut cut, Operation *before) {
  Value &known = gathered[{value, before->getBlock()}];
  if (known)
    return known;
  OpBuilder builder(before);
  ++gathers;
  auto gather =
      par::AllGatherOp::create(builder, inLayerOf(before->getLoc(), value.getLoc()),
                               value.getType(), value, axis, builder.getI64IntegerAttr(cut.dim),
                               builder.getI64IntegerAttr(cut.blocks), StringAttr(), UnitAttr());
  return known = marked(gather, mark);
}
