//===- SeedUser.cpp - dimensions of parameters that the user splits ---------------------------===//
//
// PATTERN=AXIS@DIM splits a dimension of each parameter whose name matches, with all that the
// rules' letters unite it with; PATTERN=replicated keeps parameters whole. In the order given, each
// tried on what those before it have split: one that cannot hold says why, and which other it
// meets. What is left undecided is partition-seed-tensor's.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/Forms.h"
#include "partita/Partition/Passes.h"
#include "partita/Support/NearestNames.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDUSERPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// One request, and the parameters that it names.
struct Seed {
  StringRef text;
  StringAttr axis; ///< null: replicated
  unsigned dim = 0;
  SmallVector<train::ParameterOp> parameters;
};

struct PartitionSeedUser : partita::impl::PartitionSeedUserPassBase<PartitionSeedUser> {
  using PartitionSeedUserPassBase::PartitionSeedUserPassBase;

  void runOnOperation() override {
    mesh = par::MeshAttr::of(getOperation());
    SmallVector<Seed> seeds;
    for (const std::string &text : shard)
      if (!text.empty() && failed(read(text, seeds.emplace_back())))
        return signalPassFailure();
    for (Seed &seed : seeds)
      if (!seed.axis && failed(keep(seed)))
        return signalPassFailure();
    while (!seeds.empty()) { // again where ops took another form, which have no further one
      if (failed(plant(seeds)))
        return signalPassFailure();
      if (forms.empty())
        return;
      forms.apply();
    }
  }

private:
  //===- what is asked for

  InFlightDiagnostic error(StringRef text) {
    return getOperation().emitError() << "shard: '" << text << "': ";
  }

  LogicalResult read(StringRef text, Seed &seed) {
    seed.text = text;
    auto [pattern, place] = text.rsplit('=');
    if (failed(match(text, pattern, seed.parameters)))
      return failure();
    if (place == "replicated")
      return success();
    auto [axis, dim] = place.split('@');
    seed.axis = StringAttr::get(&getContext(), axis);
    if (axis.empty() || dim.getAsInteger(10, seed.dim))
      return error(text) << "'" << place << "' is neither AXIS@DIMENSION, such as tp@1, nor "
                         << "'replicated'";
    if (!mesh.hasAxis(axis)) {
      InFlightDiagnostic unknown = error(text) << "the mesh has no axis '" << axis << "'; it has ";
      llvm::interleaveComma(mesh.getAxes(), unknown,
                            [&](StringAttr each) { unknown << "'" << each.getValue() << "'"; });
      return unknown << (mesh.getAxes().empty() ? "none" : "");
    }
    for (train::ParameterOp parameter : seed.parameters)
      if (auto type = cast<RankedTensorType>(parameter.getType()); seed.dim >= type.getRank())
        return error(text) << "'" << parameter.getSymName() << "' of type " << type
                           << " has no dimension " << seed.dim;
    return success();
  }

  LogicalResult match(StringRef text, StringRef pattern,
                      SmallVectorImpl<train::ParameterOp> &parameters) {
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return error(text) << "'" << pattern
                         << "' is no glob pattern: " << llvm::toString(glob.takeError());
    SmallVector<StringRef> names;
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      names.push_back(parameter.getSymName());
      if (glob->match(parameter.getSymName()))
        parameters.push_back(parameter);
    }
    if (parameters.empty())
      return error(text) << "no parameter matches '" << pattern << "'"
                         << nearestNames(pattern, names);
    return success();
  }

  //===- and whether it holds

  LogicalResult keep(const Seed &seed) {
    for (train::ParameterOp parameter : seed.parameters)
      parameter->setAttr(kKeepWhole, StringAttr::get(&getContext(), seed.text));
    return success();
  }

  LogicalResult plant(ArrayRef<Seed> seeds) {
    Propagation propagation(getOperation(), mesh);
    if (failed(propagation.run()))
      return failure();
    splitBy.clear();
    llvm::DenseMap<StringAttr, Value> reads;
    getOperation().walk([&](train::ReadOp read) {
      reads.try_emplace(read.getSymbolAttr().getAttr(), read.getResult());
    });
    for (const Seed &seed : seeds)
      for (train::ParameterOp parameter : seed.parameters)
        if (Value value = reads.lookup(parameter.getSymNameAttr());
            value && seed.axis && failed(plantOne(propagation, seed, parameter, value)))
          return failure();
    if (forms.empty())
      for (auto parameter : getOperation().getOps<train::ParameterOp>())
        if (Value value = reads.lookup(parameter.getSymNameAttr()))
          if (Attribute split = propagation.layoutOf(value).encoding(&getContext()))
            parameter->setAttr(kArgumentSplit, split);
    return success();
  }

  LogicalResult plantOne(Propagation &propagation, const Seed &seed, train::ParameterOp parameter,
                         Value value) {
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(seed.dim);
    if (mesh.sizeOf(seed.axis) <= 1)
      return success();
    for (int64_t blocks = 1;;) {
      par::Layout layout = propagation.layoutOf(value);
      if (int dim = layout.dimOf(seed.axis); dim >= 0) {
        if (dim == static_cast<int>(seed.dim))
          return success(); // another parameter's family
        return contradicts(seed, parameter, dim, value);
      }
      Attempt attempt = propagation.attempt(value, seed.dim, seed.axis, blocks,
                                            [](const Attempt &) { return true; });
      if (attempt.holds()) {
        for (Operation *op : attempt.ops)
          splitBy.insert({{op, seed.axis}, &seed});
        return success();
      }
      if (!attempt.stop)
        return forms.find(attempt, mesh.sizeOf(seed.axis)) ? success()
                                                           : indivisible(seed, parameter, attempt);
      if (attempt.stop->blocks <= 1 || blocks * attempt.stop->blocks >= size)
        return stopped(seed, parameter, *attempt.stop);
      blocks *= attempt.stop->blocks;
    }
  }

  LogicalResult contradicts(const Seed &seed, train::ParameterOp parameter, int dim, Value value) {
    auto failed = error(seed.text)
                  << "'" << parameter.getSymName() << "' is split over " << seed.axis.getValue()
                  << " along dimension " << dim << " already";
    for (Operation *user : value.getUsers())
      if (const Seed *other = splitBy.lookup({user, seed.axis}))
        return failed << ", by '" << other->text << "'; one of the two must go";
    return failed;
  }

  LogicalResult stopped(const Seed &seed, train::ParameterOp parameter, const Stop &stop) {
    auto failed = error(seed.text) << "dimension " << seed.dim << " of '" << parameter.getSymName()
                                   << "' cannot be split: " << stop.why;
    const Seed *other = splitBy.lookup({stop.op, seed.axis});
    if (other && other != &seed)
      failed << ", which '" << other->text << "' splits; one of the two must go";
    failed.attachNote(stop.op->getLoc()) << "here";
    return failed;
  }

  LogicalResult indivisible(const Seed &seed, train::ParameterOp parameter,
                            const Attempt &attempt) {
    auto failed = error(seed.text)
                  << "dimension " << seed.dim << " of '" << parameter.getSymName()
                  << "' is split together with a dimension of size " << attempt.indivisible
                  << ", which does not divide over " << seed.axis.getValue() << " = "
                  << mesh.sizeOf(seed.axis) << "; sizes of " << seed.axis.getValue()
                  << " that do: " << Forms::divisors(attempt);
    failed.attachNote(attempt.indivisibleAt->getLoc()) << "it does not divide here";
    return failed;
  }

  par::MeshAttr mesh;
  Forms forms;
  /// The first seed that split an op over an axis.
  llvm::DenseMap<std::pair<Operation *, StringAttr>, const Seed *> splitBy;
};

} // namespace
