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
    int64_t inRing = mesh.sizeOf(par::kContextAxis), inside = mesh.sizeOf(par::kHeadsAxis);
    way = how;
    if (inside > 1 && inRing > 1 && how == "all-to-all")
      return module.emitError()
             << "--context-parallel all-to-all exchanges heads over all ranks that share a sequence, of which mesh axis '"
             << par::kHeadsAxis << "' has a part: take ring, or all of them on one axis";
    if (inside > 1 && inRing == 1 && how == "ring")
      return module.emitError() << "--context-parallel ring passes keys on over mesh axis '"
                                << par::kContextAxis << "', of which there is one rank; over '"
                                << par::kHeadsAxis << "' ranks exchange heads";
    if (inside == 1 && inRing == 1 && how != "auto")
      return module.emitError() << "--context-parallel " << how
                                << " splits sequences over mesh axis '" << par::kContextAxis
                                << "', of which there is one rank; a mesh with "
                                << par::kContextAxis << "=2 or more has what it splits";
    if (inside > 1)
      way = inRing > 1 ? "ring" : "all-to-all";
    axis = StringAttr::get(&getContext(), inRing > 1 ? par::kContextAxis : par::kHeadsAxis);
    ranks = std::max(inRing, inside > 1 && inRing == 1 ? inside : 1);
    if (inside > 1 && inRing > 1) {
      headsAxis = StringAttr::get(&getContext(), par::kHeadsAxis);
      headParts = inside;
    }
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
      if (headsAxis)
        function.walk([&](tx::AttentionOp op) { exchangeInRing(op, isMirrored ? 2 : 1); });
      function.walk([&](tx::AttentionOp op) { restoreBias(op, sequence); });
      function.walk([&](par::AllToAllOp op) { any |= keeps(op, sequence); });
    }
    if (!any)
      return module.emitError()
             << "context parallelism (mesh axis '" << axis.getValue()
             << "') finds nothing to split: no attention is over the sequence of an "
                "input; take dp instead";
    return success();
  }

  //===- The order of shards

  /// Are sequences dealt in mirrored order? A causal mask would give the ranks unequal work in any other. Every function
  /// has the same order, since they share inputs. If something stands in the way, notes what.
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

  /// Why a causal attention has as much work on all ranks of a ring in no other order of shards than theirs; empty if it has in mirrored order.
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

  /// Why its heads cannot be dealt out to the ranks of cp; empty if they can.
  std::string headProblem(tx::AttentionOp op, int64_t others) {
    int64_t ranks = headsAxis ? headParts : this->ranks; // that get heads
    int64_t heads = op.getQ().getType().getDimSize(2), keys = op.getK().getType().getDimSize(2);
    std::string within =
        others > 1 ? (" times the " + Twine(others) + " of tp").str() : std::string();
    if (heads % (ranks * others) != 0)
      return llvm::formatv("deals out {0} heads to {1} ranks{2}, which do not divide them", heads,
                           ranks, within)
          .str();
    if (others > 1 && keys > 1 && keys % (ranks * others) != 0)
      return llvm::formatv("deals out {0} key heads to {1} ranks{2}, which do not divide them",
                           keys, ranks, within)
          .str();
    if (others > 1 && op.getRatio())
      return "numbers the elements that dropout drops by the heads of one rank, which tp and cp split "
             "together";
    return {};
  }

  /// Shifts of a ring in one direction: with a window, as far as it reaches.
  int64_t shifts(tx::AttentionOp op) {
    int64_t own = op.getK().getType().getDimSize(1) / ranks;
    if (!op.getCausal() || !op.getWindow() || own == 0)
      return ranks - 1;
    return std::min(ranks - 1, (int64_t(*op.getWindow()) + own - 2) / own);
  }
  /// Elements that a rank sends per layer, forward and backward, in elements of one head at one position, times the number of ranks.
  double ringElements(tx::AttentionOp op) {
    RankedTensorType type = op.getK().getType();
    double keys = double(type.getDimSize(2)) * type.getDimSize(1);
    double gradients =
        2 * std::max(1.0, 32.0 / type.getElementTypeBitWidth()); // of K and V, in float32
    return double(shifts(op)) * (4 + gradients) * keys;          // K and V twice
  }
  double exchangedElements(tx::AttentionOp op) {
    double queries = double(op.getQ().getType().getDimSize(2)) * op.getQ().getType().getDimSize(1);
    int64_t heads = op.getK().getType().getDimSize(2);
    double keys =
        double(heads == 1 ? ranks : std::lcm(heads, ranks)) * op.getK().getType().getDimSize(1);
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
      if (!problem.empty() && headsAxis)
        return op.emitError() << "an all-to-all within a ring (mesh axis '" << headsAxis.getValue()
                              << "') " << problem << "; take another size of "
                              << headsAxis.getValue();
      if (!problem.empty() && way == "all-to-all")
        return op.emitError() << "--context-parallel all-to-all " << problem
                              << "; take ring, or another size of " << axis.getValue();
      deals &= problem.empty();
      mustDeal |= op.getBlocksAttr() != nullptr;
      ring += ringElements(op);
      exchanged += exchangedElements(op);
    }
    if (way == "auto")
      deals &= mustDeal || exchanged < ring;
    for (auto [attention, parts] : llvm::zip(attentions, others)) {
      tx::AttentionOp op = attention;
      if (headsAxis && failed(repeatKeys(op, headParts, parts)))
        return failure();
      if (failed(deals ? deal(op, parts) : allow(op)))
        return failure();
      headsOf[op] = parts;
    }
    return success();
  }

  //===- A ring

  /// Queries and keys are dealt out alike: one of the two lengths has to divide the other.
  LogicalResult allow(tx::AttentionOp op) {
    int64_t s = op.getQ().getType().getDimSize(1), t = op.getK().getType().getDimSize(1);
    if (std::min(s, t) < 1 || std::max(s, t) % std::min(s, t) != 0)
      return op.emitError()
             << "context parallelism in a ring deals out " << s << " queries and " << t
             << " keys of one attention alike, for which one number has to divide the "
                "other; take lengths of which one divides the other, or "
                "--context-parallel all-to-all";
    if (op.getBlocksAttr())
      return op.emitError()
             << "skips blocks of scores (--sparse-attention, or a constant mask of the model's), for which "
                "context parallelism has no ring: only --context-parallel all-to-all, which deals out heads, "
                "or "
             << axis.getValue() << " at 1";
    op.setRingAttr(axis);
    return success();
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

  /// Puts an exchange before queries, keys and values, and one behind the result; a rank takes its heads of a bias. A single key head is needed by all
  /// ranks, which gather it; key heads that the ranks do not divide are repeated as often as needed.
  LogicalResult deal(tx::AttentionOp op, int64_t others) {
    if (failed(repeatKeys(op, ranks, others)))
      return failure();
    OpBuilder builder(op);
    int64_t keys = op.getK().getType().getDimSize(2);
    auto exchange = [&](Value value, int64_t from, int64_t to) {
      return par::AllToAllOp::create(builder, op.getLoc(), value.getType(), value, axis,
                                     builder.getI64IntegerAttr(from), builder.getI64IntegerAttr(to),
                                     builder.getI64IntegerAttr(others), StringAttr(),
                                     builder.getI64IntegerAttr(1));
    };
    for (unsigned operand = 0; operand < (keys > 1 ? 3u : 1u); ++operand)
      op->setOperand(operand, exchange(op->getOperand(operand), 1, 2));
    if (Value bias = op.getBias(); bias && op.getBias().getType().getDimSize(1) != 1)
      op.getBiasMutable().assign(par::NarrowOp::create(
          builder, op.getLoc(), bias.getType(), bias, axis, builder.getI64IntegerAttr(1),
          builder.getI64IntegerAttr(others), StringAttr()));
    builder.setInsertionPointAfter(op);
    par::AllToAllOp back = exchange(op.getOut(), 2, 1);
    op.getOut().replaceAllUsesExcept(back.getResult(), back);
    return success();
  }

  /// Key heads that this many ranks, times those of tp, do not divide are repeated as often as needed. A single one remains.
  LogicalResult repeatKeys(tx::AttentionOp &op, int64_t parts, int64_t others) {
    int64_t keys = op.getK().getType().getDimSize(2);
    if (keys <= 1 || keys % (parts * others) == 0)
      return success();
    OpBuilder builder(op);
    SmallVector<Value> results = op.splitForm(builder, parts * others);
    if (results.empty())
      return op.emitError() << "an exchange of heads cannot repeat " << keys << " key heads for "
                            << parts << " ranks; take ring";
    op->replaceAllUsesWith(results);
    auto repeated = results.front().getDefiningOp<tx::AttentionOp>();
    op.erase();
    op = repeated;
    return success();
  }

  /// Within a ring, whose ranks split sequences again: exchanges what these have of it for all of it, of their heads (USP: Fang & Zhao,
  /// arXiv 2405.07719). What has no heads to deal out is gathered among them; `runs`: of the sequence on a rank of the ring.
  void exchangeInRing(tx::AttentionOp op, int64_t runs) {
    if (!op.getRingAttr())
      return;
    OpBuilder builder(op);
    auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
    int64_t others = headsOf.lookup(op);
    auto exchange = [&](Value value, int64_t from, int64_t to) -> Value {
      ++exchanges;
      return par::AllToAllOp::create(builder, op.getLoc(), value.getType(), value, headsAxis,
                                     number(from), number(to), number(others), StringAttr(),
                                     number(runs));
    };
    auto gather = [&](Value value, int64_t dim) -> Value {
      ++gathers;
      return par::AllGatherOp::create(builder, op.getLoc(), value.getType(), value, headsAxis,
                                      number(dim), number(runs), StringAttr(), UnitAttr());
    };
    bool isShared = op.getK().getType().getDimSize(2) == 1; // one key head, which all ranks need
    op.getQMutable().assign(exchange(op.getQ(), 1, 2));
    op.getKMutable().assign(isShared ? gather(op.getK(), 1) : exchange(op.getK(), 1, 2));
    op.getVMutable().assign(isShared ? gather(op.getV(), 1) : exchange(op.getV(), 1, 2));
    if (Value bias = op.getBias()) {
      auto type = cast<RankedTensorType>(bias.getType());
      if (type.getDimSize(2) != 1)
        bias = gather(bias, 2);
      if (type.getDimSize(1) != 1)
        bias = par::NarrowOp::create(builder, op.getLoc(), type, bias, headsAxis, number(1),
                                     number(others), StringAttr(), UnitAttr());
      op.getBiasMutable().assign(bias);
    }
    if (Value firstKeys = op.getFirstKeys())
      op.getFirstKeysMutable().assign(gather(firstKeys, 1));
    builder.setInsertionPointAfter(op);
    Value back = exchange(op.getOut(), 2, 1);
    op.getOut().replaceAllUsesExcept(back, back.getDefiningOp());
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
  llvm::DenseMap<Operation *, int64_t>
      headsOf; ///< ranks among which tp splits an attention's heads
};

} // namespace
