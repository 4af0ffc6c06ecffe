//===- SeedContext.cpp - partition-seed-context -----------------------------------------------------===//
//
// Before splits are propagated, every attention is given a ring or all-to-alls; where its sequences turn out
// not to be split, they are removed. Exchanges within a ring come after the walk, which leaves each ring's attention.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "lib/Partition/ContextParallel.h"
#include "lib/Partition/SequenceSplit.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

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
    if (axes.ranks > 1 && failed(split(module)))
      signalPassFailure();
  }

private:
  /// Chooses the axis of the ring or of the exchange, and the one that exchanges heads within a ring.
  LogicalResult chooseAxes(ModuleOp module) {
    par::MeshAttr mesh = par::MeshAttr::of(module);
    int64_t context = mesh.sizeOf(par::kContextAxis), inside = mesh.sizeOf(par::kHeadsAxis);
    way = how;
    if (inside <= 1) {
      axes.ranks = context;
      axes.axis = StringAttr::get(&getContext(), par::kContextAxis);
      if (axes.ranks <= 1 && how != "auto")
        return module.emitError() << "--context-parallel " << how
                                  << " splits sequences over mesh axis '" << par::kContextAxis
                                  << "', of which there is one rank; a mesh with "
                                  << par::kContextAxis << "=2 or more has what it splits";
      return success();
    }
    auto dealing = StringAttr::get(&getContext(), par::kHeadsAxis);
    if (context <= 1) {
      axes.ranks = inside;
      axes.axis = dealing;
      way = "all-to-all";
      if (how == "ring")
        return module.emitError() << "--context-parallel ring passes keys on over mesh axis '"
                                  << par::kContextAxis << "', of which there is one rank; over '"
                                  << par::kHeadsAxis << "' ranks exchange heads: write "
                                  << par::kContextAxis << "=" << inside << " in place of "
                                  << par::kHeadsAxis << "=" << inside
                                  << ", or leave --context-parallel out";
      return success();
    }
    axes.ranks = context;
    axes.axis = StringAttr::get(&getContext(), par::kContextAxis);
    axes.headsAxis = dealing;
    axes.headParts = inside;
    way = "ring";
    if (how == "all-to-all")
      return module.emitError()
             << "--context-parallel all-to-all exchanges heads over all ranks that share a "
                "sequence, of which mesh axis '"
             << par::kHeadsAxis << "' has a part; take ring, which does so over " << par::kHeadsAxis
             << " alone, or put all of these ranks on one axis";
    warnOfOrder(mesh, module);
    return success();
  }

  /// Neighbours along the innermost axis are the nearest ranks. An exchange of heads sends each rank's part to all
  /// others at once, a ring only to the next one, and beside its compute: it bears the longer way.
  void warnOfOrder(par::MeshAttr mesh, ModuleOp module) const {
    auto at = [&](StringAttr axis) { return llvm::find(mesh.getAxes(), axis); };
    if (at(axes.axis) < at(axes.headsAxis))
      return;
    std::string ring = axes.axis.str() + "=" + std::to_string(axes.ranks),
                exchange = axes.headsAxis.str() + "=" + std::to_string(axes.headParts);
    module.emitWarning()
        << "--mesh has " << exchange << " outside " << ring
        << ": a ring's neighbours are the nearest ranks, and heads are exchanged over "
           "the longer way; if nodes are slower to reach than their own devices, write "
        << ring << "," << exchange;
  }

  LogicalResult split(ModuleOp module) {
    SmallVector<tx::AttentionOp> attentions;
    module.walk([&](tx::AttentionOp op) { attentions.push_back(op); });
    if (attentions.empty())
      return module.emitError()
             << "context parallelism (mesh axis '" << axes.axis.getValue()
             << "') exchanges keys between the ranks that share a sequence, and no "
                "attention of this model is recognized; take dp instead";
    if (failed(prepare(module, attentions)))
      return failure();
    SampleSplits splits(module, axes.axis);
    if (failed(splits.run()))
      return failure();
    SequenceOrder order;
    order.inside = axes.headsAxis;
    order.otherRanks = axes.headParts;
    order.otherAxes = par::kHeadsAxis.str();
    if (axes.headsAxis)
      for (tx::AttentionOp op : attentions)
        HeadExchange::addCoarse(op, order.coarse);
    order.mirrored = mayMirror(module, splits, order);
    bool any = false;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit sequence(function, splits, order);
      if (failed(sequence.runFromInputs(/*apply=*/true)))
        return failure();
      inputs += sequence.inputs;
      gathers += sequence.gathers;
      narrows += sequence.narrows;
      function.walk(
          [&](tx::AttentionOp op) { any |= keepsRing(op, sequence, splits, order.mirrored); });
      function.walk([&](tx::AttentionOp op) { restoreBias(op, sequence); });
      function.walk([&](par::AllToAllOp op) { any |= keeps(op, sequence); });
      if (axes.headsAxis)
        function.walk([&](tx::AttentionOp op) {
          if (op.getRingAttr())
            exchanges += heads().insert(op, headsOf.lookup(op), order.mirrored ? 2 : 1);
        });
    }
    if (!any)
      return module.emitError()
             << "context parallelism (mesh axis '" << axes.axis.getValue()
             << "') finds nothing to split: no shards of an input's sequence reach an "
                "attention, since there is none over it, or an op before it needs it in full; "
                "take dp instead";
    return takeHeadsEarly(module);
  }

  LogicalResult takeHeadsEarly(ModuleOp module) const {
    Propagation propagation(module, par::MeshAttr::of(module));
    if (failed(propagation.run()))
      return failure();
    for (auto function : module.getOps<func::FuncOp>())
      partita::takeHeadsEarly(function, propagation, axes.dealingAxis());
    return success();
  }

  //===- The order of shards

  /// Decides whether sequences are dealt in mirrored order, in which a causal mask gives all ranks the same work. Every
  /// function has the same order, since they share inputs. If something stands in the way, notes what. `order`: of all
  /// else, not mirrored.
  bool mayMirror(ModuleOp module, const SampleSplits &splits, const SequenceOrder &order) {
    std::string problem;
    bool isCausal = false;
    std::string said;
    ScopedDiagnosticHandler silence(&getContext(), [&](Diagnostic &diagnostic) {
      said = diagnostic.str();
      return success();
    });
    // Tensor parallelism splits again what a rank has of each of the two chunks.
    SequenceOrder mirrored = order;
    mirrored.mirrored = true;
    if (sequenceParallel)
      mirrored.otherRanks *= par::MeshAttr::of(module).sizeOf(par::kTensorAxis);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      SequenceSplit inOrder(function, splits, order);
      if (failed(inOrder.runFromInputs(/*apply=*/false)))
        return false; // it fails again when it is applied, and says why
      SequenceSplit sequence(function, splits, mirrored);
      bool isSplit = succeeded(sequence.runFromInputs(/*apply=*/false));
      if (!problem.empty())
        ; // the first one is reported
      else if (!isSplit)
        problem = sequence.doesNotDivide() ? llvm::formatv("{0} chunks do not divide it",
                                                           2 * axes.ranks * mirrored.otherRanks)
                                                 .str()
                                           : said;
      else if (Operation *op = sequence.findExchange())
        problem = llvm::formatv("{0} ('{1}') cannot work on two chunks of it", op->getName(),
                                provenance::nameOf(op));
      function.walk([&](tx::AttentionOp op) {
        if (!op.getCausal() || !isInRing(op, inOrder, splits))
          return;
        isCausal = true;
        if (problem.empty())
          problem = balanceProblem(op);
      });
    }
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

  HeadExchange heads() const { return HeadExchange(axes); }

  /// Ranks among which tensor parallelism splits an attention's heads.
  int64_t headRanks(tx::AttentionOp op, const Propagation &propagation, par::MeshAttr mesh) {
    int64_t parts = 1;
    for (const par::AxisSplit &split : propagation.layoutOf(op.getQ()).splits[2])
      parts *= mesh.sizeOf(split.axis);
    return parts;
  }

  /// All attentions alike: in a ring, or with their heads dealt out, whichever takes fewer bytes.
  LogicalResult prepare(ModuleOp module, ArrayRef<tx::AttentionOp> attentions) {
    par::MeshAttr mesh = par::MeshAttr::of(module);
    Propagation propagation(module, mesh);
    if (failed(propagation.run()))
      return failure();
    ContextBytes bytes(axes);
    llvm::DenseMap<Operation *, DataIndependence> ofFunction;
    auto independent = [&](tx::AttentionOp op) -> const DataIndependence & {
      auto function = op->getParentOfType<func::FuncOp>();
      return ofFunction.try_emplace(function, function).first->second;
    };
    SmallVector<int64_t> others;
    double ring = 0, exchanged = 0;
    bool deals = way != "ring", mustDeal = false;
    for (tx::AttentionOp op : attentions) {
      others.push_back(headRanks(op, propagation, mesh));
      std::string problem = heads().problem(op, others.back());
      if (!problem.empty() && (axes.headsAxis || way == "all-to-all")) {
        InFlightDiagnostic error = op.emitError();
        if (axes.dealingAxis() == par::kContextAxis)
          error << "--context-parallel all-to-all ";
        else
          error << "an all-to-all over mesh axis '" << axes.dealingAxis().getValue() << "' ";
        return error << problem << heads().advice(op, others.back());
      }
      deals &= problem.empty();
      mustDeal |= !ringProblem(op, others.back()).empty();
      ring += bytes.ofRing(op);
      exchanged += bytes.ofExchange(op, others.back(), independent(op), propagation);
    }
    if (way == "auto")
      deals &= mustDeal || exchanged < ring;
    for (auto [attention, parts] : llvm::zip(attentions, others)) {
      tx::AttentionOp op = attention;
      headsOf[op] = parts;
      if (deals) {
        heads().insert(op, parts, /*runs=*/1); // which of them stay, the walk decides
        continue;
      }
      if (std::string problem = ringProblem(op, parts); !problem.empty())
        return op.emitError(problem);
      op.setRingAttr(axes.axis);
    }
    return success();
  }

  //===- A ring

  /// Does each of so many ranks have whole blocks?
  static bool dividesIntoBlocks(tx::AttentionOp op, int64_t ranks) {
    return tx::SharedSequence{op.getQ().getType().getDimSize(1), ranks}.isOfWhole(
        op.getBlocks()->getSize());
  }

  /// What gives each rank of the ring whole blocks: "a smaller block, or cp = 2 or 4".
  std::string wholeBlocks(tx::AttentionOp op) const {
    SmallVector<std::string> sizes;
    for (int64_t ranks = 2; ranks < axes.ranks; ++ranks)
      if (dividesIntoBlocks(op, ranks))
        sizes.push_back(std::to_string(ranks));
    std::string smaller = "a smaller block";
    return sizes.empty() ? smaller
                         : smaller + ", or " + axes.axis.str() + " = " + llvm::join(sizes, " or ");
  }

  /// Queries and keys are dealt out alike: one of the two lengths has to divide the other.
  /// Says why it cannot be so, and what to do; empty if it can. `others`: ranks of tp that split its heads. Ranks that
  /// do not divide the sequence at all are reported by the walk, which knows which lengths would do.
  std::string ringProblem(tx::AttentionOp op, int64_t others) {
    int64_t s = op.getQ().getType().getDimSize(1), t = op.getK().getType().getDimSize(1);
    if (std::min(s, t) < 1 || std::max(s, t) % std::min(s, t) != 0)
      return llvm::formatv(
          "context parallelism in a ring deals out {0} queries and {1} keys of one "
          "attention alike, for which one number has to divide the other; take "
          "lengths of which one divides the other{2}",
          s, t, withoutRing(op, others));
    if (op.getBlocksAttr() && s % axes.ranks == 0 && !dividesIntoBlocks(op, axes.ranks)) {
      int64_t size = op.getBlocks()->getSize();
      return llvm::formatv("this attention skips blocks of {0} positions (--sparse-attention, or a "
                           "constant mask of the model's), and {1} = {2} does not divide {3} "
                           "positions into whole ones; take {4}{5}",
                           size, axes.axis.getValue(), axes.ranks, s, wholeBlocks(op),
                           withoutRing(op, others));
    }
    return "";
  }

  /// What else to do, if an exchange of heads among all ranks is possible.
  std::string withoutRing(tx::AttentionOp op, int64_t others) const {
    ContextAxes all;
    all.axis = axes.dealingAxis();
    all.ranks = axes.ranks * axes.headParts;
    if (!HeadExchange(all).problem(op, others).empty())
      return "";
    return axes.headsAxis ? ", or all of these ranks as " + axes.headsAxis.str()
                          : ", or --context-parallel all-to-all";
  }

  static bool isInRing(tx::AttentionOp op, const SequenceSplit &sequence,
                       const SampleSplits &splits) {
    std::optional<unsigned> letter = sequence.letterOf(op);
    if (!op.getRingAttr() || !letter)
      return false;
    const ShardRule &rule =
        splits.propagation.ruleOf(op); // queries and keys have one letter for both sequences
    return rule.operands[0].dimOf(*letter) == 1 && rule.operands[1].dimOf(*letter) == 1;
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

  //===- What is not needed

  /// The bias of the heads of a rank is that of all heads, where these are not dealt out.
  void restoreBias(tx::AttentionOp op, const SequenceSplit &sequence) {
    auto exchange = op.getQ().getDefiningOp<par::AllToAllOp>();
    auto narrow = op.getBias() ? op.getBias().getDefiningOp<par::NarrowOp>() : par::NarrowOp();
    if (!exchange || sequence.isNeeded(exchange) || !narrow || narrow.getAxisAttr() != axes.axis)
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

  ContextAxes axes;
  std::string way; ///< --context-parallel, or what the axes leave of it
  llvm::DenseMap<Operation *, int64_t> headsOf; ///< ranks of tp that split an attention's heads
};

} // namespace
