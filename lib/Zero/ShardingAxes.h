//===- ShardingAxes.h - the axes over which ZeRO shards ------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_ZERO_SHARDINGAXES_H
#define PARTITA_LIB_ZERO_SHARDINGAXES_H

#include "dialects/Zero/Zero.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::zero {

/// Returns the axes over which ZeRO++ shards with a secondary copy in groups of `hpz` data-parallel ranks (hpZ): all that
/// split the batch or its sequences, nearer ranks first. The group is the last axis that splits the batch, the others are
/// between groups. None, after an error, if the mesh has no such groups.
inline llvm::SmallVector<mlir::StringAttr> requireGroupedAxes(mlir::ModuleOp module, int64_t hpz) {
  par::MeshAttr mesh = par::MeshAttr::of(module);
  llvm::SmallVector<mlir::StringAttr> axes, ofBatch;
  for (mlir::StringAttr axis : llvm::reverse(mesh.getAxes())) {
    if (mesh.sizeOf(axis) == 1 || par::splits(axis, par::Splits::Weights))
      continue;
    axes.push_back(axis);
    if (par::splits(axis, par::Splits::Batch))
      ofBatch.push_back(axis);
  }
  if (ofBatch.size() == 2 && mesh.sizeOf(ofBatch.front()) == hpz)
    return axes;
  module.emitError() << "hpz=" << hpz
                     << " expects a mesh with two axes that split the batch, the inner one of "
                     << hpz << " ranks, as in dp=2,fsdp=" << hpz << "; this one is " << mesh;
  return {};
}

/// Returns the axes over which ZeRO shards; none, after an error, if no axis that splits the batch or
/// its sequences has several ranks. `what` says which stage asks, and what it splits. `hpz` above 1: as requireGroupedAxes.
inline llvm::SmallVector<mlir::StringAttr>
requireShardingAxes(mlir::ModuleOp module, const llvm::Twine &what, int64_t hpz) {
  llvm::SmallVector<mlir::StringAttr> axes = shardingAxes(par::MeshAttr::of(module));
  if (!axes.empty())
    return hpz > 1 ? requireGroupedAxes(module, hpz) : axes;
  llvm::SmallVector<std::string> names; // that of the state first
  for (const par::AxisRow &row : llvm::reverse(par::kAxes))
    if (row.splits == par::Splits::Batch)
      names.push_back(("'" + row.name + "'").str());
  for (const par::AxisRow &row : par::kAxes)
    if (row.splits == par::Splits::Context)
      names.push_back(("'" + row.name + "'").str());
  std::string last = names.pop_back_val();
  module.emitError() << what << " over mesh axis " << llvm::join(names, ", ") << " or " << last
                     << ", of which there is one rank; give it a mesh with "
                     << par::axisThatSplits(par::Splits::Batch) << "=2 or more";
  return {};
}

/// Returns those of the axes over which ranks have the same value, so that it can be sharded among
/// them; none if no rank has a shard of its kind.
inline llvm::SmallVector<mlir::StringAttr>
sharedBy(mlir::Type full, llvm::ArrayRef<mlir::StringAttr> axes, par::MeshAttr mesh) {
  par::Layout layout = par::Layout::of(full);
  llvm::SmallVector<mlir::StringAttr> shared = llvm::filter_to_vector(
      axes, [&](mlir::StringAttr axis) { return layout.kind(axis) == par::Kind::Invariant; });
  return shardType(full, shared, mesh) ? shared : llvm::SmallVector<mlir::StringAttr>();
}

} // namespace partita::zero

#endif // PARTITA_LIB_ZERO_SHARDINGAXES_H
