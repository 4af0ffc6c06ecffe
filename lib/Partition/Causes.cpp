//===- Causes.cpp - why each conjugate and move is needed -------------------------------------===//

#include "lib/Partition/Causes.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/Seeds.h"
#include <deque>

using namespace mlir;
using namespace partita;
using par::Layout;

Location partita::inLayerOf(Location loc, Location other) {
  Attribute layer = provenance::get(other, provenance::kLayer);
  return layer && !provenance::get(loc, provenance::kLayer)
             ? provenance::with(loc, provenance::kLayer, layer)
             : loc;
}

par::SeedAttr Causes::seedFor(StringRef kind, StringRef words, StringRef parameter) {
  MLIRContext *context = function.getContext();
  SmallVector<Attribute> parameters;
  if (!parameter.empty())
    parameters.push_back(StringAttr::get(context, parameter));
  return par::SeedAttr::get(context, StringAttr::get(context, kind),
                            StringAttr::get(context, words), ArrayAttr::get(context, parameters));
}

void Causes::source(Value value) {
  Layout layout = Layout::of(value.getType());
  for (const par::DimSplit &axes : layout.splits)
    for (const par::AxisSplit &split : axes) {
      par::SeedAttr seed;
      if (auto read = value.getDefiningOp<train::ReadOp>()) {
        Operation *parameter = SymbolTable::lookupNearestSymbolFrom(read, read.getSymbolAttr());
        seed = parameter ? seedOf(parameter, split.axis) : par::SeedAttr();
      } else if (auto argument = dyn_cast<BlockArgument>(value)) {
        auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                          train::TrainDialect::kName);
        seed = seedFor(par::splits(split.axis, par::Splits::Context) ? "context" : "batch",
                       name ? name.getValue() : StringRef());
      }
      trails[{value, split.axis}] = {seed, nullptr};
    }
}

void Causes::same(Value value, Value as) {
  llvm::SetVector<StringAttr> axes;
  Layout::of(as.getType()).axes(axes);
  for (StringAttr axis : axes)
    if (auto found = trails.find({as, axis}); found != trails.end()) {
      Trail trail = found->second; // a copy, since the map grows
      trails[{value, axis}] = trail;
    }
}

/// Returns the op that makes the value which a narrow or gather of a boundary moves; null for an
/// input.
static Operation *makerOf(par::ReshardInterface move) {
  Operation *maker = move;
  do
    maker = maker->getOperand(0).getDefiningOp();
  while (maker && isTransparent(maker));
  return maker;
}

/// Returns the op in whose layer a stage narrows what it sends, or gathers what it receives: the
/// value's maker, as it may be used by other stages alone, or the first user of the gathered value.
/// The move itself has no layer, since the numbering ignores moves.
static Operation *placeOf(par::ReshardInterface move, Operation *maker) {
  if (!move.gathers())
    return maker ? maker : move.getOperation();
  Operation *first = nullptr;
  for (Operation *user : move->getUsers())
    if (!first || (user->getBlock() == first->getBlock() && user->isBeforeInBlock(first)))
      first = user;
  return first ? first : move.getOperation();
}

void Causes::moved(par::ReshardInterface move) {
  StringAttr axis = move.getAxisAttr();
  same(move->getResult(0), move->getOperand(0));
  trails.erase({move->getResult(0), axis});
  Value definer = move->getOperand(0);
  while (definer.getDefiningOp() && isa<tx::SliceOp, par::FOp>(definer.getDefiningOp()))
    definer = definer.getDefiningOp()->getOperand(0);
  bool isContext = par::splits(axis, par::Splits::Context);
  if (auto read = isContext ? train::ReadOp()
                            : definer.getDefiningOp<train::ReadOp>()) { // a block of a fused weight
    std::string name = (read.getSymbol() + "@" + Twine(move.getDim())).str();
    trails[{move->getResult(0), axis}] = {seedFor("analysis", "", name), nullptr};
    pending.push_back({move, par::Role::Block, nullptr, axis});
    return;
  }
  bool isSent = move->removeAttr(kMoved) != nullptr;
  par::SeedAttr seed = seedFor(isSent ? "stages" : isContext ? "context" : "sequence", "");
  trails[{move.getShard(), axis}] = {seed, nullptr};
  if (isSent) { // no rule needs it
    MLIRContext *context = function.getContext();
    Operation *maker = makerOf(move);
    auto none = StringAttr::get(context, "");
    auto name = StringAttr::get(context, maker ? provenance::nameOf(maker) : "");
    note(move, par::CauseAttr::get(context, par::Role::Moved, none, none, none, name,
                                   layers.layerOf(placeOf(move, maker)), layers.count(), seed));
  } else {
    pending.push_back({move, move.gathers() ? par::Role::Full : par::Role::Shard, nullptr, axis});
  }
}

/// Returns true if trail `a` explains a sum of both better: if both are open, the one opened later,
/// since the earlier one, a residual stream's, may already be complete for other users.
bool Causes::isNewer(const Trail &a, const Trail &b) {
  if (!a.opener || !b.opener)
    return a.opener ? true : !b.opener && !b.seed;
  return a.opener->getBlock() == b.opener->getBlock() && b.opener->isBeforeInBlock(a.opener);
}

void Causes::placed(Operation *op, const ShardRule &rule) {
  SmallVector<int64_t> sizes;
  std::string error;
  if (!par::letterSizes(rule, op, sizes, error))
    return;
  llvm::SetVector<StringAttr> axes;
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    Layout::of(value.getType()).axes(axes);
  for (StringAttr axis : axes) {
    int letter = -1;
    Trail trail;
    auto visit = [&](const RulePattern &pattern, Value value, bool isOperand) {
      Layout layout = Layout::of(value.getType());
      if (int dim = layout.dimOf(axis); dim >= 0 && pattern.firstIndexOf < 0)
        if (auto split = par::splitLetter(pattern.dims[dim], layout.blocksOf(axis), sizes))
          letter = static_cast<int>(split->letter);
      par::Kind kind = layout.kind(axis);
      if (kind == par::Kind::Invariant || kind == par::Kind::Replicated)
        return;
      auto known = trails.find({value, axis});
      if (isOperand && known != trails.end() && isNewer(known->second, trail))
        trail = known->second;
    };
    for (auto [pattern, value] : llvm::zip(rule.operands, op->getOperands()))
      visit(pattern, value, true);
    for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
      visit(pattern, value, false);
    if (letter >= 0)
      splits[{op, axis}] = {rule.letters[letter].name, trail.seed};
    for (auto [pattern, result] : llvm::zip(rule.results, op->getResults())) {
      if (letter >= 0)
        trail.opener = pattern.contains(letter) ? nullptr : op;
      trails[{result, axis}] = trail;
    }
  }
}

void Causes::completes(Operation *inserted, Value value, StringAttr axis) {
  Operation *opener = trails.lookup({value, axis}).opener;
  same(inserted->getResult(0), value);
  trails.erase({inserted->getResult(0), axis});
  pending.push_back(
      {inserted, isa<par::MaxOp>(inserted) ? par::Role::Max : par::Role::Sum, opener, axis});
}

void Causes::enters(Operation *inserted, par::Role role, Operation *user, StringAttr axis) {
  same(inserted->getResult(0), inserted->getOperand(0));
  pending.push_back({inserted, role, user, axis});
}

/// Returns the nearest op that the axis splits a letter of, from `user` along users.
Operation *Causes::splitterFrom(Operation *user, StringAttr axis, bool seeded) const {
  constexpr size_t most = 64;
  std::deque<Operation *> queue{user};
  llvm::DenseSet<Operation *> seen{user};
  while (!queue.empty() && seen.size() < most) {
    Operation *op = queue.front();
    queue.pop_front();
    if (auto found = splits.find({op, axis});
        found != splits.end() && (!seeded || found->second.seed))
      return op;
    for (Operation *next : op->getUsers())
      if (seen.insert(next).second)
        queue.push_back(next);
  }
  return nullptr;
}

/// Returns true if the op is needed by the users of its result, not because of its operand.
static bool isForUsers(Operation *inserted) {
  auto move = dyn_cast<par::ReshardInterface>(inserted);
  return isa<par::FOp>(inserted) || (move && move.gathers());
}

/// Returns the layer of the op that needs the conjugate or move. If its result is used in several
/// layers, returns the layer that defines its operand. Ops outside of the loop over micro-batches
/// run once per step.
int64_t Causes::layerOf(Operation *inserted, Operation *op) {
  if (!inserted->getParentOfType<train::AccumulateOp>() &&
      !function.getOps<train::AccumulateOp>().empty())
    return par::CauseAttr::kOnce;
  int64_t layer = layers.layerOf(op);
  for (Operation *user : inserted->getUsers())
    if (int64_t other = layers.layerOf(user);
        layer >= 0 && other >= 0 && other != layer && isForUsers(inserted)) {
      Operation *definer = inserted->getOperand(0).getDefiningOp();
      return definer ? layers.layerOf(definer) : par::CauseAttr::kBefore;
    }
  return layer;
}

/// Notes the first cause of an op, and later ones only if they have other seeds.
void Causes::note(Operation *inserted, par::CauseAttr cause) {
  SmallVector<par::CauseAttr> &known = noted[inserted];
  if (llvm::any_of(known, [&](par::CauseAttr other) { return other.getSeed() == cause.getSeed(); }))
    return;
  known.push_back(cause);
  SmallVector<Attribute> causes(known.begin(), known.end());
  provenance::set(inserted, provenance::kCauses, ArrayAttr::get(cause.getContext(), causes));
}

/// Notes the op that a conjugate was inserted for as its cause. Scalars have no letters, and the
/// next op with letters may be far away.
void Causes::noteWithoutLetter(const Pending &each) {
  Operation *op = each.op ? each.op : each.inserted->getOperand(0).getDefiningOp();
  if (!op) // an argument
    op = each.inserted;
  auto string = [&](StringRef text) { return StringAttr::get(function.getContext(), text); };
  note(each.inserted,
       par::CauseAttr::get(function.getContext(), each.role, string(""), string(""),
                           string(op->getName().getStringRef()), string(provenance::nameOf(op)),
                           layerOf(each.inserted, op), layers.count(), par::SeedAttr()));
}

static par::Role roleOf(Operation *op) {
  if (isa<par::AllToAllOp>(op))
    return par::Role::Dealt;
  auto collective = dyn_cast<CollectiveInterface>(op);
  if (auto move = dyn_cast<par::ReshardInterface>(op);
      move && !(collective && collective.getRow().reduces))
    return move.gathers() ? par::Role::Full : par::Role::Shard;
  return isa<par::FOp>(op)                          ? par::Role::Share
         : isa<par::MaxOp, par::AllReduceMaxOp>(op) ? par::Role::Max
                                                    : par::Role::Sum;
}

/// What nobody has told of: the shards that ranks take of a constant (`localize`), and what stood there.
void Causes::addOthers() {
  llvm::DenseSet<Operation *> known;
  for (const Pending &each : pending)
    known.insert(each.inserted);
  function.walk([&](Operation *op) {
    auto axis = isa<par::FOp, par::GOp, par::MaxOp, par::ReshardInterface, CollectiveInterface>(op)
                    ? op->getAttrOfType<StringAttr>("axis")
                    : StringAttr();
    if (axis && !known.contains(op) && !noted.contains(op))
      pending.push_back({op, roleOf(op), nullptr, axis});
  });
}

void Causes::write() {
  addOthers();
  MLIRContext *context = function.getContext();
  for (const Pending &each : pending) {
    bool opened = each.role == par::Role::Sum || each.role == par::Role::Max;
    Operation *op =
        opened ? each.op : splitterFrom(each.op ? each.op : each.inserted, each.axis, false);
    auto found = op ? splits.find({op, each.axis}) : splits.end();
    if (found == splits.end())
      continue;
    par::SeedAttr seed = found->second.seed;
    if (!seed)
      if (Operation *other = splitterFrom(op, each.axis, true))
        seed = splits.lookup({other, each.axis}).seed;
    auto name = op->getLoc()->findInstanceOf<NameLoc>();
    auto string = [&](StringRef text) { return StringAttr::get(context, text); };
    auto cause = par::CauseAttr::get(
        context, each.role, string(found->second.letter),
        string(cast<ShardInterface>(op).getShardRule()), string(op->getName().getStringRef()),
        name ? name.getName() : string(""), layerOf(each.inserted, op), layers.count(), seed);
    note(each.inserted, cause);
  }
  for (const Pending &each : pending)
    if (!noted.contains(each.inserted))
      noteWithoutLetter(each);
}
