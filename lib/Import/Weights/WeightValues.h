//===- WeightValues.h - what the values of a weight show ----------------------------*- C++ -*-===//
//
// Does a tensor hold a slice of another one, repeat itself, or consist of one number? For a tensor
// that cannot be read or is too large, the answer is the one that changes nothing.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTVALUES_H
#define PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTVALUES_H

#include "lib/Import/Weights/CompareElements.h"
#include "partita/Import/TableCopies.h"

namespace partita::importer {

/// The most elements of a tensor whose values are read into memory or searched; no constant that an
/// exporter folds has more.
constexpr int64_t maxSearched = 1 << 22;

/// How `copy`, which may have been made by moving elements of `table`, holds them: all, in any shape or
/// transposed, or those of a slice. None if the values differ, are all one number, or fit several
/// slices. Slices are searched for only in tables of at most `maxSearched` elements.
std::optional<WeightCopy> findCopyIn(ModelFile &file, const TensorData &table,
                                     const TensorData &copy, SearchBudget &budget);

/// Which of several tensors have a row or column in common with another, as overlapping slices do? For
/// vectors: two neighbours. Considers tensors of at most `maxSearched` elements, and as many rows,
/// columns and neighbours in all; ignores those that are all one number.
std::vector<bool> findOverlaps(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors);

/// Which of several tensors hold the same elements as another in any order, as a flipped and a permuted
/// weight do? Considers tensors of at most `maxSearched` elements that are not all one number.
std::vector<bool> findRearranged(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors);

/// The number that all elements of a tensor, of at most `maxSearched`, are.
std::optional<double> onlyNumber(ModelFile &file, const TensorData &data);
inline bool isOneNumber(ModelFile &file, const TensorData &data) {
  return onlyNumber(file, data).has_value();
}

/// Are all runs of `width` consecutive elements of a tensor, one after another, distinct? False for
/// more than `maxSearched` elements.
bool hasDistinctRuns(ModelFile &file, const TensorData &data, int64_t width);

/// Does a tensor, of at most `maxSearched` elements, hold a slice of one of its dimensions twice? For
/// vectors: several neighbours. Ignores slices that are all one number, or short enough to be equal by
/// chance.
bool repeatsSlice(ModelFile &file, const TensorData &data);

/// Does a tensor, of at most `maxSearched` elements, hold few numbers, most of them several times, as an
/// identity does and trained or random values do not?
bool hasFewNumbers(ModelFile &file, const TensorData &data);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTVALUES_H
