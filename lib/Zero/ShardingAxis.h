//===- ShardingAxis.h - the axis over which ZeRO shards ------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_ZERO_SHARDINGAXIS_H
#define PARTITA_LIB_ZERO_SHARDINGAXIS_H

#include "dialects/Zero/Zero.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::zero {

/// Returns the axis over which ZeRO shards; null, after an error, if no axis that splits the batch has
/// several ranks. `what` says which stage asks, and what it splits.
inline mlir::StringAttr requireShardingAxis(mlir::ModuleOp module, const llvm::Twine &what) {
  if (mlir::StringAttr axis = shardingAxis(par::MeshAttr::of(module)))
    return axis;
  llvm::SmallVector<std::string> names; // in the order in which shardingAxis asks them
  for (const par::AxisRow &row : llvm::reverse(par::kAxes))
    if (row.splits == par::Splits::Batch)
      names.push_back(("'" + row.name + "'").str());
  module.emitError() << what << " over mesh axis " << llvm::join(names, " or ")
                     << ", of which there is one rank; give it a mesh with "
                     << par::axisThatSplits(par::Splits::Batch) << "=2 or more";
  return {};
}

} // namespace partita::zero

#endif // PARTITA_LIB_ZERO_SHARDINGAXIS_H
