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

/// All copies of embedding tables among the initializers of the model's graph.
std::vector<WeightCopy> findCopies(ModelFile &file);

/// A matrix of several with one value.
struct RepeatedWeight {
  std::string name;
  bool transposed; // with regard to the first of them
};

/// Other matrices that a file holds several times, as they are or transposed, none of them large:
/// groups in the file's order. Were they one weight, an exporter that folds constants has transposed
/// or joined it for each of its uses; or they are layers that start alike, which nothing shows.
std::vector<std::vector<RepeatedWeight>> findRepeated(ModelFile &file);

} // namespace partita::importer

#endif // PARTITA_IMPORT_TIEDWEIGHTS_H
