//===- Topology.h - mesh axes, communicators and channels of a program --------------*- C++ -*-===//
//
// Emitted code names the rows of kGroups and kChannels by enumerators: both are made here, in one order.
// The axes come first, then the communicators for gathers ahead of their use, then those for sums
// over some of the pipeline stages.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EMIT_TOPOLOGY_H
#define PARTITA_LIB_EMIT_TOPOLOGY_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include <set>
#include <string>
#include <tuple>

namespace partita::emit {

/// "{2, 3}"
std::string shapeText(llvm::ArrayRef<int64_t> shape);

class Topology {
public:
  explicit Topology(mlir::ModuleOp module);

  /// "enum MeshAxis { kDp, kTp };" and the enumerations of the other rows; "" without a mesh.
  std::string enumerations() const;
  /// Rows of kMesh.
  llvm::SmallVector<std::string> axes() const;
  /// Rows of kGroups; none if there is one communicator per axis and no other.
  llvm::SmallVector<std::string> groups() const;
  /// Rows of kChannels.
  llvm::SmallVector<std::string> channels() const;

private:
  mlir::ModuleOp module;
  llvm::SetVector<mlir::StringAttr> gathersAhead;
  llvm::SetVector<mlir::Attribute> stageSums; ///< DenseI64ArrayAttr
  std::set<std::tuple<int64_t, int64_t, int64_t>> links; ///< from, to, number
};

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_TOPOLOGY_H
