//===- Recompute.cpp - recomputation in the backward pass -------------------------------------===//
//
// Activation checkpointing (Chen et al., arXiv 1604.06174; selective: Korthikanti et al., arXiv
// 2205.05198). train.accumulate lists the values that the forward pass saves for the backward pass.
// This pass shortens the list: the backward ops of a layer use clones of the forward ops instead.
// The clones start from values that are saved anyway, read through train.barrier, so that nothing
// merges a clone with its original once the two passes are joined.
//
// Per block: recomputes everything inside a layer and saves the layer's inputs.
// Selective: recomputes ops that are cheap relative to their memory (no matmul, no collective), as
// far as cheap ops lead back to saved values.
//
// None: recomputes only what costs nothing: an elementwise op of one saved value whose result only
// elementwise ops of the backward pass read. They read the saved value instead of the result,
// which no longer is written or held: in a gated MLP, silu(gate) beside the gate (as the min-cut
// partitioner of PyTorch's AOTAutograd does).
//
// Partitioned: each rank of tp saves only its shard of a value that all ranks have in full, and
// gathers it for the recomputation (as Megatron-LM distributes saved activations).
//
// Dropout draws its numbers by counter: a clone has the mask of its original.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "lib/Autodiff/SavedValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Work.h"
#include "partita/Autodiff/Passes.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

enum class Policy { Free, Selective, Block };

/// Returns the layer that an op of the forward pass belongs to; none for ops outside of all layers,
/// or with regions or effects.
std::optional<int64_t> layerOf(Operation *op) {
  train::LayerAttr layer = train::LayerAttr::of(op);
  if (!layer || layer.getNumber() < 0 || op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return std::nullopt;
  return layer.getNumber();
}

/// Returns true if the op sums products: its rule has a letter in two operands, but in no result.
bool isMatmul(Operation *op) {
  std::string error;
  const ShardRule *rule = par::ruleOf(op, error);
  if (!rule)
    return true; // unknown, assume the worst
  auto has = [](unsigned letter) {
    return [letter](const RulePattern &pattern) { return pattern.contains(letter); };
  };
  for (unsigned letter = 0; letter < rule->letters.size(); ++letter)
    if (llvm::count_if(rule->operands, has(letter)) > 1 &&
        llvm::none_of(rule->results, has(letter)))
      return true;
  return false;
}

/// Returns true if the op has neither products nor communication, so that memory bandwidth
/// determines its cost.
bool isCheap(Operation *op) {
  return !isa_and_nonnull<par::ParDialect, pipe::PipeDialect>(op->getDialect()) &&
         !isa<CollectiveInterface>(op) && !isMatmul(op);
}

/// The forward and backward pass of one micro-batch.
class Step {
public:
  Step(train::AccumulateOp loop, StringAttr partitionOver)
      : loop(loop), forward(&loop.getBody().front()), backward(&loop.getBackward().front()),
        partitionOver(partitionOver) {
    for (Operation &op : *forward)
      if (std::optional<int64_t> layer = layerOf(&op))
        layers[*layer].push_back(&op);
    for (auto [number, value] : llvm::enumerate(loop.getSaved()))
      arguments.try_emplace(value, loop.getSavedArgument(number));
  }

  /// Returns the bytes of activations that live from the forward to the backward pass.
  int64_t savedBytes() const {
    llvm::SmallSetVector<Value, 32> held;
    for (auto [value, argument] : arguments)
      if (!argument.use_empty())
        if (Value memory = memoryOf(value))
          held.insert(memory);
    int64_t bytes = 0;
    for (Value value : held)
      bytes += bytesOf(value.getType());
    return bytes;
  }

  /// Returns how many of the values that enter layers are kept as shards.
  int64_t shardCount() const {
    return llvm::count_if(shards, [](auto &entry) { return bool(entry.second); });
  }

  SmallVector<int64_t> numbers() {
    return llvm::map_to_vector(layers, [](auto &entry) { return int64_t(entry.first); });
  }

  /// Makes the layer's backward pass recompute what the policy selects. Returns how many ops it
  /// recomputes.
  int64_t apply(int64_t layer, Policy policy) {
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> again; // op -> its backward uses
    for (Operation *op : layers[layer])
      for (Value value : op->getResults())
        if (isSaved(value) && mayRecompute(op, layer, policy))
          for (OpOperand &use : arguments.lookup(value).getUses())
            again[op].push_back(&use);
    if (again.empty())
      return 0;
    Clones clones;
    clones.layer = layer;
    clones.policy = policy;
    if (policy == Policy::Block)
      clones.before = firstOf(again);
    for (auto &[op, uses] : again) {
      if (policy != Policy::Block) { // each by itself, right before its use
        clones.mapping.clear();
        clones.barriers.clear();
        clones.before = nullptr;
        for (OpOperand *use : uses)
          clones.before = earlier(clones.before, ancestor(use->getOwner()));
      }
      Operation *made = clone(op, clones);
      for (OpOperand *use : uses)
        use->set(made->getResult(cast<OpResult>(train::forwardOf(use->get())).getResultNumber()));
    }
    for (auto [full, gathered] : clones.barriers)
      if (gathered.getDefiningOp<zero::GatherOp>())
        useGathered(full, gathered);
    return clones.count;
  }

private:
  /// Ops that are being cloned, to be placed before `before`.
  struct Clones {
    int64_t layer = 0;
    Policy policy = Policy::Free;
    llvm::DenseMap<Operation *, Operation *> mapping;
    llvm::MapVector<Value, Value> barriers;
    int64_t count = 0;
    Operation *before = nullptr;
  };

  Operation *ancestor(Operation *op) { return backward->findAncestorOpInBlock(*op); }
  static Operation *earlier(Operation *a, Operation *b) {
    return !a || (b && b->isBeforeInBlock(a)) ? b : a;
  }
  Operation *firstOf(const llvm::MapVector<Operation *, SmallVector<OpOperand *>> &again) {
    Operation *first = nullptr;
    for (auto &[op, uses] : again)
      for (OpOperand *use : uses)
        first = earlier(first, ancestor(use->getOwner()));
    return first;
  }

  /// Returns the value whose memory is kept if `value` is saved: what it is a view of, or is
  /// gathered or reduced from. Null if this uses no memory of the micro-batch, or is gathered
  /// again.
  Value memoryOf(Value value) const {
    Operation *definer = value.getDefiningOp();
    while (definer && definer->getBlock() == forward && analysis::workOf(definer).bytes == 0) {
      if (definer->getNumOperands() != 1)
        return {};
      value = definer->getOperand(0);
      definer = value.getDefiningOp();
    }
    bool computed =
        definer && definer->getBlock() == forward && isa<RankedTensorType>(value.getType());
    return computed && !train::parameterReadBy(value) ? value : Value();
  }

  bool isSaved(Value value) const {
    BlockArgument argument = arguments.lookup(value);
    return argument && !argument.use_empty() && isa<RankedTensorType>(value.getType());
  }

  /// Returns a value for the backward pass. Saves it unless it is saved already.
  Value kept(OpBuilder &builder, Value value) {
    size_t before = loop.getSaved().size();
    IRMapping made;
    Value kept = autodiff::inBackward(builder, loop, value, made);
    for (size_t number = before; number < loop.getSaved().size(); ++number)
      arguments[loop.getSaved()[number]] = loop.getSavedArgument(number);
    return kept;
  }

  /// Returns the backward pass's values that equal a forward value: the saved value, and the same
  /// views of saved values.
  SmallVector<Value> keptOf(Value value) const {
    SmallVector<Value> found;
    if (BlockArgument argument = arguments.lookup(value))
      found.push_back(argument);
    Operation *definer = value.getDefiningOp();
    if (!definer || !autodiff::isFree(definer) || definer->getNumOperands() != 1)
      return found;
    for (Value source : keptOf(definer->getOperand(0)))
      for (Operation *user : source.getUsers())
        if (user->getName() == definer->getName() &&
            user->getResultTypes() == definer->getResultTypes() &&
            provenance::attributesWithout(user) == provenance::attributesWithout(definer))
          found.push_back(user->getResult(0));
    return found;
  }

  /// Returns true if another layer's forward pass, or anything after the layers, uses a result.
  bool leaves(Operation *op, int64_t layer) {
    return llvm::any_of(op->getUses(), [&](OpOperand &use) {
      auto yield = dyn_cast<train::YieldOp>(use.getOwner());
      bool isSavedOnly = yield && use.getOperandNumber() >= yield.getValues().size();
      return !isSavedOnly && layerOf(use.getOwner()) != layer;
    });
  }

  bool mayRecompute(Operation *op, int64_t layer, Policy policy) {
    switch (policy) {
    case Policy::Free:
      return isFreeAgain(op, layer);
    case Policy::Selective:
      return isCheapAgain(op, layer, 8);
    case Policy::Block:
      return !leaves(op, layer);
    }
    llvm_unreachable("all policies are listed");
  }

  /// Returns true if the op costs nothing in the loops over elements that read its result: they
  /// read its operand instead, which is saved anyway, has its shape and no wider elements.
  bool isFreeAgain(Operation *op, int64_t layer) {
    if (layerOf(op) != layer || !isa<ScalarInterface>(op) || op->getNumResults() != 1)
      return false;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value source;
    for (Value operand : op->getOperands()) {
      Operation *definer = operand.getDefiningOp();
      if (definer && (definer->getBlock() != forward || definer->hasTrait<OpTrait::ConstantLike>()))
        continue;
      if (source && source != operand)
        return false;
      source = operand;
    }
    auto from = source ? dyn_cast<RankedTensorType>(source.getType()) : RankedTensorType();
    if (!from || from.getShape() != type.getShape() || bytesOf(from) > bytesOf(type) ||
        !isSaved(source))
      return false;
    return llvm::all_of(arguments.lookup(op->getResult(0)).getUsers(), [&](Operation *user) {
      return user->getBlock() == backward && isa<ScalarInterface>(user) &&
             cast<RankedTensorType>(user->getResult(0).getType()).getShape() == type.getShape();
    });
  }

  /// Returns true if the op is cheap, and its operands are available in the backward pass anyway or
  /// cheap to recompute in turn.
  bool isCheapAgain(Operation *op, int64_t layer, int depth) {
    if (depth == 0 || layerOf(op) != layer || !isCheap(op))
      return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *definer = operand.getDefiningOp();
      return !definer || definer->getBlock() != forward || isGiven(definer) || isSaved(operand) ||
             isCheapAgain(definer, layer, depth - 1);
    });
  }

  /// Returns true for values that need no memory of the step: parameters and constants.
  static bool isGiven(Operation *op) {
    return isa<train::ReadOp>(op) || op->hasTrait<OpTrait::ConstantLike>() ||
           (isa<par::FOp>(op) && isa_and_nonnull<train::ReadOp>(op->getOperand(0).getDefiningOp()));
  }

  /// Returns the operand for a clone.
  Value operandOf(Value operand, Clones &clones) {
    if (operand.getParentBlock() != forward)
      return operand; // from outside the loop, valid for every micro-batch
    Operation *definer = operand.getDefiningOp();
    bool isOfLayer = definer && layerOf(definer) == clones.layer &&
                     mayRecompute(definer, clones.layer, clones.policy);
    if (isOfLayer || (definer && (isGiven(definer) || sharesShard(definer, clones))))
      return clone(definer, clones)->getResult(cast<OpResult>(operand).getResultNumber());
    if (Value barrier = clones.barriers.lookup(operand))
      return barrier;
    OpBuilder builder(clones.before);
    if (isNumber(operand))
      return kept(builder, operand);
    Value saved = clones.policy == Policy::Block ? shardOf(operand) : Value();
    Location loc = provenance::backward(operand.getLoc());
    if (!provenance::get(loc, provenance::kLayer)) // an argument has no layer
      if (Attribute layer = provenance::get(clones.before, provenance::kLayer))
        loc = provenance::with(loc, provenance::kLayer, layer);
    Value barrier = train::BarrierOp::create(builder, loc, (saved ? saved : operand).getType(),
                                             kept(builder, saved ? saved : operand));
    if (saved)
      barrier = zero::GatherOp::create(builder, gatherLoc(operand, clones.layer), operand.getType(),
                                       barrier, partitionOver, builder.getStringAttr("kept shard"),
                                       /*again=*/UnitAttr())
                    .getResult(0);
    clones.barriers[operand] = barrier;
    return barrier;
  }

  /// Returns true for the number of a micro-batch, by which dropout counts: with a barrier of its own, it
  /// would be another number in memory for nothing, as the values beside it have barriers.
  static bool isNumber(Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    return type && type.getRank() == 0 && type.getElementType().isInteger(64);
  }

  /// Returns true for an `f` whose operand each rank may keep a shard of instead of its result.
  bool sharesShard(Operation *op, const Clones &clones) const {
    auto f = dyn_cast<par::FOp>(op);
    return f && clones.policy == Policy::Block && partitionOver &&
           par::Layout::of(f.getValue().getType()).kind(partitionOver) == par::Kind::Invariant;
  }

  /// Replaces uses of the full value in the backward pass, such as a norm's gradient, by the
  /// gathered one, so that the full value need not be saved.
  void useGathered(Value full, Value gathered) {
    for (Value kept : keptOf(full))
      kept.replaceUsesWithIf(gathered, [&](OpOperand &use) {
        Operation *user = ancestor(use.getOwner());
        return user && gathered.getDefiningOp()->isBeforeInBlock(user);
      });
  }

  /// Returns this rank's shard of a value that all ranks of tp have, taken where it is defined;
  /// null if the value is already sharded, or sharding was not requested.
  Value shardOf(Value full) {
    auto type = cast<RankedTensorType>(full.getType());
    if (!partitionOver || !isa<FloatType>(type.getElementType()) ||
        par::Layout::of(type).kind(partitionOver) != par::Kind::Invariant)
      return {};
    Value &shard = shards[full];
    par::MeshAttr mesh = par::MeshAttr::of(loop);
    if (RankedTensorType part =
            shard ? RankedTensorType() : zero::shardType(type, {partitionOver}, mesh)) {
      OpBuilder builder(loop.getContext());
      builder.setInsertionPointAfterValue(full);
      shard = zero::ShardOp::create(builder, full.getLoc(), part, full, partitionOver);
    }
    return shard;
  }

  /// Returns a location in the layer's backward pass, for `partita explain`.
  Location gatherLoc(Value full, int64_t layer) {
    MLIRContext *context = full.getContext();
    auto none = StringAttr::get(context, "");
    auto name = full.getLoc()->findInstanceOf<NameLoc>();
    train::LayerAttr mark = train::LayerAttr::of(layers[layer].front());
    auto cause =
        par::CauseAttr::get(context, par::Role::Saved, none, none, none,
                            name ? name.getName() : none, layer, mark.getCount(), par::SeedAttr());
    return par::withCause(provenance::backward(layers[layer].front()->getLoc()), cause);
  }

  Operation *clone(Operation *op, Clones &clones) {
    if (Operation *known = clones.mapping.lookup(op))
      return known;
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, operandOf(operand, clones));
    OpBuilder builder(clones.before);
    Operation *made = builder.clone(*op, operands);
    made->setLoc(provenance::backward(op->getLoc()));
    clones.mapping[op] = made;
    clones.count += !isGiven(op);
    return made;
  }

  train::AccumulateOp loop;
  Block *forward, *backward;
  StringAttr partitionOver;                        ///< the axis tp, if sharding was requested
  llvm::MapVector<Value, BlockArgument> arguments; ///< saved values in the backward pass
  llvm::DenseMap<Value, Value> shards;             ///< shards of what enters layers
  std::map<int64_t, SmallVector<Operation *>> layers;
};

struct Recompute : partita::impl::RecomputePassBase<Recompute> {
  using RecomputePassBase::RecomputePassBase;

  void runOnOperation() override {
    if (policy != "none" && policy != "selective" && policy != "block") {
      getOperation().emitError() << "recompute policy '" << policy
                                 << "' is unknown; known: none, selective, block";
      return signalPassFailure();
    }
    if (budget < 0) {
      getOperation().emitError() << "budget=" << budget.getValue()
                                 << ", expected a number of bytes from 0 on";
      return signalPassFailure();
    }
    bool full = policy == "block" || (policy == "none" && budget > 0);
    if (partition && !full)
      return failPartition(
          "only inputs of fully recomputed layers are sharded; use --recompute block "
          "or --recompute-budget");
    if (partition && par::MeshAttr::of(getOperation()).sizeOf(par::kTensorAxis) <= 1)
      return failPartition("the ranks of mesh axis '" + par::kTensorAxis +
                           "' share what enters a layer, and there is one; give it a mesh with " +
                           par::kTensorAxis + "=2 or more");
    getOperation().walk([&](train::AccumulateOp loop) {
      if (!loop.hasBackward())
        return;
      loop.simplifySaved();
      run(loop);
      loop.simplifySaved();
    });
    recomputed += clones;
    if (partition && clones > 0 && shards == 0)
      failPartition("what enters the layers is split over " + par::kTensorAxis +
                    " already, so there is nothing to share "
                    "(sequence parallelism splits it); leave it out");
  }

private:
  void failPartition(const Twine &why) {
    getOperation().emitError() << "recompute partition: " << why;
    signalPassFailure();
  }

  void run(train::AccumulateOp loop) {
    Step step(loop, partition ? StringAttr::get(&getContext(), par::kTensorAxis) : StringAttr());
    SmallVector<int64_t> layers = step.numbers();
    if (policy == "none")
      for (int64_t layer : layers)
        clones += step.apply(layer, Policy::Free);
    SmallVector<Policy> policies;
    if (policy == "selective" || (policy == "none" && budget > 0))
      policies.push_back(Policy::Selective);
    if (policy == "block" || (policy == "none" && budget > 0))
      policies.push_back(Policy::Block);
    // With a budget, starts with the cheapest policy, and stops once the budget holds.
    for (Policy next : policies)
      for (int64_t layer : layers)
        if (budget == 0 || step.savedBytes() > budget)
          clones += step.apply(layer, next);
    shards += step.shardCount();
    if (budget == 0 || layers.empty())
      return;
    if (int64_t saved = step.savedBytes(); saved > budget)
      getOperation().emitRemark() << "recompute budget of " << int64_t(budget)
                                  << " bytes: the backward pass needs " << saved
                                  << " bytes of activations "
                                  << (policy == "selective"
                                          ? "that are expensive to recompute, or outside any layer"
                                          : "before, between and after the layers");
  }

  int64_t clones = 0, shards = 0;
};

} // namespace
