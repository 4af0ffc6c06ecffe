//===- ReduceInLastSlot.cpp - reductions in the slot that completes their operands -------------===//
//
// A sum over micro-batches is complete in the last slot of the pass that yields it. A reduction
// after the loop that needs only such sums, of one pass, moves there with the ops in between (a
// cast). They all get `train.last`, and the reduced values become last values of the loop. If the
// loop added the sum up after the pass, the pass now does so itself, right after making its part.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Overlap/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace partita {
#define GEN_PASS_DEF_REDUCEINLASTSLOTPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::AccumulateOp;

namespace {

/// A reduction, and what it needs from the loop.
struct Reduction {
  Operation *op = nullptr;
  llvm::SetVector<Operation *> between; ///< ops after the loop that make its operands, in order
  llvm::SetVector<unsigned> sums;
  unsigned pass = 0; ///< the pass that yields them
};

/// Finds the reductions after a loop that can move into it.
class Finder {
public:
  explicit Finder(AccumulateOp loop) : loop(loop) {}

  std::optional<Reduction> find(Operation *op) {
    auto collective = dyn_cast<CollectiveInterface>(op);
    // The forward pass's sum, the loss, is not worth a start of its own.
    if (!collective || !collective.getRow().reduces || !isa<StartableInterface>(op) ||
        !provenance::isBackward(op))
      return std::nullopt;
    Reduction found;
    found.op = op;
    if (!llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand, found); }) ||
        found.sums.empty() || !hasOnePass(found) || !isUsedAlone(found))
      return std::nullopt;
    return found;
  }

private:
  /// Collects the loop's sums, and the ops after it, from which the value is made. Returns true if
  /// these ops could be in the loop.
  bool collect(Value value, Reduction &found) {
    Operation *definer = value.getDefiningOp();
    if (definer == loop) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      return number < loop.getSums().size() && (found.sums.insert(number), true);
    }
    if (!definer || definer->getBlock() != loop->getBlock() || definer->isBeforeInBlock(loop) ||
        found.between.contains(definer))
      return true;
    bool canMove = isMemoryEffectFree(definer) && !isa<CollectiveInterface>(definer) &&
                   llvm::all_of(definer->getOperands(),
                                [&](Value operand) { return collect(operand, found); });
    return canMove && found.between.insert(definer);
  }

  bool hasOnePass(Reduction &found) {
    auto passOf = [&](unsigned sum) {
      return loop.numberOf(*loop.getPart(sum).getOwner()->getParentRegion());
    };
    found.pass = passOf(found.sums.front());
    return llvm::all_of(found.sums, [&](unsigned sum) { return passOf(sum) == found.pass; });
  }

  /// Returns true if nothing else uses what is reduced, since the reduction works in place.
  bool isUsedAlone(const Reduction &found) {
    auto isInside = [&](Operation *user) {
      return user == found.op || found.between.contains(user);
    };
    return llvm::all_of(found.sums,
                        [&](unsigned sum) {
                          return llvm::all_of(loop.getSums()[sum].getUsers(), isInside);
                        }) &&
           llvm::all_of(found.between, [&](Operation *op) {
             return op->hasTrait<OpTrait::ConstantLike>() || llvm::all_of(op->getUsers(), isInside);
           });
  }

  AccumulateOp loop;
};

/// Moves reductions into a loop, which is rebuilt.
class Mover {
public:
  explicit Mover(AccumulateOp loop) : loop(loop), last(loop->getNumRegions()) {
    for (Region &region : loop->getRegions())
      for (OpOperand &handed : region.front().getTerminator()->getOpOperands())
        if (OpResult behind = loop.getHandingOut(handed))
          handOut(loop.numberOf(region), handed.get(), behind);
  }

  void move(const Reduction &found) {
    IRMapping mapping;
    OpBuilder builder(loop);
    Block &block = loop->getRegion(found.pass).front();
    Operation *latest = nullptr;
    for (unsigned sum : found.sums) {
      Value full = grown(sum);
      mapping.map(loop.getSums()[sum], full);
      Operation *definer = full.getDefiningOp();
      if (definer && definer->getBlock() == &block && (!latest || latest->isBeforeInBlock(definer)))
        latest = definer;
    }
    if (latest)
      builder.setInsertionPointAfter(latest);
    else
      builder.setInsertionPointToStart(&block);
    for (Operation *op : found.between)
      cloneLast(builder, op, mapping);
    Operation *moved = cloneLast(builder, found.op, mapping);
    for (auto [inside, behind] : llvm::zip(moved->getResults(), found.op->getResults()))
      handOut(found.pass, inside, behind);
    obsolete.push_back(found.op);
    llvm::append_range(obsolete, llvm::reverse(found.between));
  }

  void finish() {
    OpBuilder builder(loop);
    AccumulateOp made = loop.withLast(builder, last);
    unsigned number = 0;
    for (const SmallVector<Value> &ofPass : behind)
      for (Value value : ofPass)
        value.replaceAllUsesWith(made.getLast()[number++]);
    for (Operation *op : obsolete)
      if (op->use_empty())
        op->erase();
    loop.erase();
  }

private:
  void handOut(unsigned pass, Value inside, Value result) {
    last[pass].push_back(inside);
    behind.resize(last.size());
    behind[pass].push_back(result);
  }

  static Operation *cloneLast(OpBuilder &builder, Operation *op, IRMapping &mapping) {
    Operation *made = builder.clone(*op, mapping);
    made->setAttr(train::TrainDialect::kLast, builder.getUnitAttr());
    // What stands between belonged to the update: the rank's shard of a sum, say.
    made->setLoc(provenance::backward(made->getLoc()));
    return made;
  }

  /// Returns the sum after adding this part, which the pass itself now does.
  Value grown(unsigned sum) {
    OpOperand &part = loop.getPart(sum);
    Value own = part.get();
    if (loop.getSoFar(sum))
      return own;
    Value soFar = loop.growSum(sum);
    OpBuilder builder(loop);
    Block *block = part.getOwner()->getBlock();
    if (Operation *definer = own.getDefiningOp(); definer && definer->getBlock() == block)
      builder.setInsertionPointAfter(definer);
    else
      builder.setInsertionPointToStart(block);
    Value full = add(builder, soFar, own);
    part.set(full);
    return full;
  }

  /// Adds in one kernel, if the part has 16 bits.
  static Value add(OpBuilder &builder, Value soFar, Value part) {
    Location loc = part.getLoc();
    Type type = soFar.getType();
    if (part.getType() == type)
      return tx::AddOp::create(builder, loc, TypeRange{type}, ValueRange{soFar, part})
          ->getResult(0);
    auto fusion = tx::FusionOp::create(builder, loc, TypeRange{type}, ValueRange{soFar, part});
    OpBuilder::InsertionGuard guard(builder);
    Block *body =
        builder.createBlock(&fusion.getBody(), {}, TypeRange{type, part.getType()}, {loc, loc});
    Value wide = tx::CastOp::create(builder, loc, type, body->getArgument(1));
    Value sum =
        tx::AddOp::create(builder, loc, TypeRange{type}, ValueRange{body->getArgument(0), wide})
            ->getResult(0);
    tx::FusedOp::create(builder, loc, ValueRange{sum});
    return fusion.getOutputs().front();
  }

  AccumulateOp loop;
  std::vector<SmallVector<Value>> last, behind; ///< by pass: values in the loop, and after it
  SmallVector<Operation *> obsolete;
};

struct ReduceInLastSlot : partita::impl::ReduceInLastSlotPassBase<ReduceInLastSlot> {
  void runOnOperation() override {
    SmallVector<AccumulateOp> loops;
    getOperation().walk([&](AccumulateOp loop) {
      if (loop.getOrder())
        loops.push_back(loop);
    });
    for (AccumulateOp loop : loops)
      run(loop);
  }

private:
  void run(AccumulateOp loop) {
    SmallVector<Reduction> found;
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
      if (std::optional<Reduction> reduction = Finder(loop).find(op))
        found.push_back(std::move(*reduction));
    if (found.empty())
      return;
    Mover mover(loop);
    for (const Reduction &reduction : found)
      mover.move(reduction);
    mover.finish();
    moved += found.size();
  }
};

} // namespace
