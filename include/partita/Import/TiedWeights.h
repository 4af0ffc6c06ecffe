//===- TiedWeights.h - weights that a file holds twice ------------------------------*- C++ -*-===//
//
// GPT-2's output layer multiplies by the transposed embedding table. An exporter that folds
// constants computes the transpose and stores it as a second initializer: training would then
// pull the two apart; and so it does with slices of a weight. A copy, whole or a part, is recognized
// by its values, all of them, so a file without values (a stripped one) keeps two parameters.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_TIEDWEIGHTS_H
#define PARTITA_IMPORT_TIEDWEIGHTS_H

#include "partita/Import/ModelFile.h"

namespace partita::importer {

struct WeightCopy {
  std::string name;  // the initializer that is a copy
  std::string table; // the initializer that it repeats
  bool transposed = false;
  /// Of a copy of a part: the part is `size` elements of dimension `dim` from `begin` on, before it
  /// is transposed. Whole: -1.
  int64_t dim = -1, begin = 0, size = 0;
};

/// Is the matrix `b` the matrix `a` again (or its transpose), and `a` not one value throughout?
/// Both are raw and in the file.
bool repeats(const ModelFile &file, const TensorData &a, const TensorData &b, bool transposed);

/// Bytes that may still be compared and read when slices are looked for, in proportion to the file:
/// values that nearly repeat could be compared for ever. Copies that are not found are trained apart.
struct SearchBudget {
  explicit SearchBudget(const ModelFile &file);
  bool spend(int64_t count) { return (bytes -= count) >= 0; }
  int64_t bytes;
};

/// How `copy` holds values of `table`, which it is said to be computed from by moving elements: all
/// of them, in any shape or transposed, or those of a slice. None where the values are others, do
/// not vary or fit several slices. Slices are looked for among at most 2^22 elements.
std::optional<WeightCopy> findCopyIn(ModelFile &file, const TensorData &table,
                                     const TensorData &copy, SearchBudget &budget);

/// How two tensors of one shape, or of transposed ones, are equal, all one value or not.
std::optional<WeightCopy> compareWhole(ModelFile &file, const TensorData &a, const TensorData &b);

/// Which of several tensors have a row or column in common with another, as slices of one that
/// overlap have? Of vectors: two neighbours. Of at most 2^22 elements each, and at most 2^22 rows,
/// columns and neighbours in all; one value throughout says nothing.
std::vector<bool> findOverlaps(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors);

/// Are all elements of a tensor, of at most 2^22, the same?
bool isOneValue(ModelFile &file, const TensorData &data);

/// Is no row of a table there twice?
bool hasDistinctRows(ModelFile &file, const TensorData &table);

/// All copies of embedding tables among the initializers of the model's graph. Reads values by
/// blocks, through file descriptors: neither memory nor the page tables grow with the weights.
std::vector<WeightCopy> findCopies(ModelFile &file);

/// Other matrices that a file holds several times, each of at most 2^22 elements: groups of names
/// in the file's order. Were they one weight, an exporter that folds constants has transposed or
/// joined it for each of its uses; or they are layers that start alike, which nothing tells.
std::vector<std::vector<std::string>> findRepeated(ModelFile &file);

} // namespace partita::importer

#endif // PARTITA_IMPORT_TIEDWEIGHTS_H
