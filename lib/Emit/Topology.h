//===- Topology.h - mesh axes, communicators and channels of a program --------------*- C++ -*-===//
//
// Emitted code names the rows of kMesh, kGroups and kChannels by enumerators: both are made here, in
// one order.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EMIT_TOPOLOGY_H
#define PARTITA_LIB_EMIT_TOPOLOGY_H

#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace partita::emit {

/// Returns "{2, 3}".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

class Topology {
public:
  explicit Topology(mlir::ModuleOp module);

  /// "enum MeshAxis { kDp, kTp };" and the enumerations of the other tables' rows; "" without a mesh.
  std::string enumerations() const;
  /// Returns the rows of kMesh.
  llvm::SmallVector<std::string> axes() const;
  /// Rows of kGroups.
  llvm::SmallVector<std::string> groups() const;
  /// Returns the rows of kChannels.
  llvm::SmallVector<std::string> channels() const;

private:
  mlir::ModuleOp module;
  llvm::SmallVector<rt::CommunicatorAttr> communicatorRows;
  llvm::SmallVector<rt::ChannelAttr> channelRows;
};

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_TOPOLOGY_H
