//===- SeedSequence.cpp - splits what tensor parallelism leaves full along the sequence -------===//
//
// Between a row-parallel matmul, whose result is a partial sum over ranks, and the next
// column-parallel one, every rank computes the same: norms, dropout, residual sums (Korthikanti et
// al., arXiv 2205.05198). The pass splits these regions over the same axis, along the outermost
// dimension of the partial sum that belongs to the data and is not the batch.
//
//   1. Forward, op by op: if an operand is split and the axis splits no letter of the op yet, the
//      op's results are split as well, unless the rule forbids it.
//   2. If ops on shards end in gathers of more bytes than their operands have, they run on full
//      values after one gather of the operands: key heads that all ranks need, from rows that are
//      gathered for the queries anyway; both norms of a block whose branches run side by side.
//   3. Backward: an operand that a split op needs split, and no other op needs full, is split where
//      it is computed (positions, biases along the sequence).
//   4. Where a use needs another placement than the definition has, a narrow or a gather is inserted.
//      Algebra does the rest (par's canonicalization): a sum over ranks followed by a narrow becomes
//      a reduce-scatter, and a gather followed by f becomes one all-gather.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Partition/Causes.h"
#include "lib/Partition/Propagation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDSEQUENCEPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// A dimension of a value, split within each of `blocks` blocks of it.
struct Cut {
  unsigned dim = 0;
  int64_t blocks = 1;
  bool operator==(const Cut &other) const { return dim == other.dim && blocks == other.blocks; }
  bool operator!=(const Cut &other) const { return !(*this == other); }
};
using MaybeCut = std::optional<Cut>;

class SequenceSplit {
public:
  SequenceSplit(func::FuncOp function, const Propagation &propagation, StringAttr axis,
                StringAttr batch, par::MeshAttr mesh)
      : function(function), propagation(propagation), axis(axis), batch(batch), mesh(mesh),
        independent(function) {}

  /// Decides what is split; `apply` writes it down as gathers and narrows.
  LogicalResult run(bool apply) {
    SmallVector<Operation *> ops;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      if (hasRule(op) && failed(forward(op)))
        return failure();
    for (Operation *op : llvm::reverse(ops))
      for (Value result : op->getResults())
        if (cuts.contains(result))
          leaveBehind(result);
    for (Operation *op : llvm::reverse(ops))
      if (hasRule(op) && failed(backward(op)))
        return failure();
    for (Operation *op : ops)
      if (apply && op != function)
        settleUses(op);
    return success();
  }

  unsigned openSums = 0, gathers = 0, narrows = 0;

private:
  //===- what is split

  /// The letter of an op that tensor parallelism splits.
  std::optional<par::LetterSplit> tensorLetter(Operation *op) {
    const ShardRule &rule = propagation.ruleOf(op);
    std::optional<par::LetterSplit> letter;
    auto visit = [&](const RulePattern &pattern, Value value) {
      par::Layout layout = propagation.layoutOf(value);
      if (int dim = layout.dimOf(axis); dim >= 0 && !letter)
        letter =
            par::splitLetter(pattern.dims[dim], layout.blocksOf(axis), propagation.sizesOf(op));
    };
    for (auto [pattern, value] : llvm::zip(rule.operands, op->getOperands()))
      visit(pattern, value);
    for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
      visit(pattern, value);
    return letter;
  }

  LogicalResult forward(Operation *op) {
    if (auto letter = tensorLetter(op))
      return openSum(op, letter->letter);
    const ShardRule &rule = propagation.ruleOf(op);
    for (auto [pattern, operand] : llvm::zip(rule.operands, op->getOperands()))
      if (auto cut = cuts.find(operand); cut != cuts.end())
        if (auto letter = mayEnter(op, pattern, cut->second))
          return enter(op, *letter);
    return success();
  }

  /// An op whose sum over the axis is open: its results are split along the data's own dimension.
  LogicalResult openSum(Operation *op, unsigned summed) {
    const ShardRule &rule = propagation.ruleOf(op);
    if (!rule.letters[summed].summed)
      return success();
    for (auto [pattern, result] : llvm::zip(rule.results, op->getResults())) {
      if (pattern.contains(summed) || !par::isDifferentiable(result.getType()))
        continue;
      for (unsigned dim = 0; dim < pattern.dims.size(); ++dim) {
        Cut cut{dim, batchBlocks(result, dim)};
        auto letter = par::splitLetter(pattern.dims[dim], cut.blocks, propagation.sizesOf(op));
        if (!letter || !isOfData(op, letter->letter) ||
            propagation.sizesOf(op)[letter->letter] <= letter->blocks.count)
          continue;
        if (failed(divides(op, *letter)))
          return failure();
        cuts[result] = cut;
        open.insert(result);
        ++openSums;
        break;
      }
    }
    return success();
  }

  /// How many blocks of a dimension are samples of the batch.
  int64_t batchBlocks(Value value, unsigned dim) {
    par::Layout layout = propagation.layoutOf(value);
    for (const par::AxisSplit &split : layout.splits[dim])
      if (split.axis == batch)
        return split.blocks.count * mesh.sizeOf(batch);
    return 1;
  }

  /// Not a dimension of parameters, and free.
  bool isOfData(Operation *op, unsigned letter) {
    const ShardRule &rule = propagation.ruleOf(op);
    const RuleLetter &description = rule.letters[letter];
    if (isOfPart(rule, letter) || description.never || description.byForm || description.summed)
      return false;
    return llvm::none_of(llvm::zip(rule.operands, op->getOperands()), [&](auto pair) {
      return std::get<0>(pair).contains(letter) && independent(std::get<1>(pair));
    });
  }

  /// What stands around a part would have to be cut too, and nobody says how.
  static bool isOfPart(const ShardRule &rule, unsigned letter) {
    auto inPart = [&](const RulePattern &pattern) {
      int dim = pattern.dimOf(letter);
      return dim >= 0 && pattern.dims[dim].isPart();
    };
    return llvm::any_of(rule.operands, inPart) || llvm::any_of(rule.results, inPart);
  }

  /// The letter that a cut of an operand or result splits, where the op can have it split.
  std::optional<par::LetterSplit> mayEnter(Operation *op, const RulePattern &pattern, Cut cut) {
    const ShardRule &rule = propagation.ruleOf(op);
    auto letter = par::splitLetter(pattern.dims[cut.dim], cut.blocks, propagation.sizesOf(op));
    if (!letter)
      return {};
    const RuleLetter &description = rule.letters[letter->letter];
    // A piece needs one first index, which pieces of several blocks do not have.
    if (isOfPart(rule, letter->letter) || description.never || description.byForm ||
        description.max ||
        ((description.lacksFirstIndex || description.unbroken) && letter->blocks != 1))
      return {};
    return letter;
  }

  LogicalResult enter(Operation *op, par::LetterSplit letter) {
    if (failed(divides(op, letter)))
      return failure();
    entered[op] = letter;
    const ShardRule &rule = propagation.ruleOf(op);
    for (auto [pattern, result] : llvm::zip(rule.results, op->getResults()))
      if (MaybeCut cut = cutOf(op, pattern, letter))
        cuts[result] = *cut;
    return success();
  }

  LogicalResult divides(Operation *op, par::LetterSplit letter) {
    int64_t size = propagation.sizesOf(op)[letter.letter] / letter.blocks.count;
    int64_t parts = mesh.sizeOf(axis);
    if (size % parts == 0)
      return success();
    int64_t nearest = std::max(parts, size / parts * parts);
    InFlightDiagnostic error = op->emitError() << "sequence parallelism splits a dimension of size "
                                               << size << ", which does not divide over "
                                               << axis.getValue() << " = " << parts;
    if (isInput(size))
      return error << "; take a multiple of " << parts << " (" << nearest << ", " << nearest + parts
                   << ", ...)";
    return error << "; no input has a dimension of this size, the model makes it: leave "
                    "--sequence-parallel out, or take a size of "
                 << axis.getValue() << " that divides it";
  }

  /// Is it the size of an input's dimension, which whoever compiles the model may choose?
  bool isInput(int64_t size) {
    return llvm::any_of(function.getArgumentTypes(), [&](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && llvm::is_contained(tensor.getShape(), size);
    });
  }

  MaybeCut cutOf(Operation *op, const RulePattern &pattern, par::LetterSplit letter) {
    int dim = pattern.dimOf(letter.letter);
    if (dim < 0)
      return {};
    return Cut{static_cast<unsigned>(dim),
               par::blocksOfDim(pattern.dims[dim], letter, propagation.sizesOf(op)).count};
  }

  /// An op whose results all uses want split, and split alike.
  LogicalResult backward(Operation *op) {
    if (entered.contains(op) || op->use_empty() || tensorLetter(op))
      return success();
    const ShardRule &rule = propagation.ruleOf(op);
    std::optional<par::LetterSplit> letter;
    for (auto [pattern, result] : llvm::zip(rule.results, op->getResults()))
      for (OpOperand &use : result.getUses()) {
        MaybeCut cut = wanted(use);
        auto found = cut ? mayEnter(op, pattern, *cut) : std::nullopt;
        if (!found ||
            (letter && (letter->letter != found->letter || letter->blocks != found->blocks)))
          return success();
        letter = found;
      }
    return letter ? enter(op, *letter) : success();
  }

  /// The cut that an op wants of an operand; none where it wants it whole.
  MaybeCut wanted(OpOperand &use) {
    auto found = entered.find(use.getOwner());
    if (found == entered.end())
      return {};
    const ShardRule &rule = propagation.ruleOf(use.getOwner());
    return cutOf(use.getOwner(), rule.operands[use.getOperandNumber()], found->second);
  }

  //===- what is better gathered earlier

  /// Takes the ops out that work on pieces of a value, and on nothing else that is cut, for others
  /// that want the whole of what they make: if their results are more bytes than the value, or it
  /// is gathered anyway.
  void leaveBehind(Value value) {
    llvm::SetVector<Operation *> leaving;
    auto comesFrom = [&](Value operand) {
      return operand == value || !cuts.contains(operand) ||
             leaving.contains(operand.getDefiningOp());
    };
    collectUsers(value, comesFrom, leaving);
    auto staysCut = [&](Operation *op) {
      return llvm::any_of(op->getUses(), [&](OpOperand &use) {
        return wanted(use) && !leaving.contains(use.getOwner());
      });
    };
    while (
        true) { // the largest set that nobody wants pieces of, and all of whose pieces are its own
      auto *wrong = llvm::find_if(leaving, [&](Operation *op) {
        return staysCut(op) || !llvm::all_of(op->getOperands(), comesFrom);
      });
      if (wrong == leaving.end())
        break;
      leaving.remove(*wrong);
    }
    int64_t saved = 0;
    for (Operation *op : leaving)
      for (Value result : op->getResults())
        if (cuts.contains(result) && llvm::any_of(result.getUses(), [&](OpOperand &use) {
              return !leaving.contains(use.getOwner());
            }))
          saved += bytesOf(result.getType());
    bool isGathered = llvm::any_of(value.getUses(), [&](OpOperand &use) { return !wanted(use); });
    if (saved <= (isGathered ? 0 : bytesOf(value.getType())))
      return;
    for (Operation *op : leaving) {
      entered.erase(op);
      for (Value result : op->getResults())
        cuts.erase(result);
    }
  }

  /// Ops on pieces that a value is used by, directly or through others; in the program's order.
  void collectUsers(Value value, function_ref<bool(Value)> comesFrom,
                    llvm::SetVector<Operation *> &users) {
    SmallVector<Operation *> next(value.user_begin(), value.user_end());
    llvm::sort(next, [](Operation *a, Operation *b) {
      return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b);
    });
    for (Operation *user : next)
      if (entered.contains(user) && user->getBlock() == value.getParentBlock() &&
          llvm::all_of(user->getOperands(), comesFrom) && users.insert(user))
        for (Value result : user->getResults())
          collectUsers(result, comesFrom, users);
  }

  //===- where values change

  void settleUses(Operation *op) {
    for (OpOperand &use : op->getOpOperands()) {
      Value value = use.get();
      auto found = cuts.find(value);
      MaybeCut have = found == cuts.end() ? MaybeCut() : MaybeCut(found->second);
      MaybeCut want = wanted(use);
      if (have && open.contains(value))
        value = narrow(value, *have, value.getDefiningOp());
      if (have != want) {
        if (have)
          value = gather(value, *have, op);
        if (want)
          value = narrow(value, *want, nullptr, op);
      }
      use.set(value);
    }
  }

  /// The piece of a whole value, made right behind it or right before its first user.
  Value narrow(Value value, Cut cut, Operation *behind, Operation *before = nullptr) {
    Value &known = narrowed[{value, before ? before->getBlock() : behind->getBlock()}][cut.dim];
    if (known && known.getDefiningOp<par::NarrowOp>().getBlocks() == uint64_t(cut.blocks))
      return known;
    OpBuilder builder(function.getContext());
    behind ? builder.setInsertionPointAfter(behind) : builder.setInsertionPoint(before);
    ++narrows;
    return known =
               par::NarrowOp::create(builder,
                                     inLayerOf((behind ? behind : before)->getLoc(), value.getLoc()),
                                     value.getType(),
                                     value, axis, builder.getI64IntegerAttr(cut.dim),
                                     builder.getI64IntegerAttr(cut.blocks), StringAttr());
  }

  /// The whole of a piece: one gather for all users of a block.
  Value gather(Value value, Cut cut, Operation *before) {
    Value &known = gathered[{value, before->getBlock()}];
    if (known)
      return known;
    OpBuilder builder(before);
    ++gathers;
    return known = par::AllGatherOp::create(builder, inLayerOf(before->getLoc(), value.getLoc()),
                                            value.getType(), value, axis,
                                            builder.getI64IntegerAttr(cut.dim),
                                            builder.getI64IntegerAttr(cut.blocks), StringAttr(),
                                            UnitAttr());
  }

  func::FuncOp function;
  const Propagation &propagation;
  StringAttr axis, batch;
  par::MeshAttr mesh;
  DataIndependence independent;
  llvm::DenseMap<Value, Cut> cuts;
  llvm::DenseSet<Value> open; ///< values that are sums still open; their cut is a narrow's
  llvm::DenseMap<Operation *, par::LetterSplit> entered;
  llvm::DenseMap<std::pair<Value, Block *>, llvm::SmallDenseMap<unsigned, Value>> narrowed;
  llvm::DenseMap<std::pair<Value, Block *>, Value> gathered;
};

struct PartitionSeedSequence : partita::impl::PartitionSeedSequencePassBase<PartitionSeedSequence> {
  using PartitionSeedSequencePassBase::PartitionSeedSequencePassBase;

  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (!on) {
      // Whoever asks for less memory or fewer bytes is told of it only where it can be had.
      ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
      if (par::MeshAttr::of(module).sizeOf("tp") > 1 && succeeded(split(module, /*apply=*/false)))
        module->setAttr(analysis::kMaySplitSequence, UnitAttr::get(&getContext()));
      return;
    }
    if (par::MeshAttr::of(module).sizeOf("tp") <= 1) {
      module.emitError()
          << "sequence parallelism splits over mesh axis 'tp', of which there is one "
             "rank; a mesh with tp=2 or more has what it splits";
      return signalPassFailure();
    }
    if (failed(split(module, /*apply=*/true)))
      signalPassFailure();
  }

private:
  LogicalResult split(ModuleOp module, bool apply) {
    par::MeshAttr mesh = par::MeshAttr::of(module);
    auto axis = StringAttr::get(&getContext(), "tp");
    auto batch = StringAttr::get(&getContext(), "batch");
    int64_t samples = batchSize(module);
    // The batch split into samples: what is left of a dimension is no batch.
    auto split = par::MeshAttr::get(&getContext(), ArrayRef<StringAttr>{batch, axis},
                                    ArrayRef<int64_t>{samples, mesh.sizeOf("tp")});
    Propagation propagation(module, split);
    forBatches(module, [&](BlockArgument argument, unsigned dim, int64_t size) {
      if (size == samples)
        propagation.seed(argument, dim, {batch, 1});
    });
    if (failed(propagation.run()))
      return failure();
    bool any = false; // a statistic counts nothing where MLIR is built without them
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit sequence(function, propagation, axis, batch, split);
      if (failed(sequence.run(apply)))
        return failure();
      any |= sequence.openSums > 0;
      openSums += apply ? sequence.openSums : 0;
      gathers += sequence.gathers;
      narrows += sequence.narrows;
    }
    if (!any)
      return module.emitError()
             << "sequence parallelism finds nothing to split: no matmul leaves a sum "
                "over mesh axis 'tp' open whose rows are more than the batch";
    return success();
  }

  void forBatches(ModuleOp module,
                  function_ref<void(BlockArgument, unsigned dim, int64_t size)> visit) {
    for (auto function : module.getOps<func::FuncOp>())
      for (BlockArgument argument : function.getArguments())
        if (auto dim = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                              train::TrainDialect::kBatch))
          visit(argument, dim.getInt(),
                cast<RankedTensorType>(argument.getType()).getDimSize(dim.getInt()));
  }

  int64_t batchSize(ModuleOp module) {
    int64_t found = 1;
    forBatches(module,
               [&](BlockArgument, unsigned, int64_t size) { found = std::max(found, size); });
    return found;
  }
};

} // namespace
