//===- CompareElements.h - are two tensors equal, element by element? ---------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_COMPAREELEMENTS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_COMPAREELEMENTS_H

#include "partita/Import/ModelFile.h"

namespace partita::importer {

enum class Equality {
  Different, ///< or not to be compared: without values, or beyond the budget
  OneNumber, ///< equal, and all elements are one number
  Varying    ///< equal, and not all elements are one number
};

/// The bytes that a search may still read and compare, in proportion to the file's size, because
/// values that nearly repeat could be compared forever. Copies that are not found are trained
/// independently.
struct SearchBudget {
  explicit SearchBudget(const ModelFile &file);
  bool spend(int64_t count) { return (bytes -= count) >= 0; }
  int64_t bytes;
};

/// Compares the bits of two tensors of one type and number of elements in row-major order, whatever their shapes.
/// Reads blocks through file descriptors, so neither memory nor page tables grow with the weights.
/// Different when the budget is exhausted.
Equality compareElements(ModelFile &file, const TensorData &a, const TensorData &b,
                         SearchBudget *budget = nullptr);

/// Compares a matrix with the transpose of another one, by tiles.
Equality compareTransposed(ModelFile &file, const TensorData &a, const TensorData &b,
                           SearchBudget *budget = nullptr);

/// `count` elements of a tensor from `from` on; empty if they cannot be read.
std::vector<char> readElements(ModelFile &file, const TensorData &data, int64_t from,
                               int64_t count);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_COMPAREELEMENTS_H
