//===- EqualMatrices.h - matrices that a file holds several times -------------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_EQUALMATRICES_H
#define PARTITA_LIB_IMPORT_EQUALMATRICES_H

#include "partita/Import/TableCopies.h"

namespace partita::importer {

/// One of several equal matrices.
struct EqualMatrix {
  std::string name;
  bool transposed; // with regard to the first of them
};

/// Equal matrices, as they are or transposed, other than the copies of tables, none of them large: groups in the file's order. Either they were one weight, which an exporter has
/// transposed or joined for each of its uses, or they are layers with equal initial values: the file does
/// not show which.
std::vector<std::vector<EqualMatrix>> findEqualMatrices(ModelFile &file,
                                                        llvm::ArrayRef<WeightCopy> tableCopies);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_EQUALMATRICES_H
