//===- SeparateBlocks.h - turns blocks of fused weights into weights ----------------*- C++ -*-===//
//
// A fused projection has one placement. If some of its blocks can be split and others cannot
// (queries by heads; a key head that they all share), every rank would compute all of it, and
// everything that follows. So the blocks become weights of their own: a slice of the matmul's
// result becomes a matmul with a slice of the weight, moved up through the ops in between by the
// rules' letters. The parameter stays full; each rank takes its shard of a block that can be split
// (par.narrow), and the shards of the block's gradient are gathered once per step.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_SEPARATEBLOCKS_H
#define PARTITA_LIB_PARTITION_SEPARATEBLOCKS_H

#include "dialects/Train/Train.h"
#include "lib/Partition/Propagation.h"
#include <map>

namespace partita {

/// Returns true for a slice taken directly from a parameter: f of the slice reduces less than f of
/// the full parameter.
bool isBlockOfParameter(mlir::Operation *op);

class SeparateBlocks {
public:
  /// Finds the blocks that an earlier pass has separated and left undecided.
  void find(mlir::ModuleOp module, mlir::StringAttr axis);
  /// Separates the blocks if results of these parameters' matmuls are sliced. Returns true if they
  /// are; each block then has a narrow (kUndecided) that nothing splits yet.
  bool separate(mlir::ModuleOp module, mlir::StringAttr axis,
                const llvm::DenseSet<mlir::StringAttr> &parameters);

  llvm::ArrayRef<par::NarrowOp> blocks() const { return narrows; }
  /// Keeps the narrows whose results are split.
  void keepSplit(const Propagation &propagation);
  /// Keeps these and removes the others.
  void decide(const Propagation &propagation);

private:
  struct Cut {
    unsigned dim;
    int64_t first, size;
    bool operator<(const Cut &other) const {
      return std::tie(dim, first, size) < std::tie(other.dim, other.first, other.size);
    }
  };
  mlir::Value sliced(mlir::Value value, Cut cut);
  mlir::Value slicedRead(train::ReadOp read, Cut cut);
  mlir::Value slicedOp(mlir::OpResult value, Cut cut);
  bool replace(mlir::Operation *slice, mlir::Value of, Cut cut);

  mlir::StringAttr axis;
  const llvm::DenseSet<mlir::StringAttr> *parameters = nullptr;
  llvm::SmallVector<par::NarrowOp> narrows;
  std::map<std::pair<void *, Cut>, mlir::Value> known;
  /// While a slice moves up: the ops built for it, and whether it passed a matmul and reached a
  /// parameter.
  llvm::SmallVector<mlir::Operation *> built;
  bool passedMatmul = false, reachedParameter = false;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_SEPARATEBLOCKS_H
