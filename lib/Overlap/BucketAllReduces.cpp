//===- BucketAllReduces.cpp - one collective for many gradients -------------------------------===//
//
// In each block, all-reduces over one axis and for one reason join, in the order in which their
// operands are defined, until a bucket is full. An all-reduce whose result is needed before a later
// operand of the bucket is defined closes the bucket: a bucket stands after its last operand and
// before its first use.
//
// Sums of sums (a norm's gradient over tp, then over dp): the inner ones join first. Being summed
// up again is no use that closes a bucket, for the outer all-reduces move behind it.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "partita/Overlap/Passes.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_BUCKETALLREDUCESPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// The op of `block` that defines the value, or null when it comes from outside.
Operation *definitionIn(Block *block, Value value) {
  Operation *op = value.getDefiningOp();
  return op ? block->findAncestorOpInBlock(*op) : nullptr;
}

Operation *lastDefinition(Block *block, Operation *op) {
  Operation *last = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *definition = definitionIn(block, operand);
        definition && (!last || last->isBeforeInBlock(definition)))
      last = definition;
  return last;
}

/// The first use by anything but an all-reduce, of the result or of what all-reduces make of it.
Operation *firstUse(Block *block, Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (Operation *use = isa<par::AllReduceOp>(user) ? firstUse(block, user)
                                                     : block->findAncestorOpInBlock(*user);
        use && (!first || use->isBeforeInBlock(first)))
      first = use;
  return first;
}

/// How many all-reduces one after another sum up the result again.
unsigned heightOf(par::AllReduceOp op) {
  unsigned height = 0;
  for (Operation *user : op->getUsers())
    if (auto outer = dyn_cast<par::AllReduceOp>(user))
      height = std::max(height, heightOf(outer) + 1);
  return height;
}

int64_t bytesOf(par::AllReduceOp op) {
  int64_t bytes = 0;
  for (Value value : op.getValues()) {
    auto type = cast<RankedTensorType>(value.getType());
    bytes += type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  }
  return bytes;
}

struct Bucket {
  SmallVector<par::AllReduceOp> members;
  int64_t bytes = 0;
};

struct BucketAllReduces : partita::impl::BucketAllReducesPassBase<BucketAllReduces> {
  using BucketAllReducesPassBase::BucketAllReducesPassBase;

  void runOnOperation() override {
    if (bytes < 0) {
      getOperation().emitError() << "bucket of " << bytes.getValue()
                                 << " bytes, expected at least 1, or 0 for a share of all";
      return signalPassFailure();
    }
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      run(block);
  }

private:
  using Key = std::pair<std::pair<Attribute, Attribute>, unsigned>; // axis and reason, of parameters
  static Key keyOf(par::AllReduceOp op) {
    // What is summed once per step does not wait for what a layer goes on with, nor it for that.
    SmallVector<par::CauseAttr> causes = par::causesOf(op.getLoc());
    unsigned ofParameters = !causes.empty() && causes.front().getRole() == "parameter";
    return {{op.getAxisAttr(), op.getReasonAttr()}, ofParameters};
  }

  /// At which size a bucket is closed, of which there may be `total` bytes.
  int64_t sizeFor(int64_t total) const {
    constexpr int64_t least = 256 << 10, most = 25'000'000;
    return bytes > 0 ? bytes.getValue() : std::clamp(total / 8, least, most);
  }

  void run(Block *block) {
    std::map<unsigned, SmallVector<par::AllReduceOp>, std::greater<>> byHeight;
    for (auto op : block->getOps<par::AllReduceOp>())
      byHeight[heightOf(op)].push_back(op);
    for (auto &[height, reduces] : byHeight)
      run(block, reduces);
  }

  void run(Block *block, SmallVectorImpl<par::AllReduceOp> &reduces) {
    // Each directly after its operand: the order in which gradients become ready.
    for (par::AllReduceOp op : reduces)
      if (Operation *last = lastDefinition(block, op))
        op->moveAfter(last);
      else
        op->moveBefore(block, block->begin());
    llvm::sort(reduces, [](auto a, auto b) { return a->isBeforeInBlock(b); });
    SmallVector<Bucket> buckets;
    llvm::DenseMap<Key, unsigned> open;
    llvm::DenseMap<Key, int64_t> totals;
    for (par::AllReduceOp op : reduces)
      totals[keyOf(op)] += bytesOf(op);
    for (par::AllReduceOp op : reduces) {
      Key key = keyOf(op);
      auto found = open.find(key);
      if (found != open.end() && (buckets[found->second].bytes >= sizeFor(totals[key]) ||
                                  usedBefore(block, buckets[found->second], op)))
        found = (open.erase(found), open.end());
      if (found == open.end()) {
        found = open.try_emplace(key, buckets.size()).first;
        buckets.emplace_back();
      }
      buckets[found->second].members.push_back(op);
      buckets[found->second].bytes += bytesOf(op);
    }
    for (Bucket &bucket : buckets)
      join(bucket);
  }

  static bool usedBefore(Block *block, Bucket &bucket, par::AllReduceOp next) {
    return llvm::any_of(bucket.members, [&](par::AllReduceOp member) {
      Operation *use = firstUse(block, member);
      return use && (use == next || use->isBeforeInBlock(next));
    });
  }

  void join(Bucket &bucket) {
    ++buckets;
    if (bucket.members.size() == 1)
      return;
    par::AllReduceOp last = bucket.members.back();
    SmallVector<Value> values, results;
    SmallVector<Type> types;
    SmallVector<Location> locs;
    for (par::AllReduceOp op : bucket.members) {
      llvm::append_range(values, op.getValues());
      llvm::append_range(types, op.getResultTypes());
      llvm::append_range(results, op.getResults());
      locs.push_back(op.getLoc());
    }
    OpBuilder builder(last);
    auto joined = par::AllReduceOp::create(builder, builder.getFusedLoc(locs), types, values,
                                           last.getAxisAttr(), last.getReasonAttr());
    for (auto [before, after] : llvm::zip(results, joined.getResults()))
      before.replaceAllUsesWith(after);
    for (par::AllReduceOp op : bucket.members)
      op.erase();
  }
};

} // namespace
