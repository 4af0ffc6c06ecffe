//===- SeedUser.cpp - splits of parameters that the user requests -----------------------------===//
//
// PATTERN=AXIS@DIM splits a dimension of each parameter whose name matches, and everything that the
// rules' letters tie to it; PATTERN=replicated keeps parameters full. Requests apply in the given
// order; one that cannot hold is an error with the reason and the request it conflicts with.
// partition-seed-tensor decides the rest.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/RequestedSplits.h"

#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"
#include "partita/Support/NamePattern.h"
#include "llvm/ADT/StringExtras.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDUSERPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// One request, and the parameters that it matches.
struct Seed {
  StringRef text;
  StringAttr axis; ///< null: replicated
  unsigned dim = 0;
  SmallVector<train::ParameterOp> parameters;
};

struct PartitionSeedUser : partita::impl::PartitionSeedUserPassBase<PartitionSeedUser> {
  using PartitionSeedUserPassBase::PartitionSeedUserPassBase;

  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    mesh = par::MeshAttr::of(getOperation());
    SmallVector<Seed> seeds;
    for (const std::string &text : shard)
      if (!text.empty() && failed(read(text, seeds.emplace_back())))
        return signalPassFailure();
    for (Seed &seed : seeds)
      if (!seed.axis && failed(keep(seed)))
        return signalPassFailure();
    if (failed(Planter(getOperation(), mesh).plant([&] { return requests(seeds); })))
      return signalPassFailure();
    for (const Seed &seed : seeds)
      (seed.axis ? split : kept) += seed.parameters.size();
  }

private:
  //=== Parsing

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
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted)
      return error(text) << llvm::toString(wanted.takeError());
    SmallVector<StringRef> names;
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      names.push_back(parameter.getSymName());
      if (wanted->match(parameter.getSymName()))
        parameters.push_back(parameter);
    }
    if (parameters.empty())
      return error(text) << wanted->unmatched("parameter", names);
    return success();
  }

  //=== Requests

  LogicalResult keep(const Seed &seed) {
    for (train::ParameterOp parameter : seed.parameters)
      parameter->setAttr(kKeepFull, StringAttr::get(&getContext(), seed.text));
    return success();
  }

  FailureOr<SmallVector<Request>> requests(ArrayRef<Seed> seeds) {
    llvm::DenseMap<StringAttr, Value> reads = firstReads(getOperation());
    SmallVector<Request> result;
    for (const Seed &seed : seeds)
      for (train::ParameterOp parameter : seed.parameters)
        if (Value value = reads.lookup(parameter.getSymNameAttr()); value && seed.axis)
          result.push_back({("shard: '" + seed.text + "': ").str(), ("'" + seed.text + "'").str(),
                            parameter.getSymName().str(), value, seed.axis, seed.dim, 0, false,
                            "user", seed.text.str()});
    return result;
  }

  par::MeshAttr mesh;
};

} // namespace
