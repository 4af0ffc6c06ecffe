//===- IndexEvaluator.h - evaluates single elements of constant graphs --------------*- C++ -*-===//
//
// A causal mask has as many elements as there are pairs of positions, and the program writes it as
// a graph: comparisons of iotas, slices, broadcasts over batch and heads. This evaluates any
// element or any row of such a graph in double precision. A row costs what it has of runs (Row.h).
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_RAISE_INDEXEVALUATOR_H
#define PARTITA_RAISE_INDEXEVALUATOR_H

#include "dialects/Tx/Tx.h"
#include "partita/Raise/Row.h"
#include <functional>
#include <optional>

namespace partita::raise {

class IndexEvaluator {
public:
  /// Assumes that every element of `value` is `element`: for the scores under a mask.
  void assume(mlir::Value value, double element) { assumed[value] = element; }
  /// Assumes the elements of `value` by their row-major number.
  void assume(mlir::Value value, std::function<double(int64_t)> element) {
    numbered[value] = std::move(element);
  }

  /// Returns one element; nothing (see `obstacle`) if an op on the way is not understood.
  std::optional<double> element(mlir::Value value, llvm::ArrayRef<int64_t> index);
  /// Returns the elements along the last dimension at the given leading indices; nothing as above.
  std::optional<Row> row(mlir::Value value, llvm::ArrayRef<int64_t> leading);
  /// Returns false only if elements certainly do not differ along dimension `dim`.
  bool variesAlong(mlir::Value value, int64_t dim);

  /// The op that was not understood, if any.
  mlir::Operation *obstacle = nullptr;

private:
  std::optional<Row> elementwiseRow(mlir::Operation *op, llvm::ArrayRef<int64_t> leading);
  std::optional<Row> rowByElement(mlir::Value value, llvm::ArrayRef<int64_t> leading);
  std::optional<int64_t> tableRow(tx::EmbeddingOp lookup, llvm::ArrayRef<int64_t> index);
  void appendStretch(mlir::Operation *op, llvm::ArrayRef<Row::Run> operands, Row &row);
  bool isLinear(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, double> assumed;
  llvm::DenseMap<mlir::Value, std::function<double(int64_t)>> numbered;
  llvm::DenseMap<mlir::Operation *, bool> linear;
};

} // namespace partita::raise

#endif // PARTITA_RAISE_INDEXEVALUATOR_H
