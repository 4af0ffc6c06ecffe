//===- TiedWeights.h - an embedding table that a file holds twice -------------------*- C++ -*-===//
//
// GPT-2's output layer multiplies by the transposed embedding table. An exporter that folds
// constants computes the transpose and stores it as a second initializer: training would then
// pull the two apart. A copy is recognized by its values, all of them, so a file without values
// (a stripped one) keeps two parameters.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_TIEDWEIGHTS_H
#define PARTITA_LIB_IMPORT_TIEDWEIGHTS_H

#include "ModelFile.h"

namespace partita::importer {

struct WeightCopy {
  std::string name;  // the initializer that is a copy
  std::string table; // the initializer that it repeats: some Gather's table
  bool transposed;
};

/// All copies of embedding tables among the initializers of the model's graph. Reads values by
/// blocks, through file descriptors: neither memory nor the page tables grow with the weights.
std::vector<WeightCopy> findCopies(ModelFile &file);

/// Other matrices that a file holds several times, each of at most 2^22 elements: groups of names
/// in the file's order. Were they one weight, an exporter that folds constants has transposed or
/// joined it for each of its uses; or they are layers that start alike, which nothing tells.
std::vector<std::vector<std::string>> findRepeated(ModelFile &file);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_TIEDWEIGHTS_H
