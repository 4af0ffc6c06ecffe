//===- Buckets.cpp - see Buckets.h -----------------------------------------------------------===//

#include "lib/Overlap/Buckets.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"

using namespace mlir;
using namespace partita;
using namespace partita::overlap;

/// Returns the op of `block` that defines the value, or null if it comes from outside.
static Operation *definitionIn(Block *block, Value value) {
  Operation *op = value.getDefiningOp();
  return op ? block->findAncestorOpInBlock(*op) : nullptr;
}

static Operation *lastDefinition(Block *block, Operation *op) {
  Operation *last = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *definition = definitionIn(block, operand);
        definition && (!last || last->isBeforeInBlock(definition)))
      last = definition;
  return last;
}

/// Returns the first use of the result by an op that does not join a bucket, directly or through
/// ops that do.
Operation *Buckets::firstUse(Block *block, Operation *op) const {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (Operation *use = joins(user) ? firstUse(block, user) : block->findAncestorOpInBlock(*user);
        use && (!first || use->isBeforeInBlock(first)))
      first = use;
  return first;
}

/// Returns the length of the longest chain of joining users.
unsigned Buckets::heightOf(Operation *op) const {
  unsigned height = 0;
  for (Operation *user : op->getUsers())
    if (joins(user))
      height = std::max(height, heightOf(user) + 1);
  return height;
}

/// Returns the attributes that all ops of a bucket share. The reason only informs reports.
static DictionaryAttr attributesOf(Operation *op) {
  NamedAttrList attributes(provenance::attributesWithout(op));
  attributes.erase("reason");
  return attributes.getDictionary(op->getContext());
}

Buckets::Key Buckets::keyOf(Operation *op) {
  // Sums made once per step and those that a layer continues with do not wait for each other.
  SmallVector<par::CauseAttr> causes = par::causesOf(op);
  bool ofParameters = !causes.empty() && par::isOfParameters(causes.front().getRole());
  // The loss and norms do not belong with sums of the backward pass. In the forward pass, sums join
  // only within a layer, so that all layers have the same collectives.
  Attribute where;
  if (provenance::isBackward(op))
    where = UnitAttr::get(op->getContext());
  else if (cast<CollectiveInterface>(op).getRow().reduces)
    where = provenance::get(op, provenance::kLayer);
  return {op->getName().getIdentifier(), getElementTypeOrSelf(op->getOperand(0).getType()),
          attributesOf(op), ofParameters, where};
}

bool Buckets::isOfChunk(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<par::JoinOp>(user); });
}

int64_t Buckets::sizeFor(int64_t total) const {
  constexpr int64_t least = 256 << 10, most = 25'000'000;
  return bytes > 0 ? bytes : std::clamp(total / 8, least, most);
}

static int64_t wireBytes(Operation *op) { return cast<CollectiveInterface>(op).getWireBytes(); }

bool Buckets::usedBefore(Block *block, const Bucket &bucket, Operation *next) const {
  return llvm::any_of(bucket.members, [&](Operation *member) {
    Operation *use = firstUse(block, member);
    return use && (use == next || use->isBeforeInBlock(next));
  });
}

/// Moves each op directly after its operands' definitions, then sorts by these: operands become
/// ready in that order.
void Buckets::sortByReadiness(Block *block, Ops &ops) const {
  for (Operation *op : ops)
    if (Operation *last = lastDefinition(block, op))
      op->moveAfter(last);
    else
      op->moveBefore(block, block->begin());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

FailureOr<Buckets::Joined> Buckets::joinAll(Operation *module, Predicate joins, int64_t bytes) {
  if (bytes < 0)
    return module->emitError() << "bucket of " << bytes
                               << " bytes, expected at least 1, or 0 for a share of all";
  Buckets all(std::move(joins), bytes);
  SmallVector<Block *> blocks;
  module->walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    all.run(block);
  return all.made;
}

void Buckets::run(Block *block) {
  std::map<unsigned, Ops, std::greater<>> byHeight;
  for (Operation &op : *block)
    if (joins(&op))
      byHeight[heightOf(&op)].push_back(&op);
  for (auto &[height, ops] : byHeight)
    run(block, ops);
}

void Buckets::run(Block *block, Ops &ops) {
  sortByReadiness(block, ops);
  SmallVector<Bucket> buckets;
  llvm::DenseMap<Key, unsigned> open;
  llvm::DenseMap<Key, int64_t> totals;
  for (Operation *op : ops)
    totals[keyOf(op)] += wireBytes(op);
  for (Operation *op : ops) {
    Key key = keyOf(op);
    auto found = open.find(key);
    bool mayJoin = found != open.end() && !usedBefore(block, buckets[found->second], op);
    made.sizeCounts |= mayJoin;
    if (found != open.end() && (!mayJoin || buckets[found->second].bytes >= sizeFor(totals[key])))
      found = (open.erase(found), open.end());
    if (found == open.end()) {
      found = open.try_emplace(key, buckets.size()).first;
      buckets.emplace_back();
    }
    buckets[found->second].members.push_back(op);
    buckets[found->second].bytes += wireBytes(op);
  }
  for (const Bucket &bucket : buckets)
    join(bucket);
  made.count += static_cast<int64_t>(buckets.size());
}

void Buckets::join(const Bucket &bucket) {
  if (bucket.members.size() == 1)
    return;
  Operation *last = bucket.members.back();
  SmallVector<Value> results;
  SmallVector<Location> locs;
  OpBuilder builder(last);
  OperationState joined(last->getLoc(), last->getName());
  for (Operation *op : bucket.members) {
    joined.addOperands(op->getOperands());
    joined.addTypes(op->getResultTypes());
    llvm::append_range(results, op->getResults());
    locs.push_back(op->getLoc());
  }
  joined.location = builder.getFusedLoc(locs);
  joined.addAttributes(last->getAttrs());
  Operation *made = builder.create(joined);
  // That of all, or none.
  if (llvm::any_of(bucket.members,
                   [&](Operation *op) { return op->getAttr("reason") != last->getAttr("reason"); }))
    made->removeAttr("reason");
  for (auto [before, after] : llvm::zip(results, made->getResults()))
    before.replaceAllUsesWith(after);
  for (Operation *op : bucket.members)
    op->erase();
}
