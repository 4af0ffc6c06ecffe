//===- SeedContext.cpp - partition-seed-context -----------------------------------------------------===//
//
// Before splits are propagated, every attention is given a ring or all-to-alls; where its sequences turn out
// not to be split, they are removed.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/SequenceSplit.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDCONTEXTPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionSeedContext : partita::impl::PartitionSeedContextPassBase<PartitionSeedContext> {
  using PartitionSeedContextPassBase::PartitionSeedContextPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectUnpartitionedForward(*this, module)))
      return signalPassFailure();
    if (how != "auto" && how != "ring" && how != "all-to-all") {
      module.emitError() << "--context-parallel: '" << how
                         << "' is unknown; known: auto, ring, all-to-all";
      return signalPassFailure();
    }
    if (failed(chooseAxes(module)))
      return signalPassFailure();
    if (ranks > 1 && failed(split(module)))
      signalPassFailure();
  }

private:
  /// Chooses the axis of the ring or of the exchange, and the one that exchanges heads within a ring.
  LogicalResult chooseAxes(ModuleOp module) {
    par::MeshAttr mesh = par::MeshAttr::of(module);
    int64_t context = mesh.sizeOf(par::kContextAxis), inside = mesh.sizeOf(par::kHeadsAxis);
    way = how;
    if (inside <= 1) {
      ranks = context;
      axis = StringAttr::get(&getContext(), par::kContextAxis);
      if (ranks <= 1 && how != "auto")
        return module.emitError() << "--context-parallel " << how
                                  << " splits sequences over mesh axis '" << par::kContextAxis
                                  << "', of which there is one rank; a mesh with "
                                  << par::kContextAxis << "=2 or more has what it splits";
      return success();
    }
    auto heads = StringAttr::get(&getContext(), par::kHeadsAxis);
    if (context <= 1) {
      ranks = inside;
      axis = heads;
      way = "all-to-all";
      if (how == "ring")
        return module.emitError() << "--context-parallel ring passes keys on over mesh axis '"
                                  << par::kContextAxis << "', of which there is one rank; over '"
                                  << par::kHeadsAxis << "' ranks exchange heads";
      return success();
    }
    ranks = context;
    axis = StringAttr::get(&getContext(), par::kContextAxis);
    headsAxis = heads;
    headParts = inside;
    way = "ring";
    if (how == "all-to-all")
      return module.emitError()
             << "--context-parallel all-to-all exchanges heads over all ranks that share a "
                "sequence, of which mesh axis '"
             << par::kHeadsAxis << "' has a part; take ring, which does so over " << par::kHeadsAxis
             << " alone, or put all of these ranks on one axis";
    return success();
  }

  LogicalResult split(ModuleOp module) {
    SmallVector<tx::AttentionOp> attentions;
    module.walk([&](tx::AttentionOp op) { attentions.push_back(op); });
    if (attentions.empty())
      return module.emitError()
             << "context parallelism (mesh axis '" << axis.getValue()
             << "') exchanges keys between the ranks that share a sequence, and no "
                "attention of this model is recognized; take dp instead";
    if (failed(prepare(module, attentions)))
      return failure();
    SampleSplits splits(module, axis);
    if (failed(splits.run()))
      return failure();
    splits.inside = headsAxis;
    if (headsAxis)
      for (tx::AttentionOp op : attentions)
        keepCoarse(op, splits.coarse);
    splits.outer = headParts;
    splits.outerName = par::kHeadsAxis.str();
    bool any = false, isMirrored = mayMirror(module, splits);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit sequence(function, splits, isMirrored);
      if (failed(sequence.runFromInputs(/*apply=*/true)))
        return failure();
      inputs += sequence.inputs;
      gathers += sequence.gathers;
      narrows += sequence.narrows;
      function.walk(
          [&](tx::AttentionOp op) { any |= keepsRing(op, sequence, splits, isMirrored); });
      function.walk([&](tx::AttentionOp op) { restoreBias(op, sequence); });
      function.walk([&](par::AllToAllOp op) { any |= keeps(op, sequence); });
      if (headsAxis)
        function.walk([&](tx::AttentionOp op) {
          if (op.getRingAttr())
            exchanges += exchangeHeads(op, isMirrored ? 2 : 1);
        });
    }
    if (!any)
      return module.emitError()
             << "context parallelism (mesh axis '" << axis.getValue()
             << "') finds nothing to split: no attention is over the sequence of an "
                "input; take dp instead";
    return success();
  }

  //===- The order of shards

  /// Decides whether sequences are dealt in mirrored order, in which a causal mask gives all ranks the same work. Every
  /// function has the same order, since they share inputs. If something stands in the way, notes what.
  bool mayMirror(ModuleOp module, SampleSplits &splits) {
    std::string problem;
    bool isCausal = false;
    ScopedDiagnosticHandler silence(&getContext(), [](Diagnostic &) { return success(); });
    // Tensor parallelism splits again what a rank has of each of the two chunks.
    splits.outer =
        headParts * (sequenceParallel ? par::MeshAttr::of(module).sizeOf(par::kTensorAxis) : 1);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || !problem.empty())
        continue;
      SequenceSplit sequence(function, splits, /*mirrored=*/true);
      if (failed(sequence.runFromInputs(/*apply=*/false)))
        problem = llvm::formatv("{0} chunks do not divide it", 2 * ranks * splits.outer);
      else if (Operation *op = sequence.findExchange())
        problem = llvm::formatv("{0} ('{1}') cannot work on two chunks of it", op->getName(),
                                provenance::nameOf(op));
      function.walk([&](tx::AttentionOp op) {
        isCausal |= op.getRingAttr() && op.getCausal();
        if (problem.empty() && isInRing(op, sequence, splits) && op.getCausal())
          problem = balanceProblem(op);
      });
    }
    splits.outer = headParts;
    if (isCausal && !problem.empty())
      module->setAttr(par::ParDialect::kInOrder, StringAttr::get(&getContext(), problem));
    return isCausal && problem.empty();
  }

  /// Says why mirrored order would not give every rank of the ring the same work for this causal attention; empty if it
  /// would.
  static std::string balanceProblem(tx::AttentionOp op) {
    auto is = [&](StringRef what) {
      return llvm::formatv("attention '{0}' {1}", provenance::nameOf(op), what).str();
    };
    if (op.getWindow())
      return is("has a window");
    if (op.getQ().getType().getDimSize(1) != op.getK().getType().getDimSize(1))
      return is("has another number of keys than of queries");
    return op.getBlocksAttr() ? is("skips blocks") : std::string();
  }

  //===- Choosing

  /// Ranks among which tensor parallelism splits an attention's heads.
  int64_t headRanks(tx::AttentionOp op, const Propagation &propagation, par::MeshAttr mesh) {
    int64_t parts = 1;
    for (const par::AxisSplit &split : propagation.layoutOf(op.getQ()).splits[2])
      parts *= mesh.sizeOf(split.axis);
    return parts;
  }

  /// The axis over which heads are dealt out, if any are.
  StringAttr dealingAxis() const { return headsAxis ? headsAxis : axis; }
  int64_t dealingRanks() const { return headsAxis ? headParts : ranks; }

  /// Why its heads cannot be dealt out; empty if they can.
  std::string headProblem(tx::AttentionOp op, int64_t others) {
    int64_t heads = op.getQ().getType().getDimSize(2), keys = op.getK().getType().getDimSize(2);
    if (heads == 1)
      return "deals out heads, of which there is one";
    if (heads % (dealingRanks() * others) != 0)
      return llvm::formatv("deals out {0} heads to {1} ranks{2}, which do not divide them", heads,
                           dealingRanks(),
                           others > 1 ? " times the " + std::to_string(others) + " of tp" : "")
          .str();
    auto together = [&](const char *what) {
      return llvm::formatv("{0}, which tp and {1} split together", what, dealingAxis().getValue())
          .str();
    };
    if (others > 1 && keys > 1 && keys % others != 0)
      return together("deals out key heads that tp does not divide");
    if (others > 1 && op.getRatio())
      return together("numbers the elements that dropout drops by the heads of one rank");
    if (others > 1 && op.getBlocksAttr() && op.getBlocksAttr().isPerHead())
      return together("deals out heads, each with blocks of its own");
    return {};
  }

  /// What to do about such a problem.
  std::string headAdvice(tx::AttentionOp op, int64_t others) {
    int64_t heads = op.getQ().getType().getDimSize(2);
    std::string name = dealingAxis().str(), sizes;
    if (heads % (dealingRanks() * others) != 0)
      for (int64_t size = 2; size * others <= heads; ++size)
        if (heads % (size * others) == 0)
          sizes += (sizes.empty() ? " = " : " or ") + std::to_string(size);
    if (name == par::kContextAxis)
      return "; take ring" + (sizes.empty() ? "" : ", or " + name + sizes);
    std::string ring = "the ring of " + par::kContextAxis.str() + " in its place";
    return "; take " + (sizes.empty() ? ring : name + sizes + ", or " + ring);
  }

  /// Shifts of a ring in one direction: as far as there is work.
  int64_t shifts(tx::AttentionOp op) {
    int64_t s = op.getQ().getType().getDimSize(1), t = op.getK().getType().getDimSize(1);
    tx::OtherMask mask{op.getCausal(), static_cast<int64_t>(op.getWindow().value_or(0))};
    return std::max(tx::stepsWithWork({s, ranks}, {t, ranks}, mask, op.getBlocksAttr()).find_last(),
                    0);
  }
  /// What all ranks together send for this attention, forward and backward, divided by batch and head size: in a ring, and
  /// if they exchange heads.
  double ringElements(tx::AttentionOp op) {
    RankedTensorType type = op.getK().getType();
    double keys = double(type.getDimSize(2)) * type.getDimSize(1);
    double gradients =
        2 * std::max(1.0, 32.0 / type.getElementTypeBitWidth()); // of K and V, in float32
    return double(shifts(op)) * (4 + gradients) * keys;          // K and V twice
  }
  double exchangedElements(tx::AttentionOp op, int64_t others) {
    double queries = double(op.getQ().getType().getDimSize(2)) * op.getQ().getType().getDimSize(1);
    int64_t heads = op.getK().getType().getDimSize(2);
    double keys = double(heads == 1 ? ranks : std::lcm(heads, ranks * others)) *
                  op.getK().getType().getDimSize(1);
    return double(ranks - 1) / double(ranks) * (4 * queries + 4 * keys);
  }

  /// All attentions alike: in a ring, or with their heads dealt out, whichever takes fewer bytes.
  LogicalResult prepare(ModuleOp module, ArrayRef<tx::AttentionOp> attentions) {
    par::MeshAttr mesh = par::MeshAttr::of(module);
    Propagation propagation(module, mesh);
    if (failed(propagation.run()))
      return failure();
    SmallVector<int64_t> others;
    double ring = 0, exchanged = 0;
    bool deals = way != "ring", mustDeal = false;
    for (tx::AttentionOp op : attentions) {
      others.push_back(headRanks(op, propagation, mesh));
      std::string problem = headProblem(op, others.back());
      if (!problem.empty() && (headsAxis || way == "all-to-all")) {
        InFlightDiagnostic error = op.emitError();
        if (dealingAxis() == par::kContextAxis)
          error << "--context-parallel all-to-all ";
        else
          error << "an all-to-all over mesh axis '" << dealingAxis().getValue() << "' ";
        return error << problem << headAdvice(op, others.back());
      }
      deals &= problem.empty();
      mustDeal |= op.getBlocksAttr() && !dividesIntoBlocks(op);
      ring += ringElements(op);
      exchanged += exchangedElements(op, others.back());
    }
    if (way == "auto")
      deals &= mustDeal || exchanged < ring;
    for (auto [op, parts] : llvm::zip(attentions, others)) {
      headsOf[op] = parts;
      if (deals)
        exchangeHeads(op, /*runs=*/1); // which of them stay, the walk decides
      else if (failed(allow(op)))
        return failure();
    }
    return success();
  }

  //===- A ring

  /// Does each rank have whole blocks?
  bool dividesIntoBlocks(tx::AttentionOp op) {
    return tx::SharedSequence{op.getQ().getType().getDimSize(1), ranks}.isOfWhole(
        op.getBlocks()->getSize());
  }

  /// Queries and keys are dealt out alike: one of the two lengths has to divide the other.
  LogicalResult allow(tx::AttentionOp op) {
    int64_t s = op.getQ().getType().getDimSize(1), t = op.getK().getType().getDimSize(1);
    if (std::min(s, t) < 1 || std::max(s, t) % std::min(s, t) != 0)
      return op.emitError()
             << "context parallelism in a ring deals out " << s << " queries and " << t
             << " keys of one attention alike, for which one number has to divide the "
                "other; take lengths of which one divides the other, or "
             << withoutRing();
    if (op.getBlocksAttr() && !dividesIntoBlocks(op))
      return op.emitError()
             << "skips blocks of " << op.getBlocks()->getSize()
             << " positions (--sparse-attention, or a constant mask of the model's), and "
             << axis.getValue() << " = " << ranks << " does not divide " << s
             << " positions into whole ones; take a smaller block, another size of "
             << axis.getValue() << ", or " << withoutRing();
    op.setRingAttr(axis);
    return success();
  }

  std::string withoutRing() const {
    return headsAxis ? "all of these ranks as " + headsAxis.str() : "--context-parallel all-to-all";
  }

  static bool isInRing(tx::AttentionOp op, const SequenceSplit &sequence,
                       const SampleSplits &splits) {
    std::optional<unsigned> letter = sequence.letterOf(op);
    return op.getRingAttr() && letter && splits.propagation.ruleOf(op).letters[*letter].name == "r";
  }

  bool keepsRing(tx::AttentionOp op, const SequenceSplit &sequence, const SampleSplits &splits,
                 bool isMirrored) {
    if (!isInRing(op, sequence, splits)) {
      op.removeRingAttr();
      return false;
    }
    ++rings;
    mirrored += isMirrored;
    return true;
  }

  //===- Heads dealt out

  /// Puts an exchange before queries, keys and values, and one behind the result: each rank trades its part of the sequence,
  /// for all heads, for the whole sequence, for its heads (within a ring, of what a rank of the ring has of it; USP: Fang &
  /// Zhao, arXiv 2405.07719). A rank takes its heads of a bias. A single key head is needed by all ranks, which gather it.
  /// `runs`: chunks of a sequence on a rank of the ring. Returns the number of exchanges.
  int64_t exchangeHeads(tx::AttentionOp op, int64_t runs) {
    int64_t others = headsOf.lookup(op);
    repeatKeys(op, dealingRanks() * others);
    OpBuilder builder(op);
    auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
    auto exchange = [&](Value value, int64_t from, int64_t to) {
      return par::AllToAllOp::create(builder, op.getLoc(), value.getType(), value, dealingAxis(),
                                     number(from), number(to), number(others), StringAttr(),
                                     number(runs));
    };
    unsigned operands = hasOneKeyHead(op) ? 1 : 3;
    for (unsigned operand = 0; operand < operands; ++operand)
      op->setOperand(operand, exchange(op->getOperand(operand), 1, 2));
    if (Value bias = op.getBias(); bias && op.getBias().getType().getDimSize(1) != 1)
      op.getBiasMutable().assign(par::NarrowOp::create(builder, op.getLoc(), bias.getType(), bias,
                                                       dealingAxis(), number(1), number(others),
                                                       StringAttr(), UnitAttr()));
    builder.setInsertionPointAfter(op);
    par::AllToAllOp back = exchange(op.getOut(), 2, 1);
    op.getOut().replaceAllUsesExcept(back.getResult(), back);
    return operands + 1;
  }

  /// Repeats key heads that this many ranks do not divide, as often as needed; a single one remains. Each is repeated where
  /// it is, so that tp may split them, unlike a tx.repeat's.
  static void repeatKeys(tx::AttentionOp op, int64_t parts) {
    int64_t keys = op.getK().getType().getDimSize(2), times = std::lcm(keys, parts) / keys;
    if (keys == 1 || times == 1)
      return;
    OpBuilder builder(op);
    for (OpOperand *operand : {&op.getKMutable(), &op.getVMutable()}) {
      auto type = cast<RankedTensorType>(operand->get().getType());
      SmallVector<int64_t> shape(type.getShape());
      auto reshaped = [&](Value value) -> Value {
        return tx::ReshapeOp::create(builder, op.getLoc(), type.clone(shape), value);
      };
      shape.insert(shape.begin() + 3, 1);
      Value apart = reshaped(operand->get());
      shape[3] = times;
      Value repeated = tx::BroadcastOp::create(builder, op.getLoc(), type.clone(shape), apart);
      shape.erase(shape.begin() + 3);
      shape[2] *= times;
      operand->set(reshaped(repeated));
    }
  }

  static bool hasOneKeyHead(tx::AttentionOp op) { return op.getK().getType().getDimSize(2) == 1; }

  /// Ranks that exchange heads within a ring all need the same rows of whatever has no heads to exchange: a single key head,
  /// a bias, first keys.
  static void keepCoarse(tx::AttentionOp op, llvm::DenseSet<OpOperand *> &coarse) {
    for (OpOperand &operand : op->getOpOperands().drop_front(hasOneKeyHead(op) ? 1 : 3))
      coarse.insert(&operand);
  }

  /// The bias of the heads of a rank is that of all heads, where these are not dealt out.
  void restoreBias(tx::AttentionOp op, const SequenceSplit &sequence) {
    auto exchange = op.getQ().getDefiningOp<par::AllToAllOp>();
    auto narrow = op.getBias() ? op.getBias().getDefiningOp<par::NarrowOp>() : par::NarrowOp();
    if (!exchange || sequence.isNeeded(exchange) || !narrow || narrow.getAxisAttr() != axis)
      return;
    op.getBiasMutable().assign(narrow.getValue());
    narrow.erase();
  }

  bool keeps(par::AllToAllOp op, const SequenceSplit &sequence) {
    if (sequence.isNeeded(op)) {
      ++exchanges;
      return true;
    }
    op.getResult().replaceAllUsesWith(op.getValue());
    op.erase();
    return false;
  }

  int64_t ranks = 1; ///< of `axis`
  StringAttr axis;
  StringAttr headsAxis;  ///< null, or of the exchange within a ring
  int64_t headParts = 1; ///< its ranks
  std::string way;       ///< --context-parallel, or what the axes leave of it
  llvm::DenseMap<Operation *, int64_t> headsOf; ///< ranks of tp that split an attention's heads
};

} // namespace
