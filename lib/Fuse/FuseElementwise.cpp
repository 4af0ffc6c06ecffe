//===- FuseElementwise.cpp - one loop for connected elementwise ops ---------------------------===//
//
// Walks over each block once, in order. An elementwise op joins the groups of its operands if all
// their results have the shape and placement of its own and no op outside has used one of them yet.
// The fusion takes the place of its last member, after all its inputs and before all its users. (An
// earlier use by an op that is no member would read a value that is not computed yet.) Groups of
// one op are left alone.
//
//===------------------------------------------------------------------------------------------===//

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
    llvm::MapVector<Operation *, SmallVector<Operation *>> members;
    for (Operation &op : block)
      if (groups.contains(&op))
        members[groups.getLeaderValue(&op)].push_back(&op);
    unsigned kernels = 0, fused = 0;
    for (auto &[leader, group] : members)
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

  SmallVector<Operation *> membersOf(Operation *leader) {
    SmallVector<Operation *> result;
    for (auto it = groups.findLeader(leader); it != groups.member_end(); ++it)
      result.push_back(*it);
    return result;
  }

  void fuse(ArrayRef<Operation *> group) {
    llvm::DenseSet<Operation *> inside(group.begin(), group.end());
    llvm::SetVector<Value> inputs;
    SmallVector<Value> outputs;
    for (Operation *op : group) {
      for (Value operand : op->getOperands())
        if (!(operand.getDefiningOp() && inside.contains(operand.getDefiningOp())) &&
            !isSplat(operand))
          inputs.insert(operand);
      if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        outputs.push_back(op->getResult(0));
    }
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
      if (!isa<tx::FusionOp, tx::FusedMatmulOp>(block->getParentOp()))
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
