//===- RepeatedWeights.h - matrices that a file holds several times -----------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_REPEATEDWEIGHTS_H
#define PARTITA_LIB_IMPORT_REPEATEDWEIGHTS_H

#include "partita/Import/TiedWeights.h"

namespace partita::importer {

/// One of several matrices with the same values.
struct RepeatedWeight {
  std::string name;
  bool transposed; // with regard to the first of them
};

/// Matrices other than the copies of tables, none of them large, that a file holds several times, as they
/// are or transposed: groups in the file's order. Either they were one weight, which an exporter has
/// transposed or joined for each of its uses, or they are layers with equal initial values: the file does
/// not show which.
std::vector<std::vector<RepeatedWeight>> findRepeated(ModelFile &file,
                                                      llvm::ArrayRef<WeightCopy> tableCopies);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_REPEATEDWEIGHTS_H
