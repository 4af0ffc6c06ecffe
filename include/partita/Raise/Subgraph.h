//===- Subgraph.h - subgraphs with one exit and few inputs around an op -------------*- C++ -*-===//

#ifndef PARTITA_RAISE_SUBGRAPH_H
#define PARTITA_RAISE_SUBGRAPH_H

#include "dialects/Tx/Tx.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <vector>

namespace partita::raise {

/// Returns the number that all elements of `value` equal, if that is evident: a constant through
/// broadcasts, reshapes, transposes, slices and casts.
std::optional<double> splatOf(mlir::Value value);

/// The values of a function that depend on no input, parameter or state.
class Independent {
public:
  explicit Independent(mlir::Operation *function);
  bool contains(mlir::Value value) const { return values.contains(value); }

private:
  llvm::DenseSet<mlir::Value> values;
};

using IsInterior = llvm::function_ref<bool(mlir::Operation *)>;

/// Returns the values that post-dominate `anchor` through interior ops, nearest first; the last one
/// may have users of any kind. Visits at most `limit` ops. The model's own roundings are not interior.
llvm::SmallVector<mlir::Value> findExits(mlir::Operation *anchor, IsInterior isInterior,
                                         unsigned limit = 32);

/// A subgraph that computes `root` from `leaves`. Values that depend on nothing are neither leaves
/// nor interior: the subgraph contains them as operands.
struct Subgraph {
  mlir::Value root;
  llvm::SmallVector<mlir::Operation *> ops; // in block order
  llvm::SmallVector<mlir::Value> leaves;
};

/// Grows a subgraph backward from `root`, the latest op first, and calls `visit` at every step.
/// Stops if `visit` returns false, if nothing interior is left, or after `limit` ops. Never goes
/// beyond a value for which `isLeaf` holds, or that the model rounds.
void growBackward(mlir::Value root, IsInterior isInterior,
                  llvm::function_ref<bool(mlir::Value)> isLeaf, const Independent &independent,
                  llvm::function_ref<bool(const Subgraph &)> visit, unsigned limit = 48);

/// A key that is equal for subgraphs that compute the same function of their leaves: the ops with
/// attributes, types and connections, including those of operands that depend on nothing.
using StructuralKey = std::vector<uintptr_t>;
StructuralKey structuralKey(const Subgraph &subgraph);

/// Erases unused ops.
void eraseDead(mlir::Operation *function);

} // namespace partita::raise

#endif // PARTITA_RAISE_SUBGRAPH_H
