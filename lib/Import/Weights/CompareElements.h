//===- CompareElements.h - do two tensors hold the same elements? -------------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_COMPAREELEMENTS_H
#define PARTITA_LIB_IMPORT_COMPAREELEMENTS_H

#include "partita/Import/ModelFile.h"

namespace partita::importer {

enum class Equality {
  Different, ///< or not there to be compared
  OneValue,  ///< equal, and one number throughout
  Varying    ///< equal otherwise
};

/// Bytes that may still be compared and read in a search, in proportion to the file: values that
/// nearly repeat could be compared for ever. Copies that are not found are trained independently.
struct SearchBudget {
  explicit SearchBudget(const ModelFile &file);
  bool spend(int64_t count) { return (bytes -= count) >= 0; }
  int64_t bytes;
};

/// Compares two tensors of one type and as many elements, row by row, whatever their shapes. Reads
/// blocks through file descriptors: neither memory nor the page tables grow with the weights. Where
/// the budget ends, the tensors are different.
Equality compareElements(ModelFile &file, const TensorData &a, const TensorData &b,
                         SearchBudget *budget = nullptr);

/// Compares a matrix with the transpose of another one, by tiles.
Equality compareTransposed(ModelFile &file, const TensorData &a, const TensorData &b,
                           SearchBudget *budget = nullptr);

/// Elements of a tensor that lie in one block of its file; empty where they cannot be read.
std::vector<char> readElements(ModelFile &file, const TensorData &data, int64_t from,
                               int64_t count);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_COMPAREELEMENTS_H
