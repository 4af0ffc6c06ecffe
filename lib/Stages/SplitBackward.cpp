//===- SplitBackward.cpp - split-backward -------------------------------------------------------===//
//
// The backward region keeps only what its sends and saved values need, since other stages, or
// another chunk on the same stage, wait for those. Everything else may run later, in the weights
// region.
//
//===--------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Analysis/Work.h"
#include "partita/Stages/Passes.h"
#include "partita/Stages/Schedule.h"

namespace partita {
#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;
using train::PassKind;
using train::YieldOp;

namespace {

/// Returns the ops of a backward region that cannot wait: those with effects, including messages,
/// and what they and the saved values need.
llvm::DenseSet<Operation *> needed(Block &block) {
  llvm::DenseSet<Operation *> found;
  SmallVector<Operation *> todo;
  auto add = [&](Operation *op) {
    op = op ? block.findAncestorOpInBlock(*op) : nullptr;
    if (op && found.insert(op).second)
      todo.push_back(op);
  };
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op))
      add(&op);
  for (Value saved : cast<YieldOp>(block.getTerminator()).getSaved())
    add(saved.getDefiningOp());
  while (!todo.empty())
    todo.pop_back_val()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        add(operand.getDefiningOp());
    });
  return found;
}

/// Rebuilds a loop with a weights region for each backward region.
class Splitter {
public:
  explicit Splitter(AccumulateOp from) : from(from) {}

  void run() {
    collect();
    make();
    for (Part &part : parts)
      fill(part);
    to.simplifySaved();
    from.erase();
  }

  /// Returns how many ops moved to weights regions.
  int64_t moved() const {
    int64_t count = 0;
    for (const Part &part : parts)
      count += static_cast<int64_t>(part.ops.size());
    return count;
  }

private:
  struct Part {
    unsigned backward = 0, weights = 0; ///< numbers of the passes
    SmallVector<Operation *> ops;       ///< that move to the weights region
    SmallVector<unsigned> kept, moved;  ///< the sums that the backward and the weights region yield
  };

  void collect() {
    for (Region &region : from.getLater()) {
      unsigned pass = from.numberOf(region);
      if (from.getPass(pass).kind != PassKind::Backward)
        continue;
      Part &part = parts.emplace_back();
      part.backward = pass;
      llvm::DenseSet<Operation *> stay = needed(region.front());
      llvm::DenseSet<Operation *> goes;
      for (Operation &op : region.front().without_terminator())
        if (!stay.contains(&op)) {
          part.ops.push_back(&op);
          goes.insert(&op);
        }
      for (unsigned sum = 0; sum < from.getSums().size(); ++sum)
        if (OpOperand &given = from.getPart(sum); given.getOwner()->getBlock() == &region.front())
          (goes.contains(given.get().getDefiningOp()) ? part.moved : part.kept).push_back(sum);
    }
  }

  /// Makes the loop with empty weights regions after all others; sums are in the order of their
  /// regions.
  void make() {
    SmallVector<train::PassName> passes(ArrayRef(from.getPasses()).drop_front());
    SmallVector<unsigned> order, moved;
    for (Part &part : parts)
      llvm::append_range(moved, part.moved);
    for (unsigned sum = 0; sum < from.getSums().size(); ++sum)
      if (!llvm::is_contained(moved, sum))
        order.push_back(sum);
    llvm::append_range(order, moved);
    for (Part &part : parts) {
      passes.push_back({PassKind::Weights, from.getPass(part.backward).chunk});
      part.weights = passes.size();
    }
    SmallVector<Type> types =
        llvm::map_to_vector(order, [&](unsigned sum) { return from.getSums()[sum].getType(); });
    OpBuilder builder(from);
    to = AccumulateOp::create(builder, from.getLoc(), types, from.getBatches(), passes);
    to->setDiscardableAttrs(from->getDiscardableAttrDictionary());
    for (auto [number, sum] : llvm::enumerate(order))
      from.getSums()[sum].replaceAllUsesWith(to.getSums()[number]);
    for (const Part &part : parts) // before the sums are renumbered
      for (unsigned sum : part.moved)
        gradients[part.weights].push_back(from.getPart(sum).get());
    for (const Part &part : parts)
      for (unsigned sum : part.kept)
        gradients[part.backward].push_back(from.getPart(sum).get());
    for (auto [before, after] : llvm::zip(from->getRegions(), to->getRegions()))
      after.takeBody(before);
    addWeights();
  }

  void addWeights() {
    SmallVector<Value> saved;
    for (unsigned pass = 0; pass < from->getNumRegions(); ++pass)
      llvm::append_range(saved, to.getSaved(pass));
    for (const Part &part : parts) {
      Block &block = to->getRegion(part.weights).emplaceBlock();
      for (BlockArgument microBatch :
           to.getBody().getArguments().take_front(to.getBatches().size()))
        block.addArgument(microBatch.getType(), microBatch.getLoc());
      for (Value value : saved)
        block.addArgument(value.getType(), value.getLoc());
      OpBuilder end = OpBuilder::atBlockEnd(&block);
      YieldOp::create(end, to.getLoc());
    }
  }

  void fill(const Part &part) {
    Block &block = to->getRegion(part.weights).front();
    Operation *end = block.getTerminator();
    yieldOf(part.backward).getValuesMutable().assign(gradients[part.backward]);
    for (Operation *op : part.ops)
      op->moveBefore(end);
    yieldOf(part.weights).getValuesMutable().assign(gradients[part.weights]);
    IRMapping made;
    for (Operation *op : part.ops) {
      OpBuilder before(op);
      op->walk([&](Operation *inner) {
        for (OpOperand &operand : inner->getOpOperands())
          operand.set(inWeights(before, operand.get(), part, made));
      });
    }
  }

  YieldOp yieldOf(unsigned pass) {
    return cast<YieldOp>(to->getRegion(pass).front().getTerminator());
  }

  /// Returns true if the op's results are the same for all micro-batches, e.g. a constant or a
  /// gathered parameter. Saving them would keep an instance for each micro-batch in flight.
  bool isOfStep(Operation *op) {
    if (auto known = ofStep.find(op); known != ofStep.end())
      return known->second;
    bool result = isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
                    return operand.getParentRegion() != op->getParentRegion() ||
                           (operand.getDefiningOp() && isOfStep(operand.getDefiningOp()));
                  });
    return ofStep[op] = result;
  }

  /// Returns a value for use in the weights region. Views, and values that are the same for all
  /// micro-batches, are recomputed; other values of the backward region are saved.
  Value inWeights(OpBuilder &builder, Value value, const Part &part, IRMapping &made) {
    if (value.getParentRegion() != &to->getRegion(part.backward))
      return value;
    if (Value known = made.lookupOrNull(value))
      return known;
    Operation *definer = value.getDefiningOp();
    if (!definer || !(analysis::isView(definer) || isOfStep(definer)))
      return to.save(value, part.weights);
    IRMapping operands;
    for (Value operand : definer->getOperands())
      operands.map(operand, inWeights(builder, operand, part, made));
    made.map(definer->getResults(), builder.clone(*definer, operands)->getResults());
    return made.lookup(value);
  }

  AccumulateOp from, to;
  SmallVector<Part> parts;
  llvm::SmallDenseMap<unsigned, SmallVector<Value>> gradients; ///< by the pass that yields them
  llvm::DenseMap<Operation *, bool> ofStep;
};

struct SplitBackward : partita::impl::SplitBackwardPassBase<SplitBackward> {
  using SplitBackwardPassBase::SplitBackwardPassBase;

  void runOnOperation() override {
    SmallVector<AccumulateOp> loops;
    for (auto module : getOperation().getOps<ModuleOp>())
      if (pipe::positionsOf(module))
        module.walk([&](AccumulateOp loop) {
          if (loop.isUnscheduled() && !isDone(loop))
            loops.push_back(loop);
        });
    if (loops.empty())
      return;
    FailureOr<stages::Schedule> table = stages::scheduleOf(getOperation());
    if (failed(table))
      return signalPassFailure();
    if (!table->splitsBackward)
      return;
    for (AccumulateOp loop : loops) {
      Splitter splitter(loop);
      splitter.run();
      moved += splitter.moved();
      ++split;
    }
  }

private:
  static bool isDone(AccumulateOp loop) {
    return llvm::any_of(loop.getPasses(),
                        [](train::PassName pass) { return pass.kind == PassKind::Weights; });
  }
};

} // namespace
