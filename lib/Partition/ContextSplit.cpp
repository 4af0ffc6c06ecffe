//===- ContextSplit.cpp - sequences that are split from the inputs on -----------------------------===//
//
// The walk of SequenceSplit for context parallelism: it begins where a parameter is joined to data that has
// an input's sequence, and ends by splitting the inputs that are only used in shards.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Partition/SequenceSplit.h"

using namespace mlir;
using namespace partita;

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

/// Splits an input if all its uses work on shards, including those in micro-batches and the count of labels.
LogicalResult SequenceSplit::settleInput(BlockArgument argument, bool apply) {
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
      if (failed(enter(count, *letter, all->isCoarse)))
        return failure();
  }
  if (!apply)
    return success();
  unsigned number = argument.getArgNumber();
  auto known = function.getArgAttrOfType<par::PlacementAttr>(number, kArgumentSplit);
  par::Layout layout = known ? par::Layout::of(known)
                             : par::Layout(cast<RankedTensorType>(argument.getType()).getShape());
  layout.shard(axis, all->dim, placed(*all));
  if (inside && !all->isCoarse)
    layout.shard(inside, all->dim, all->blocks);
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
    if (failed(settleInput(argument, apply)))
      return failure();
  return apply ? complete({}, /*apply=*/true) : success();
}

Operation *SequenceSplit::findExchange() {
  Operation *found = nullptr;
  function.walk([&](Operation *op) {
    if (op == function || !entryEdges(op).empty())
      return WalkResult::advance();
    for (OpOperand &use : op->getOpOperands()) {
      auto have = cuts.find(use.get());
      bool isSplit = have != cuts.end();
      MaybeCut want = wanted(use), as = isSplit ? MaybeCut(have->second) : MaybeCut();
      bool isOfAll = ofParameters.contains(use.get()) || independent(use.get()) ||
                     !par::isDifferentiable(use.get().getType());
      if (isSplit && want && want->sameOutside(*as)) // over `inside`, which deals with each chunk
        continue;
      if (want != as && (isSplit || !isOfAll)) {
        found = op;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return found;
}
