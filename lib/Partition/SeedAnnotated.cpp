//===- SeedAnnotated.cpp - splits that the model file requests --------------------------------===//
//
// ONNX's sharding annotations list devices shard by shard. A split belongs to the mesh axis along
// which every device's coordinate is the number of its shard. A configuration covers all ranks, or
// those of one replica of the model: the mesh without its data-parallel axes.
//
// Parameters are split, or kept full, as annotated. A result's annotation is optional: if it cannot
// hold, the rules decide and a remark says why.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/RequestedSplits.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDANNOTATEDPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::ShardingAttr;
using train::TrainDialect;

namespace {

SmallVector<int64_t> integers(ArrayAttr array) {
  return llvm::map_to_vector(array.getAsRange<IntegerAttr>(),
                             [](IntegerAttr each) { return each.getInt(); });
}

struct PartitionSeedAnnotated
    : partita::impl::PartitionSeedAnnotatedPassBase<PartitionSeedAnnotated> {
  using PartitionSeedAnnotatedPassBase::PartitionSeedAnnotatedPassBase;

  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    mesh = par::MeshAttr::of(module);
    // The user can always compile without the annotations, so every error says how.
    bool isAnnotated = module->hasAttr(TrainDialect::kConfigurations);
    ScopedDiagnosticHandler hint(&getContext(), [&](Diagnostic &told) {
      if (told.getSeverity() == DiagnosticSeverity::Error && isAnnotated)
        told.attachNote(module.getLoc())
            << "--configuration none leaves the annotations of the model's file aside";
      return failure(); // other handlers report it
    });
    if (failed(choose(module)) || (chosen && failed(seed(module))))
      return signalPassFailure();
    module->removeAttr(TrainDialect::kConfigurations);
    module.walk([](Operation *op) { op->removeAttr(TrainDialect::kShardings); });
  }

private:
  //=== Choosing a configuration

  LogicalResult choose(ModuleOp module) {
    auto all = module->getAttrOfType<DictionaryAttr>(TrainDialect::kConfigurations);
    StringRef wanted = configuration.getValue();
    if (wanted == "none" || (wanted.empty() && (!all || mesh.rankCount() == 1)))
      return success();
    if (!all)
      return module.emitError() << "configuration '" << wanted
                                << "': the model's file has no device configurations";
    if (!wanted.empty() && !all.get(wanted))
      return module.emitError() << "configuration '" << wanted << "': the model's file has "
                                << list(all);
    SmallVector<StringAttr> fitting;
    for (NamedAttribute entry : all)
      if (wanted.empty() || entry.getName() == wanted)
        if (par::MeshAttr found = devicesOf(entry.getValue())) {
          fitting.push_back(entry.getName());
          devices = found;
        }
    if (fitting.size() > 1)
      return module.emitError() << "the model's file has several device configurations for this "
                                   "mesh: "
                                << list(all) << "; which one?";
    if (!fitting.empty()) {
      chosen = fitting.front();
      return checkStages(module, all.get(chosen));
    }
    InFlightDiagnostic told = wanted.empty() ? module.emitRemark() : module.emitError();
    told << "the model's file has sharding annotations for " << list(all) << "; the mesh has "
         << mesh.rankCount() << (mesh.rankCount() == 1 ? " rank" : " ranks");
    if (wanted.empty())
      told << ", so they are not followed; --configuration none says so without a remark";
    return success(wanted.empty());
  }

  std::string list(DictionaryAttr all) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(all, os, [&](NamedAttribute entry) {
      os << "'" << entry.getName().getValue() << "' (" << number(entry.getValue(), "devices")
         << " devices)";
    });
    return text;
  }

  static int64_t number(Attribute entry, StringRef key) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    auto value = dictionary ? dictionary.getAs<IntegerAttr>(key) : IntegerAttr();
    return value ? value.getInt() : 0;
  }

  /// Returns the mesh, or the mesh of one replica, if it has as many ranks as the configuration;
  /// otherwise null.
  par::MeshAttr devicesOf(Attribute entry) {
    int64_t count = number(entry, "devices");
    SmallVector<StringAttr> axes;
    SmallVector<int64_t> sizes;
    for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
      if (!par::splitsBatch(axis) && !par::splits(axis, par::Splits::Context)) {
        axes.push_back(axis);
        sizes.push_back(size);
      }
    auto replica =
        par::MeshAttr::get(&getContext(), ArrayRef<StringAttr>(axes), ArrayRef<int64_t>(sizes));
    for (par::MeshAttr each : {mesh, replica})
      if (each.rankCount() == count && count > 1)
        return each;
    return {};
  }

  LogicalResult checkStages(ModuleOp module, Attribute entry) {
    if (int64_t stages = number(entry, "stages"); stages > 1)
      return module.emitError()
             << about() << "its nodes are in " << stages
             << " pipeline stages, and annotations place no layers; --mesh pp=" << stages
             << " splits a model that has none into as many, and --stages says where";
    annotated = number(entry, "tensors");
    return success();
  }

  //=== Requests of the configuration

  std::string about() { return ("device configuration '" + chosen.getValue() + "': ").str(); }

  ShardingAttr shardingOf(Operation *op) {
    if (auto all = op->getAttrOfType<ArrayAttr>(TrainDialect::kShardings))
      for (Attribute each : all)
        if (auto sharding = dyn_cast<ShardingAttr>(each))
          if (sharding.getConfiguration() == chosen)
            return sharding;
    return {};
  }

  LogicalResult seed(ModuleOp module) {
    int64_t found = 0;
    module.walk([&](Operation *op) { found += static_cast<bool>(shardingOf(op)); });
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (ShardingAttr sharding = shardingOf(parameter))
        if (failed(keepFull(parameter, sharding)))
          return failure();
    Planter planter(module, mesh);
    planter.fullInMemory = keptFull;
    if (failed(planter.plant([&] { return collect(module); })))
      return failure();
    followed += found;
    if (found < annotated)
      module.emitRemark() << about() << annotated - found << " of " << annotated
                          << " annotated tensors are inputs or inside other operations by now; "
                             "the rules decide how they are split";
    return success();
  }

  LogicalResult keepFull(train::ParameterOp parameter, ShardingAttr sharding) {
    if (!sharding.getDims().empty())
      return success();
    std::string words = (chosen.getValue() + ", node " + sharding.getNode().getValue() + "").str();
    auto split = parameter->getAttrOfType<par::PlacementAttr>(kArgumentSplit);
    for (StringAttr axis : devices.getAxes())
      if (split && par::Layout::of(split).dimOf(axis) >= 0)
        return getOperation().emitError()
               << about() << "node '" << sharding.getNode().getValue() << "' keeps '"
               << parameter.getSymName() << "' full, and the user splits it over " << axis
               << " along dimension " << par::Layout::of(split).dimOf(axis)
               << "; one of the two must go";
    parameter->setAttr(kKeepFull, StringAttr::get(&getContext(), words));
    keptFull.insert(parameter.getSymNameAttr());
    return success();
  }

  FailureOr<SmallVector<Request>> collect(ModuleOp module) {
    llvm::DenseMap<StringAttr, Value> reads = firstReads(module);
    SmallVector<Request> requests;
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (Value value = reads.lookup(parameter.getSymNameAttr()))
        if (failed(add(parameter, value, parameter.getSymName(), /*isWish=*/false, requests)))
          return failure();
    WalkResult walk = module.walk([&](Operation *op) {
      if (isa<train::ParameterOp>(op) || op->getNumResults() != 1)
        return WalkResult::advance();
      StringRef name = shardingOf(op) ? shardingOf(op).getNode().getValue() : "";
      return WalkResult(add(op, op->getResult(0), name, /*isWish=*/true, requests));
    });
    if (walk.wasInterrupted())
      return failure();
    return requests;
  }

  LogicalResult add(Operation *op, Value value, StringRef name, bool isWish,
                    SmallVectorImpl<Request> &requests) {
    ShardingAttr sharding = shardingOf(op);
    if (!sharding)
      return success();
    std::string node = ("node '" + sharding.getNode().getValue() + "'").str();
    int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    SmallVector<int64_t> dims = integers(sharding.getDims()),
                         blocks = integers(sharding.getBlocks());
    for (unsigned split = 0; split < dims.size(); ++split) {
      if (dims[split] >= rank)
        return op->emitError() << "has no dimension " << dims[split] << ": " << sharding;
      StringAttr axis = axisOf(sharding, split);
      if (!axis)
        return fitsNoAxis(op, sharding, dims[split]);
      requests.push_back({about() + node + ": ", node, name.str(), value, axis,
                          static_cast<unsigned>(dims[split]), blocks[split], isWish, "annotation",
                          (chosen.getValue() + ", " + node).str()});
    }
    return success();
  }

  /// Returns the axis along which every device's coordinate is the number of its shard in this
  /// split.
  StringAttr axisOf(ShardingAttr sharding, unsigned split) {
    SmallVector<int64_t> shards = integers(sharding.getShards());
    int64_t inner = 1, listed = 0;
    for (int64_t count : ArrayRef(shards).drop_front(split + 1))
      inner *= count;
    for (auto group : sharding.getDevices().getAsRange<DenseI64ArrayAttr>())
      listed += group.size();
    if (listed != devices.rankCount())
      return {};
    for (auto [axis, size] : llvm::zip(devices.getAxes(), devices.getSizes())) {
      bool fits = size == shards[split];
      for (auto [number, group] :
           llvm::enumerate(sharding.getDevices().getAsRange<DenseI64ArrayAttr>()))
        for (int64_t device : group.asArrayRef())
          fits &= devices.coordinate(device, axis) ==
                  static_cast<int64_t>(number) / inner % shards[split];
      if (fits)
        return axis;
    }
    return {};
  }

  LogicalResult fitsNoAxis(Operation *op, ShardingAttr sharding, int64_t dim) {
    InFlightDiagnostic error = op->emitError()
                               << about() << "node '" << sharding.getNode().getValue()
                               << "': the devices along dimension " << dim
                               << " are not an axis of the mesh, whose devices are ";
    llvm::interleave(
        llvm::zip(devices.getAxes(), devices.getSizes()), error,
        [&](auto axis) { error << std::get<0>(axis).getValue() << "=" << std::get<1>(axis); }, ",");
    return error << " with the last axis counting fastest, each holding a shard: " << sharding;
  }

  par::MeshAttr mesh;
  StringAttr chosen;
  llvm::DenseSet<StringAttr> keptFull;
  par::MeshAttr devices; ///< the mesh of the configuration: all ranks, or one replica
  int64_t annotated = 0; ///< how many tensors the model file annotates
};

} // namespace
