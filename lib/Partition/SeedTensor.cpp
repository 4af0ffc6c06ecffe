//===- SeedTensor.cpp - splits dimensions of parameters over tp -------------------------------===//
//
// A dimension of a parameter represents everything that its letters tie to it, in all functions:
// the columns of one weight, the activations in between, the rows of the next. Such a family is
// split if
//
//   - no op forbids it ('^'): the dimension along which a softmax over keys runs stays full;
//   - it reaches no input: those are the same on all ranks of a group;
//   - it pays: one of its letters belongs to a contraction (linear in two operands, a letter summed
//     away), or to a lookup table;
//   - sizes divide.
//
// The result is Megatron's layout, without any op or parameter being known by name: MLPs by their
// inner dimension, attention by heads, embedding and head by the vocabulary. A fused projection is
// split within its blocks: if the family stops at a slice, it is tried again within the blocks that
// the slice cuts. If only a size prevents a split, ops with another form (attention with fewer key
// heads than ranks) take it. The dimension of a norm ('^!') is split if a family is still full
// after all others have been tried, fewer such norms first: the norm of all queries costs less than
// queries that every rank computes, but norms of a residual stream cost more than the ops between
// them. A family that stays full because of a slice is tried again with the slice's blocks as
// weights of their own (SeparateBlocks). Families are processed in the order of the parameters; one
// that would split two dimensions of one op over the same axis stays full.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/RequestedSplits.h"
#include "lib/Partition/Seeds.h"
#include "lib/Partition/SeparateBlocks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"
#include "partita/Support/StableSort.h"
#include "runtime/include/partita_rt/shards.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDTENSORPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// A dimension of a parameter, at its first read.
struct Candidate {
  train::ParameterOp parameter;
  Value value;
  unsigned dim;
};

struct PartitionSeedTensor : partita::impl::PartitionSeedTensorPassBase<PartitionSeedTensor> {
  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    mesh = par::MeshAttr::of(module);
    axis = StringAttr::get(&getContext(), par::kTensorAxis);
    if (mesh.sizeOf(par::kTensorAxis) <= 1)
      return;
    blocks.find(module, axis);
    // If a size is the only obstacle and other ops can replace an op, they do, and everything is
    // considered again. This ends, since forms have no further forms.
    while (true) {
      auto any = considerAll(module);
      if (failed(any))
        return signalPassFailure();
      if (tryAgain)
        continue;
      if (forms.empty() && !*any)
        return tellNothing(module), signalPassFailure();
      if (forms.empty())
        return;
      replaced += forms.apply();
    }
  }

private:
  void tellNothing(ModuleOp module) {
    InFlightDiagnostic error = module.emitError() << "nothing can be split over mesh axis '"
                                                  << par::kTensorAxis << "': ";
    auto kept = llvm::make_filter_range(
        module.getOps<train::ParameterOp>(),
        [](train::ParameterOp parameter) { return parameter->hasAttr(kKeepFull); });
    if (kept.empty()) {
      error << "no dimension of a parameter belongs to a matmul and is free of softmax, and of "
               "inputs, on its way";
      return;
    }
    train::ParameterOp first = *kept.begin();
    error << "'" << first->getAttrOfType<StringAttr>(kKeepFull).getValue() << "' keeps '"
          << first.getSymName() << "' full";
    if (size_t more = std::distance(kept.begin(), kept.end()) - 1; more > 0)
      error << ", and " << more << (more == 1 ? " parameter more is" : " parameters more are")
            << " kept so";
    error << "; without these requests the model's structure decides";
  }

  /// Tries the dimensions of all parameters and notes the splits. Returns true if there are any.
  FailureOr<bool> considerAll(ModuleOp module) {
    tryAgain = false;
    Propagation propagation(module, mesh);
    if (failed(propagation.run()))
      return failure();
    independent.clear();
    log.clear();
    for (auto function : module.getOps<func::FuncOp>())
      independent.emplace_back(function);
    llvm::DenseMap<StringAttr, Value> reads = firstReads(module);
    SmallVector<Candidate> candidates;
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (Value value = reads.lookup(parameter.getSymNameAttr());
          value && !parameter->hasAttr(kKeepFull))
        for (unsigned dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim)
          candidates.push_back({parameter, value, dim});
    for (const Candidate &candidate : candidates)
      if (failed(consider(propagation, candidate, LastResort::No)))
        return failure();
    if (forms.empty()) // first the forms, which change the families
      for (const Candidate &candidate : cheapestFirst(propagation, candidates))
        if (failed(consider(propagation, candidate, LastResort::Yes)))
          return failure();
    SmallVector<std::pair<train::ParameterOp, Attribute>> found;
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (Value value = reads.lookup(parameter.getSymNameAttr());
          value && !parameter->hasAttr(kKeepFull))
        if (Attribute split = tensorSplit(propagation.layoutOf(value)))
          found.push_back({parameter, split});
    for (par::NarrowOp block : blocks.blocks())
      if (considerBlock(propagation, block))
        found.push_back({});
    if (forms.empty() && separates(propagation, reads)) {
      tryAgain = true;
      return true;
    }
    if (forms.empty()) {
      blocks.decide(propagation);
      llvm::erase_if(found, [](const auto &each) { return !each.first; });
      for (auto [parameter, split] : found)
        parameter->setAttr(kArgumentSplit, split);
      log.write(module, propagation);
      if (!found.empty())
        tellFull(propagation, reads);
    }
    return !found.empty();
  }

  /// Returns the candidates that hold with norms written out: those with fewer norms first, then
  /// those that reach fewer ops.
  SmallVector<Candidate> cheapestFirst(Propagation &propagation, ArrayRef<Candidate> candidates) {
    SmallVector<std::pair<std::pair<int64_t, size_t>, Candidate>> priced;
    for (const Candidate &candidate : candidates) {
      std::pair<int64_t, size_t> price;
      auto ask = [&](const Attempt &found) {
        price = {countWrittenOut(propagation, found), found.ops.size()};
        return false; // undo
      };
      if (isOpen(propagation, candidate.value, candidate.dim))
        propagation.attemptInBlocks(candidate.value, candidate.dim, axis, ask, LastResort::Yes);
      if (price.first > 0)
        priced.push_back({price, candidate});
    }
    stableSort(priced, llvm::less_first());
    return llvm::map_to_vector(priced, [](const auto &each) { return each.second; });
  }

  /// Counts the ops that the attempt splits along a letter that only another form can split.
  int64_t countWrittenOut(const Propagation &propagation, const Attempt &attempt) {
    auto isLast = [](const RuleLetter &letter) { return letter.never && letter.byForm; };
    return llvm::count_if(attempt.ops, [&](Operation *op) {
      const ShardRule &rule = propagation.ruleOf(op);
      return llvm::any_of(llvm::zip(rule.operands, op->getOperands()), [&](auto pair) {
        auto [pattern, operand] = pair;
        int dim = propagation.layoutOf(operand).dimOf(axis);
        return dim >= 0 && llvm::any_of(pattern.dims[dim].letters, [&](unsigned letter) {
                 return isLast(rule.letters[letter]);
               });
      });
    });
  }

  LogicalResult consider(Propagation &propagation, const Candidate &candidate, LastResort resort) {
    auto [parameter, value, dim] = candidate;
    if (!isOpen(propagation, value, dim))
      return success();
    Attempt attempt = attemptFamily(propagation, value, dim, resort);
    if (attempt.first)
      stops.try_emplace(parameter.getSymNameAttr(), *attempt.first);
    else if (attempt.indivisible != 0)
      stops.try_emplace(parameter.getSymNameAttr(), sizeInTheWay(dim, attempt));
    if (attempt.holds()) {
      families += attempt.pays;
      log.add(attempt, value, axis, "analysis", "");
      return success();
    }
    if (attempt.stop || !attempt.pays || forms.find(attempt, mesh.sizeOf(par::kTensorAxis)) ||
        attempt.kept)
      return success();
    return indivisible(propagation, parameter, dim, attempt); // only a size prevents it
  }

  /// Considers a block of a fused weight by itself. Returns true if it is split.
  bool considerBlock(Propagation &propagation, par::NarrowOp block) {
    unsigned dim = block.getDim();
    Value value = block.getResult();
    if (propagation.layoutOf(value).dimOf(axis) >= 0)
      return true;
    Attempt attempt = propagation.attempt(value, dim, axis, 1, paysFor(propagation));
    if (attempt.holds()) {
      ++families;
      log.add(attempt, value, axis, "analysis", "");
      return true;
    }
    if (!attempt.stop && attempt.pays)
      forms.find(attempt, mesh.sizeOf(par::kTensorAxis));
    return false;
  }

  /// Separates blocks of unsplit weights if results of their matmuls are sliced. Returns true if
  /// there are any.
  bool separates(const Propagation &propagation, const llvm::DenseMap<StringAttr, Value> &reads) {
    if (separated || fullWeights(propagation, reads).empty())
      return false;
    separated = true;
    llvm::DenseSet<StringAttr> unsplit;
    for (auto parameter : getOperation().getOps<train::ParameterOp>())
      if (Value value = reads.lookup(parameter.getSymNameAttr());
          value && !parameter->hasAttr(kKeepFull) && propagation.layoutOf(value).dimOf(axis) < 0)
        unsplit.insert(parameter.getSymNameAttr());
    return blocks.separate(getOperation(), axis, unsplit);
  }

  /// Returns weights whose matmuls every rank computes in full, although no request keeps them
  /// full.
  SmallVector<train::ParameterOp> fullWeights(const Propagation &propagation,
                                              const llvm::DenseMap<StringAttr, Value> &reads) {
    SmallVector<train::ParameterOp> full;
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      Value value = reads.lookup(parameter.getSymNameAttr());
      if (value && !parameter->hasAttr(kKeepFull) && stops.contains(parameter.getSymNameAttr()) &&
          propagation.layoutOf(value).dimOf(axis) < 0 && isMultiplied(propagation, value))
        full.push_back(parameter);
    }
    return full;
  }

  Stop sizeInTheWay(unsigned dim, const Attempt &attempt) {
    int64_t parts = mesh.sizeOf(par::kTensorAxis);
    Stop stop;
    stop.op = attempt.indivisibleAt;
    stop.why =
        llvm::formatv("dimension {0} {1} over tp = {2}", dim, Forms::reason(attempt, parts), parts);
    return stop;
  }

  /// Reports these weights, with the reason for the first.
  void tellFull(const Propagation &propagation, const llvm::DenseMap<StringAttr, Value> &reads) {
    SmallVector<train::ParameterOp> full = fullWeights(propagation, reads);
    if (full.empty())
      return;
    constexpr size_t most = 4;
    InFlightDiagnostic remark = full.front().emitRemark();
    remark << "every rank of tp has all of ";
    llvm::interleaveComma(ArrayRef(full).take_front(most), remark, [&](train::ParameterOp each) {
      remark << "'" << each.getSymName() << "'";
    });
    if (full.size() > most)
      remark << " and " << full.size() - most << " more weights";
    remark << ", and computes the same matmuls with them; of the first: "
           << stops.find(full.front().getSymNameAttr())->second.why;
  }

  /// Returns true if the value is a factor of a matmul that tp does not split.
  bool isMultiplied(const Propagation &propagation, Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *op) {
      return hasRule(op) && isContraction(propagation.ruleOf(op)) &&
             llvm::all_of(op->getResults(), [&](Value result) {
               return propagation.layoutOf(result).dimOf(axis) < 0;
             });
    });
  }

  /// Returns true if the op is linear in two operands and sums a letter away.
  static bool isContraction(const ShardRule &rule) {
    bool sums = rule.reduces();
    int64_t factors = llvm::count_if(rule.operands, [](const RulePattern &pattern) {
      return pattern.linearity == Linearity::Separately;
    });
    return sums && factors >= 2;
  }

  /// Returns true if splitting a letter makes the op cheaper, or its table smaller.
  bool pays(const Propagation &propagation, Operation *op) {
    const ShardRule &rule = propagation.ruleOf(op);
    if (isContraction(rule))
      return true;
    bool lookedUp =
        llvm::any_of(rule.letters, [](const RuleLetter &letter) { return letter.lacksFirstIndex; });
    return lookedUp && llvm::any_of(op->getOperands(), [&](Value operand) {
             return !par::isDifferentiable(operand.getType()) && !isIndependent(operand);
           });
  }

  /// Returns true if the dimension is larger than 1 and no other parameter's family has split the
  /// value.
  bool isOpen(const Propagation &propagation, Value value, unsigned dim) {
    return cast<RankedTensorType>(value.getType()).getDimSize(dim) > 1 &&
           propagation.layoutOf(value).dimOf(axis) < 0;
  }

  /// Tries to split the dimension, and everything that follows from it.
  Attempt attemptFamily(Propagation &propagation, Value value, unsigned dim, LastResort resort) {
    return propagation.attemptInBlocks(value, dim, axis, paysFor(propagation), resort);
  }

  std::function<bool(const Attempt &)> paysFor(const Propagation &propagation) {
    return [&](const Attempt &found) {
      return llvm::any_of(found.ops, [&](Operation *op) { return pays(propagation, op); });
    };
  }

  bool isIndependent(Value value) {
    return llvm::any_of(independent,
                        [&](const DataIndependence &function) { return function(value); });
  }

  static bool isVocabulary(const Propagation &propagation, const Attempt &attempt) {
    return llvm::any_of(attempt.ops, [&](Operation *op) {
      return llvm::any_of(propagation.ruleOf(op).letters, [](const RuleLetter &letter) {
        return letter.lacksFirstIndex || (letter.byForm && !letter.never);
      });
    });
  }

  /// Returns true if no size would prevent a split of any weight over that many ranks.
  bool fits(int64_t parts) {
    ModuleOp module = getOperation();
    SmallVector<int64_t> sizes(mesh.getSizes());
    for (auto [name, size] : llvm::zip(mesh.getAxes(), sizes))
      size = name == axis ? parts : size;
    Propagation other(module, par::MeshAttr::get(&getContext(), mesh.getAxes(), sizes));
    if (failed(other.run()))
      return false;
    auto hinders = [&](Value value, unsigned dim, LastResort resort) {
      if (!isOpen(other, value, dim))
        return false;
      Attempt attempt = attemptFamily(other, value, dim, resort);
      return !attempt.stop && !attempt.kept && attempt.pays && !attempt.holds() &&
             !isVocabulary(other, attempt) && !Forms::exist(attempt, parts);
    };
    SmallVector<Candidate> candidates;
    for (const auto &[symbol, value] : firstReads(module))
      for (unsigned dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim)
        candidates.push_back({train::ParameterOp(), value, dim});
    auto hinder = [&](ArrayRef<Candidate> some, LastResort resort) {
      return llvm::any_of(
          some, [&](const Candidate &each) { return hinders(each.value, each.dim, resort); });
    };
    return !hinder(candidates, LastResort::No) &&
           !hinder(cheapestFirst(other, candidates), LastResort::Yes);
  }

  /// Reports a size that does not divide. A vocabulary may stay full; anything else is up to the
  /// user's mesh.
  LogicalResult indivisible(Propagation &propagation, train::ParameterOp parameter, unsigned dim,
                            const Attempt &attempt) {
    if (isVocabulary(propagation, attempt)) {
      int64_t parts = mesh.sizeOf(par::kTensorAxis),
              shard = partita_rt::shardSize(attempt.indivisible, parts);
      InFlightDiagnostic remark = parameter.emitRemark();
      remark << "dimension " << dim << " of '" << parameter.getSymName()
             << "' stays full: " << attempt.indivisible << " does not divide over tp = " << parts;
      if (shard * (parts - 1) >= attempt.indivisible)
        remark << ", as the last rank would have no row with shards of " << shard;
      return success();
    }
    auto error = parameter.emitError()
                 << "dimension " << dim << " of '" << parameter.getSymName() << "' "
                 << Forms::reason(attempt, mesh.sizeOf(par::kTensorAxis)) << " over "
                 << par::kTensorAxis << " = " << mesh.sizeOf(par::kTensorAxis) << "; sizes of "
                 << par::kTensorAxis << " that do for all weights: ";
    llvm::interleaveComma(llvm::make_filter_range(Forms::divisors(attempt),
                                                  [&](int64_t parts) { return fits(parts); }),
                          error);
    error.attachNote(attempt.indivisibleAt->getLoc()) << "it does not divide here";
    return failure();
  }

  /// Returns the part of a layout that belongs to tensor parallelism.
  Attribute tensorSplit(par::Layout layout) {
    for (par::DimSplit &axes : layout.splits)
      llvm::erase_if(axes, [&](const par::AxisSplit &split) { return split.axis != axis; });
    return layout.encoding(&getContext());
  }

  par::MeshAttr mesh;
  StringAttr axis;
  Forms forms;
  SeparateBlocks blocks;
  bool separated = false, tryAgain = false;
  llvm::DenseMap<StringAttr, Stop> stops; ///< the first of each parameter
  SeedLog log;
  SmallVector<DataIndependence, 0> independent;
};

} // namespace
