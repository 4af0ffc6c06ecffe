//===- FuseElementwise.cpp - one loop for connected elementwise ops ---------------------------===//
//
// Walks over each block once, in order. An elementwise op joins the groups of its operands if all
// their results have the shape and placement of its own and no op outside has used one of them yet.
// The fusion takes the place of its last member, after all its inputs and before all its users. (An
// earlier use by an op that is no member would read a value that is not computed yet.)
//
// Then groups of one layer and pass that read the same value are joined, which saves reading it
// again: the later one moves up to the earlier one, if its inputs are there. Its results live longer
// for it, so it also has to be what keeps as many bytes of its inputs alive. In the backward pass of a
// gated MLP these are the gradients of the gate and of the other factor.
//
// Groups of one op are left alone.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Fuse/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns true if a loop over elements can compute the op; scalars are not worth a kernel.
bool isWorthLoop(Operation *op) {
  return tx::isElementwise(op) && cast<RankedTensorType>(op->getResult(0).getType()).getRank() > 0;
}

/// Returns what two ops must have in common to share a loop.
std::pair<ArrayRef<int64_t>, Attribute> loopOf(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return {type.getShape(), type.getEncoding()};
}

bool isSplat(Value value) {
  auto constant = value.getDefiningOp<tx::ConstantOp>();
  return constant && constant.getValue().isSplat();
}

class BlockFusion {
public:
  explicit BlockFusion(Block &block) : block(block) {}

  std::pair<unsigned, unsigned> run() {
    repeatWidening();
    for (Operation &op : block)
      if (isWorthLoop(&op))
        visit(&op);
    joinSiblings();
    unsigned kernels = 0, fused = 0;
    for (auto &[leader, group] : allGroups())
      if (group.size() > 1) {
        fuse(group);
        ++kernels;
        fused += group.size();
      }
    return {kernels, fused};
  }

private:
  /// Clones a widening from 16 bits for each loop that uses it, so that half as many bytes are
  /// stored and read.
  void repeatWidening() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto cast = dyn_cast<tx::CastOp>(op);
      if (!cast || !widens(cast) || cast->hasOneUse())
        continue;
      for (OpOperand &use : llvm::make_early_inc_range(cast->getUses()))
        if (use.getOwner()->getBlock() == &block && isWorthLoop(use.getOwner()))
          use.set(OpBuilder(use.getOwner()).clone(op)->getResult(0));
      if (cast->use_empty())
        cast->erase();
    }
  }

  static bool widens(tx::CastOp cast) {
    auto from = dyn_cast<FloatType>(cast.getX().getType().getElementType());
    auto to = dyn_cast<FloatType>(cast.getType().getElementType());
    return from && to && from.getWidth() < to.getWidth();
  }

  void visit(Operation *op) {
    groups.insert(op);
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || producer->getBlock() != &block || !groups.contains(producer) ||
          groups.isEquivalent(producer, op) || loopOf(producer) != loopOf(op))
        continue;
      if (nobodyWaits(producer, op) && nobodyWaits(op, op))
        groups.unionSets(producer, op);
    }
  }

  /// Returns true if no op outside of the groups of `member` and `end` uses a member of the former
  /// before `end`.
  bool nobodyWaits(Operation *member, Operation *end) {
    Operation *leader = groups.getLeaderValue(member), *other = groups.getLeaderValue(end);
    for (Operation *inner : membersOf(leader))
      for (Operation *user : inner->getUsers()) {
        Operation *here = block.findAncestorOpInBlock(*user);
        bool member = groups.contains(here) && (groups.getLeaderValue(here) == leader ||
                                                groups.getLeaderValue(here) == other);
        if (here != end && !member && here->isBeforeInBlock(end))
          return false;
      }
    return true;
  }

  /// Returns the groups in the order of their first members, each in the order of the block.
  llvm::MapVector<Operation *, SmallVector<Operation *>> allGroups() {
    llvm::MapVector<Operation *, SmallVector<Operation *>> members;
    for (Operation &op : block)
      if (groups.contains(&op))
        members[groups.getLeaderValue(&op)].push_back(&op);
    return members;
  }

  /// What a group reads from memory.
  static llvm::SetVector<Value> inputsOf(ArrayRef<Operation *> group) {
    llvm::SmallPtrSet<Operation *, 8> inside(llvm::from_range, group);
    llvm::SetVector<Value> inputs;
    for (Operation *op : group)
      for (Value operand : op->getOperands())
        if (!inside.contains(operand.getDefiningOp()) && !isSplat(operand))
          inputs.insert(operand);
    return inputs;
  }

  void joinSiblings() {
    for (auto &[leader, group] : allGroups()) {
      if (membersOf(groups.getLeaderValue(leader)).size() != group.size())
        continue; // an earlier one has joined it, and would have to move along
      Operation *sibling = siblingOf(group);
      if (!sibling)
        continue;
      groups.unionSets(sibling, leader);
      for (Operation *op : group) {
        op->moveAfter(sibling);
        sibling = op;
      }
    }
  }

  /// Returns the last member of an earlier group that reads a value that this one reads and that this
  /// one can follow at once; or null.
  Operation *siblingOf(ArrayRef<Operation *> group) {
    llvm::SetVector<Value> inputs = inputsOf(group);
    for (Value input : inputs) {
      if (cast<RankedTensorType>(input.getType()).getShape() != loopOf(group.front()).first)
        continue;
      for (Operation *user : input.getUsers()) {
        if (!groups.contains(user) || groups.isEquivalent(user, group.front()) ||
            loopOf(user) != loopOf(group.front()))
          continue;
        Operation *last = lastOf(user);
        if (last->isBeforeInBlock(group.back()) && isOfSamePart(last, group.back()) &&
            canFollow(last, group, inputs))
          return last;
      }
    }
    return nullptr;
  }

  /// Returns true if both are of the forward or of the backward pass, and of one layer.
  static bool isOfSamePart(Operation *a, Operation *b) {
    return provenance::get(a, provenance::kLayer) == provenance::get(b, provenance::kLayer) &&
           provenance::isBackward(a) == provenance::isBackward(b);
  }

  /// Returns true if the group can move behind the op: its inputs are computed by then, nothing needs its
  /// results before, and it frees as many bytes of inputs as its results have.
  bool canFollow(Operation *op, ArrayRef<Operation *> group, const llvm::SetVector<Value> &inputs) {
    llvm::SmallPtrSet<Operation *, 8> inside(llvm::from_range, group);
    auto isNoLater = [&](Operation *other) { // once it is fused into the last op of its group
      Operation *here = block.findAncestorOpInBlock(*other);
      if (here && groups.contains(here))
        here = lastOf(here);
      return !here || here == op || here->isBeforeInBlock(op);
    };
    auto isOutside = [&](Operation *user) { return !inside.contains(user); };
    int64_t freed = 0, held = 0;
    for (Value input : inputs) {
      Operation *producer = input.getDefiningOp();
      if (producer && !isNoLater(producer))
        return false;
      if (producer && producer->getBlock() == &block &&
          llvm::all_of(llvm::make_filter_range(input.getUsers(), isOutside), isNoLater))
        freed += bytesOf(input.getType());
    }
    for (Operation *member : group) {
      auto users = llvm::make_filter_range(member->getUsers(), isOutside);
      if (llvm::any_of(users, isNoLater))
        return false;
      if (!users.empty())
        held += bytesOf(member->getResultTypes());
    }
    return held <= freed;
  }

  /// Returns the last op of a member's group, whose place the fusion takes.
  Operation *lastOf(Operation *member) {
    SmallVector<Operation *> members = membersOf(groups.getLeaderValue(member));
    return *llvm::max_element(members,
                              [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  }

  SmallVector<Operation *> membersOf(Operation *leader) {
    SmallVector<Operation *> result;
    for (auto it = groups.findLeader(leader); it != groups.member_end(); ++it)
      result.push_back(*it);
    return result;
  }

  void fuse(ArrayRef<Operation *> group) {
    llvm::DenseSet<Operation *> inside(group.begin(), group.end());
    llvm::SetVector<Value> inputs = inputsOf(group);
    SmallVector<Value> outputs;
    for (Operation *op : group)
      if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        outputs.push_back(op->getResult(0));
    if (outputs.empty())
      return; // nobody reads them
    Operation *last = group.back();
    OpBuilder builder(last);
    SmallVector<Location> locs;
    for (Operation *op : group)
      locs.push_back(op->getLoc());
    SmallVector<Value> values(inputs.begin(), inputs.end());
    auto fusion =
        tx::FusionOp::create(builder, last->getLoc(), TypeRange(ValueRange(outputs)), values);
    SmallVector<Location> argumentLocs(values.size(), last->getLoc());
    Block *body =
        builder.createBlock(&fusion.getBody(), {}, TypeRange(ValueRange(values)), argumentLocs);
    IRMapping mapping;
    mapping.map(values, body->getArguments());
    for (Operation *op : group) {
      for (Value operand : op->getOperands())
        if (!mapping.contains(operand) && isSplat(operand))
          builder.clone(*operand.getDefiningOp(), mapping);
      builder.clone(*op, mapping);
    }
    SmallVector<Value> results;
    for (Value output : outputs)
      results.push_back(mapping.lookup(output));
    tx::FusedOp::create(builder, last->getLoc(), results);
    for (auto [output, result] : llvm::zip(outputs, fusion.getOutputs()))
      output.replaceAllUsesWith(result);
    for (Operation *op : llvm::reverse(group))
      op->erase();
  }

  Block &block;
  llvm::EquivalenceClasses<Operation *> groups;
};

struct FuseElementwise : partita::impl::FuseElementwisePassBase<FuseElementwise> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) {
      if (!tx::isFusedKernel(block->getParentOp()))
        blocks.push_back(block);
    });
    for (Block *block : blocks) {
      auto [made, ops] = BlockFusion(*block).run();
      kernels += made;
      fused += ops;
    }
  }
};

} // namespace
