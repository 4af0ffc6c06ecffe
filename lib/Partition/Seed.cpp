//===- Seed.cpp - splits the batch of every input over data-parallel axes ---------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Flow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Partition/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONSEEDPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct PartitionSeed : partita::impl::PartitionSeedPassBase<PartitionSeed> {
  using PartitionSeedPassBase::PartitionSeedPassBase;

  void runOnOperation() override {
    if (failed(expectUnpartitionedForward(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    par::MeshAttr mesh = par::MeshAttr::of(module);
    if (!this->mesh.getValue().empty()) {
      auto parsed = parseMesh(module);
      if (failed(parsed))
        return signalPassFailure();
      mesh = *parsed;
      module->setAttr(par::ParDialect::kMesh, mesh);
    }
    for (StringAttr axis : mesh.getAxes())
      if (!par::splitsTensors(axis)) {
        module.emitError() << "mesh axis '" << axis.getValue()
                           << "' is unknown; known axes: " << par::tensorAxisNames();
        return signalPassFailure();
      }
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(seed(function, mesh)))
        return signalPassFailure();
  }

private:
  /// Parses "dp=4,tp=2".
  FailureOr<par::MeshAttr> parseMesh(ModuleOp module) {
    SmallVector<StringAttr> axes;
    SmallVector<int64_t> sizes;
    SmallVector<StringRef> parts;
    StringRef(mesh).split(parts, ',');
    for (StringRef part : parts) {
      auto [axis, size] = part.split('=');
      axes.push_back(StringAttr::get(&getContext(), axis.trim()));
      if (axis.trim().empty() || size.trim().getAsInteger(10, sizes.emplace_back()))
        return module.emitError() << "mesh '" << mesh << "': expected AXIS=SIZE, found '" << part
                                  << "'",
               failure();
    }
    auto attr = par::MeshAttr::getChecked(
        [&] { return module.emitError() << "mesh '" << mesh << "': "; }, &getContext(),
        ArrayRef<StringAttr>(axes), ArrayRef<int64_t>(sizes));
    if (!attr)
      return failure();
    return attr;
  }

  LogicalResult seed(func::FuncOp function, par::MeshAttr mesh) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto batch = function.getArgAttrOfType<IntegerAttr>(i, train::TrainDialect::kBatch);
      auto type = dyn_cast<RankedTensorType>(function.getArgument(i).getType());
      if (!batch)
        continue;
      int64_t dim = batch.getInt();
      if (!type || dim < 0 || dim >= type.getRank())
        return function.emitError()
               << "argument " << i << " of type " << function.getArgument(i).getType()
               << " has no dimension " << dim << " (" << train::TrainDialect::kBatch << ")";
      par::Layout layout(type.getShape());
      int64_t parts = 1;
      for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
        if (size > 1 && par::splitsBatch(axis)) {
          layout.splits[dim].push_back({axis, 1});
          parts *= size;
        }
      if (type.getDimSize(dim) % parts != 0)
        return function.emitError()
               << "a batch of " << type.getDimSize(dim) << " does not divide over " << parts
               << " data-parallel ranks; take a multiple of " << parts;
      if (Attribute split = layout.encoding(&getContext())) {
        function.setArgAttr(i, kArgumentSplit, split);
        ++batches;
      }
    }
    return success();
  }
};

} // namespace
