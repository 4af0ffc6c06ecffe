//===- TableCopies.h - weights that a file has twice --------------------------------*- C++ -*-===//
//
// GPT-2's output layer multiplies by the transposed embedding table. An exporter that folds
// constants stores the transpose, or a slice of a weight, as a second initializer, and training
// would then pull the two apart. A copy, in full or of a slice, is recognized by comparing all its
// values, so a file without values (a stripped one) keeps two parameters.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_TABLECOPIES_H
#define PARTITA_IMPORT_TABLECOPIES_H

#include "partita/Import/ModelFile.h"

namespace partita::importer {

struct WeightCopy {
  std::string name;  // the initializer that is a copy
  std::string table; // the initializer that it copies
  bool transposed = false;
  /// If it copies a slice: `size` elements of dimension `dim` from `begin` on, before
  /// transposition. -1: it copies the full tensor.
  int64_t dim = -1, begin = 0, size = 0;
};

/// Returns all copies of embedding tables among the initializers of the model's graph.
std::vector<WeightCopy> findTableCopies(ModelFile &file);

} // namespace partita::importer

#endif // PARTITA_IMPORT_TABLECOPIES_H
