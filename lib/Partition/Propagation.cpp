//===- Propagation.cpp - splits follow the letters of rules -----------------------------------===//

#include "lib/Partition/Propagation.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace mlir;
using namespace partita;
using par::AxisSplit;
using par::DimSplit;

//===----------------------------------------------------------------------------------------------===//
// Rules and seeds
//===----------------------------------------------------------------------------------------------===//

LogicalResult Propagation::run() {
  if (failed(collect()))
    return failure();
  for (const Seed &seed : seeds)
    split(nullptr, seed.value, seed.dim, seed.split);
  settle();
  return success();
}

/// Seeds the shards of a move: a gather's operand, a narrow's result, both of an exchange.
void Propagation::seedMove(Operation *op) {
  if (auto move = dyn_cast<par::ReshardInterface>(op); move && !op->hasAttr(kUndecided))
    seed(move.getShard(), move.getDim(), {move.getAxisAttr(), move.getShardBlocks()});
  if (auto exchange = dyn_cast<par::AllToAllOp>(op)) {
    StringAttr axis = exchange.getAxisAttr();
    seed(exchange.getValue(), exchange.getFrom(), {axis, exchange.blocksAlong(exchange.getFrom())});
    seed(exchange.getResult(), exchange.getTo(), {axis, exchange.blocksAlong(exchange.getTo())});
  }
}

LogicalResult Propagation::collect() {
  llvm::DenseMap<StringAttr, Value> reads;
  llvm::DenseMap<StringAttr, par::PlacementAttr> seeds;
  llvm::DenseMap<StringAttr, StringAttr> kept;
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (auto words = parameter->getAttrOfType<StringAttr>(kKeepFull))
      kept[parameter.getSymNameAttr()] = words;
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (auto split = parameter->getAttrOfType<par::PlacementAttr>(kArgumentSplit))
      seeds[parameter.getSymNameAttr()] = split;
  for (auto function : module.getOps<func::FuncOp>()) {
    WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (hasRule(op)) {
        OpRule entry;
        std::string error;
        const ShardRule *rule = par::ruleOf(op, error);
        if (!rule || !par::letterSizes(*rule, op, entry.sizes, error)) {
          op->emitError() << error;
          return WalkResult::interrupt();
        }
        entry.rule = *rule;
        rules.insert({op, std::move(entry)});
      }
      seedMove(op);
      if (auto read = dyn_cast<train::ReadOp>(op)) {
        StringAttr symbol = read.getSymbolAttr().getAttr();
        auto [first, isNew] = reads.try_emplace(symbol, read.getResult());
        firstRead[read.getResult()] = first->second;
        if (StringAttr words = kept.lookup(symbol); words && isNew)
          keptFull[read.getResult()] = words;
        if (!isNew)
          otherReads[first->second].push_back(read.getResult());
        if (auto seed = seeds.lookup(symbol); seed && isNew) {
          splits[read.getResult()] = par::Layout::of(seed).splits;
          touch(read.getResult());
        }
      }
      enqueue(op);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    for (BlockArgument argument : function.getArguments())
      if (auto split = function.getArgAttrOfType<par::PlacementAttr>(argument.getArgNumber(),
                                                                     kArgumentSplit))
        splits[argument] = par::Layout::of(split).splits;
  }
  return success();
}

Value Propagation::canonical(Value value) const {
  Value first = firstRead.lookup(value);
  return first ? first : value;
}

par::Layout Propagation::layoutOf(Value value) const {
  par::Layout layout(cast<RankedTensorType>(value.getType()).getShape());
  if (auto found = splits.find(canonical(value)); found != splits.end())
    layout.splits = found->second;
  return layout;
}

//===----------------------------------------------------------------------------------------------===//
// Propagation
//===----------------------------------------------------------------------------------------------===//

void Propagation::settle() {
  while (!pending.empty() && !(trial && trial->stop)) {
    Operation *op = pending.front();
    pending.pop_front();
    isPending.erase(op);
    visit(op);
  }
  pending.clear();
  isPending.clear();
}

void Propagation::enqueue(Operation *op) {
  if (isPending.insert(op).second)
    pending.push_back(op);
}

/// Enqueues all ops that a value's splits concern.
void Propagation::touch(Value value) {
  auto around = [&](Value alias) {
    if (Operation *op = alias.getDefiningOp())
      enqueue(op);
    else
      enqueue(cast<BlockArgument>(alias).getOwner()->getParentOp());
    for (Operation *user : alias.getUsers()) {
      enqueue(user);
      if (user->hasTrait<OpTrait::IsTerminator>())
        enqueue(user->getParentOp());
    }
  };
  around(value);
  for (Value other : otherReads.lookup(value))
    around(other);
}

void Propagation::visit(Operation *op) {
  if (rules.contains(op))
    return visitRule(op);
  if (isa<par::ReshardInterface, par::AllToAllOp>(op))
    return uniteMoved(op, op->getAttrOfType<StringAttr>("axis"));
  for (auto &edges : {entryEdges(op), exitEdges(op)})
    for (const FlowEdge &edge : edges)
      unite(edge);
}

void Propagation::unite(const FlowEdge &edge) {
  Value innerValue = edge.inner;
  Operation *by = innerValue.getParentBlock()->getParentOp();
  par::Layout outer = layoutOf(edge.outer), inner = layoutOf(edge.inner);
  for (size_t i = 0; i < inner.splits.size(); ++i) {
    for (const AxisSplit &axis : outer.splits[i + edge.dropped])
      split(by, edge.inner, i, axis);
    for (const AxisSplit &axis : inner.splits[i])
      split(by, edge.outer, i + edge.dropped, axis);
  }
}

/// Applies splits of a shard to the full value and vice versa, except for the axis of the move.
void Propagation::uniteMoved(Operation *move, StringAttr axis) {
  Value from = move->getOperand(0), to = move->getResult(0);
  for (auto [a, b] : {std::pair(from, to), std::pair(to, from)})
    for (auto [dim, axes] : llvm::enumerate(layoutOf(a).splits))
      for (const AxisSplit &other : axes)
        if (other.axis != axis)
          split(move, b, dim, other);
}

/// Splits made earlier, over another axis or before an attempt, have been decided and are not
/// forbidden.
bool Propagation::isForbidden(const RuleLetter &letter, StringAttr axis) const {
  bool isTried = trial && axis == trialAxis && lastResort == LastResort::No;
  return letter.never && (!letter.byForm || isTried);
}

void Propagation::visitRule(Operation *op) {
  const ShardRule &rule = rules.find(op)->second.rule;
  ArrayRef<int64_t> sizes = rules.find(op)->second.sizes;
  SmallVector<DimSplit> letters(rule.letters.size());
  llvm::SmallDenseMap<StringAttr, unsigned> taken;
  auto forEach = [&](auto act) {
    for (auto [pattern, value] : llvm::zip(rule.operands, op->getOperands()))
      for (auto [i, dim] : llvm::enumerate(pattern.dims))
        act(value, static_cast<unsigned>(i), dim);
    for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
      for (auto [i, dim] : llvm::enumerate(pattern.dims))
        act(value, static_cast<unsigned>(i), dim);
  };
  forEach([&](Value value, unsigned i, const RuleDim &dim) {
    auto known = splits.find(canonical(value));
    if (known == splits.end())
      return;
    for (const AxisSplit &axis : known->second[i]) {
      auto split = par::splitLetter(dim, axis.blocks, sizes);
      if (!split && dim.isPart()) {
        int64_t size = sizes[dim.letters.front()], end = dim.first + size;
        bool isOneOf = dim.first % size == 0 && dim.full % size == 0 && axis.blocks.sizes.empty();
        stopAt(op,
               llvm::formatv("'{0}' cannot be split along dimension {1} of size {2}", op->getName(),
                             i, dim.full),
               isOneOf ? dim.full / size / axis.blocks.count : 1,
               {{dim.first, dim.full}, {end, dim.full}});
        continue;
      }
      if (!split) {
        stopAt(op, llvm::formatv("{0} would split a dimension of '{1}' where no letter of its rule "
                                 "begins",
                                 axis.axis.getValue(), op->getName()));
        continue;
      }
      const RuleLetter &letter = rule.letters[split->letter];
      if (isForbidden(letter, axis.axis)) {
        bool isFirst = trial && !trial->stop;
        stopAt(op,
               llvm::formatv(letter.byForm
                                 ? "'{0}' is split along dimension {1} of size {2} as a "
                                   "last resort alone"
                                 : "'{0}' cannot be split along dimension {1} of size {2}",
                             op->getName(), i, sizes[split->letter]),
               split->blocks.sizes.empty() ? sizes[split->letter] / split->blocks.count : 0);
        if (isFirst)
          trial->stop->isLastResort = letter.byForm;
        continue;
      }
      if (!par::allows(letter, split->blocks)) {
        stopAt(op, llvm::formatv("'{0}' cannot be split within blocks of dimension {1}",
                                 op->getName(), i));
        continue;
      }
      if (taken.try_emplace(axis.axis, split->letter).first->second != split->letter) {
        stopAt(op, llvm::formatv("{0} would split two dimensions of '{1}'", axis.axis.getValue(),
                                 op->getName()));
        continue;
      }
      DimSplit &axes = letters[split->letter];
      if (llvm::none_of(axes, [&](const AxisSplit &other) { return other.axis == axis.axis; }))
        axes.push_back({axis.axis, split->blocks});
    }
  });
  forEach([&](Value value, unsigned i, const RuleDim &dim) {
    for (unsigned letter : dim.letters)
      for (const AxisSplit &axis : letters[letter]) {
        // Around a part the dimension may be split in any way.
        par::Layout layout = layoutOf(value);
        if (dim.isPart() && layout.dimOf(axis.axis) == static_cast<int>(i))
          if (auto found = par::splitLetter(dim, layout.blocksOf(axis.axis), sizes);
              found && found->blocks == axis.blocks)
            continue;
        split(op, value, i, {axis.axis, par::blocksOfDim(dim, {letter, axis.blocks}, sizes)});
      }
  });
  if (trial && !taken.empty())
    trial->ops.insert(op);
}

/// Returns true if `outer`, over that many parts, distributes blocks of `inner` as a whole. Then
/// neither makes the other's shards smaller.
static bool dealsBlocks(const AxisSplit &outer, int64_t parts, const AxisSplit &inner) {
  return outer.blocks.count < inner.blocks.count &&
         inner.blocks.count / outer.blocks.count % parts == 0;
}

/// Returns the smallest size that does not divide or, if all divide, the smallest.
static int64_t leastDivisible(ArrayRef<int64_t> sizes, int64_t parts) {
  int64_t least = sizes.front();
  for (int64_t size : sizes)
    if (std::pair(size % parts == 0, size) < std::pair(least % parts == 0, least))
      least = size;
  return least;
}

void Propagation::split(Operation *by, Value anyValue, unsigned dim, AxisSplit axis) {
  Value value = canonical(anyValue);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return;
  par::Layout layout = layoutOf(value);
  if (int found = layout.dimOf(axis.axis); found >= 0) {
    if (found != static_cast<int>(dim) || layout.blocksOf(axis.axis) != axis.blocks)
      stopAt(by, llvm::formatv("{0} already splits another dimension of the same value",
                               axis.axis.getValue()));
    return;
  }
  if (StringAttr words = keptFull.lookup(value)) {
    auto symbol = cast<train::ReadOp>(value.getDefiningOp()).getSymbol();
    if (trial && !trial->kept)
      trial->kept = Stop{
          by,
          llvm::formatv("it would split '{0}', which '{1}' keeps full", symbol, words.getValue()),
          0,
          {}};
    return;
  }
  // Every rank of a tensor-parallel group gets the same inputs.
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()))
    stopAt(by, llvm::formatv("{0} would split an input", axis.axis.getValue()));
  int64_t parts = mesh.sizeOf(axis.axis.getValue());
  int64_t left = leastDivisible(axis.blocks.sizesIn(type.getDimSize(dim)), parts);
  bool isUnequal = !axis.blocks.sizes.empty() || layout.unequalDim() == static_cast<int>(dim);
  if (isUnequal && !layout.splits[dim].empty())
    return stopAt(by, "unequal blocks of a dimension cannot be split over two axes");
  for (const AxisSplit &other : layout.splits[dim])
    if (!dealsBlocks(other, mesh.sizeOf(other.axis), axis) && !dealsBlocks(axis, parts, other))
      left /= mesh.sizeOf(other.axis);
  if (trial && left % parts != 0) {
    if (axis.blocks == 1 && layout.splits[dim].empty() && par::shardSize(left, parts))
      trial->uneven = left;
    else if (trial->indivisible == 0 || left < trial->indivisible)
      trial->indivisible = left, trial->indivisibleAt = by;
  }
  if (left < parts && !trial)
    return;
  if (trial)
    before.push_back({value, layout.splits});
  layout.shard(axis.axis, dim, axis.blocks);
  splits[value] = layout.splits;
  touch(value);
}

void Propagation::stopAt(Operation *op, const Twine &why, int64_t blocks,
                         ArrayRef<std::pair<int64_t, int64_t>> cuts) {
  if (trial && !trial->stop)
    trial->stop = Stop{op, why.str(), blocks, SmallVector<std::pair<int64_t, int64_t>, 2>(cuts)};
}

void Propagation::checkUneven(Attempt &tried) const {
  for (Operation *op : tried.ops) {
    const OpRule &entry = rules.find(op)->second;
    SmallVector<par::Layout, 2> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(layoutOf(operand));
    for (Value result : op->getResults())
      results.push_back(layoutOf(result));
    if (par::unevenProblem(op, entry.rule, entry.sizes, operands, results, mesh).empty())
      continue;
    tried.indivisible = tried.uneven;
    tried.indivisibleAt = op;
    return;
  }
}

Attempt Propagation::attempt(Value value, unsigned dim, StringAttr axis, par::Blocks blocks,
                             function_ref<bool(const Attempt &)> pays, LastResort resort) {
  Attempt result;
  trial = &result;
  trialAxis = axis;
  lastResort = resort;
  before.clear();
  split(value.getDefiningOp(), value, dim, {axis, blocks});
  settle();
  if (blocks.sizes.size() > par::Blocks::kMostUnequal)
    stopAt(value.getDefiningOp(), llvm::formatv("it is {0} unequal blocks, more than {1}",
                                                blocks.count, par::Blocks::kMostUnequal));
  trial = nullptr;
  if (!result.stop && result.indivisible == 0 && result.uneven != 0)
    checkUneven(result);
  if (!result.stop && result.indivisible == 0)
    result.stop = result.kept;
  result.pays = !result.stop && pays(result);
  if (!result.holds())
    for (auto &[changed, old] : llvm::reverse(before))
      splits[changed] = old;
  return result;
}

/// Returns the blocks to try next: cut where the op that stopped them cuts, or each subdivided as
/// often as the stop says.
static par::Blocks finerBlocks(const par::Blocks &blocks, const Stop &stop, int64_t size) {
  if (stop.cuts.empty() && blocks.sizes.empty() && stop.blocks > 1)
    return blocks.count * stop.blocks;
  std::set<int64_t> ends;
  int64_t end = 0;
  for (int64_t block : blocks.sizesIn(size))
    ends.insert(end += block);
  for (auto [at, of] : stop.cuts)
    if (at > 0 && at < of && at * size % of == 0)
      ends.insert(at * size / of);
  SmallVector<int64_t> sizes;
  int64_t begin = 0;
  for (int64_t next : ends)
    sizes.push_back(next - std::exchange(begin, next));
  return par::Blocks::of(sizes);
}

Attempt Propagation::attemptInBlocks(Value value, unsigned dim, StringAttr axis,
                                     function_ref<bool(const Attempt &)> pays, LastResort resort) {
  int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  std::optional<Stop> first;
  for (par::Blocks blocks = 1;;) {
    Attempt tried = attempt(value, dim, axis, blocks, pays, resort);
    tried.first = first = first ? first : tried.stop;
    par::Blocks finer = tried.stop ? finerBlocks(blocks, *tried.stop, size) : blocks;
    if (finer == blocks || finer.count >= size)
      return tried;
    blocks = finer;
  }
}

void Propagation::annotate() {
  SmallVector<Operation *> ops;
  for (auto &[op, rule] : rules)
    ops.push_back(op);
  module.walk([&](Operation *op) {
    if (isa<train::ReadOp, par::ReshardInterface, par::AllToAllOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    SmallVector<Attribute> placements;
    for (Value result : op->getResults())
      placements.push_back(layoutOf(result).encoding(op->getContext()));
    if (llvm::none_of(placements, [](Attribute placement) { return placement; }))
      continue;
    for (Attribute &placement : placements)
      if (!placement)
        placement = UnitAttr::get(op->getContext());
    op->setAttr(kResultSplits, ArrayAttr::get(op->getContext(), placements));
  }
}
