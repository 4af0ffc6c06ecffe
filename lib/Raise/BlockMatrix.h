//===- BlockMatrix.h - a matrix of blocks as the few terms of #tx.blocks ------------*- C++ -*-===//

#ifndef PARTITA_LIB_RAISE_BLOCKMATRIX_H
#define PARTITA_LIB_RAISE_BLOCKMATRIX_H

#include "dialects/Tx/Tx.h"
#include "llvm/ADT/BitVector.h"
#include <vector>

namespace partita::raise {

/// Which of n x n blocks have a score that some query sees.
class BlockMatrix {
public:
  explicit BlockMatrix(int64_t n) : n(n), rows(n, llvm::BitVector(n)) {}

  int64_t size() const { return n; }
  bool at(int64_t row, int64_t column) const { return rows[row].test(column); }
  void set(int64_t row, int64_t column) { rows[row].set(column); }
  int64_t count() const;
  /// Are there no blocks above the diagonal?
  bool isLower() const;
  bool operator==(const BlockMatrix &other) const { return rows == other.rows; }

  /// Exactly these blocks as rows and columns that are full, squares on the diagonal, bands, and, for what remains,
  /// single blocks; null if there would be more than `mostSingle` of these.
  tx::BlockPatternAttr compress(mlir::MLIRContext *context, int64_t mostSingle) const;

private:
  int64_t n;
  std::vector<llvm::BitVector> rows;
};

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_BLOCKMATRIX_H
