//===- WeightValues.h - what the values of a weight say of it -----------------------*- C++ -*-===//
//
// Whether a tensor holds a part of another one, repeats itself, or is one number throughout. What
// cannot be read, or is too large, gives the answer that decides nothing.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTVALUES_H
#define PARTITA_LIB_IMPORT_WEIGHTVALUES_H

#include "lib/Import/Weights/CompareElements.h"
#include "partita/Import/TiedWeights.h"

namespace partita::importer {

/// Elements of a tensor whose values are read into memory, as those of a constant are, or searched:
/// no constant that an exporter folds has more.
constexpr int64_t maxSearched = 1 << 22;

/// How `copy` holds values of `table`, which it is said to be computed from by moving elements: all
/// of them, in any shape or transposed, or those of a slice. None where the values are others, do
/// not vary or fit several slices. Slices are looked for among at most `maxSearched` elements.
std::optional<WeightCopy> findCopyIn(ModelFile &file, const TensorData &table,
                                     const TensorData &copy, SearchBudget &budget);

/// Which of several tensors have a row or column in common with another, as slices of one that
/// overlap have? Of vectors: two neighbours. Of at most `maxSearched` elements each, and at most as
/// many rows, columns and neighbours in all; one value throughout says nothing.
std::vector<bool> findOverlaps(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors);

/// Which of several tensors hold the same elements as another, in whatever order, as a flipped and a
/// permuted weight do? Of at most `maxSearched` elements each; one value throughout says nothing.
std::vector<bool> findRearranged(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors);

/// Are all elements of a tensor, of at most `maxSearched`, the same?
bool isOneValue(ModelFile &file, const TensorData &data);

/// Is no piece of a tensor, each of `width` elements in a row, there twice? Of at most `maxSearched`
/// elements.
bool hasDistinctPieces(ModelFile &file, const TensorData &data, int64_t width);

/// Does a tensor, of at most `maxSearched` elements, hold a slice of one of its dimensions twice? Of
/// vectors, some neighbours. One value throughout says nothing, nor do slices that are equal by
/// chance.
bool repeatsSlice(ModelFile &file, const TensorData &data);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTVALUES_H
