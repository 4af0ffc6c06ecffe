//===- EqualMatrices.h - matrices that a file holds several times -------------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_EQUALMATRICES_H
#define PARTITA_LIB_IMPORT_WEIGHTS_EQUALMATRICES_H

#include "lib/Import/Weights/CompareElements.h"
#include "partita/Import/TableCopies.h"
#include <map>
#include <tuple>

namespace partita::importer {

/// One of several equal tensors.
struct EqualMatrix {
  std::string name;
  bool transposed; // with regard to the first of them
};

/// Groups equal tensors of several dimensions, matrices also with those that they are the transpose of.
/// Leaves out those that are one number throughout, as far as a sample shows.
class EqualTensorFinder {
public:
  explicit EqualTensorFinder(ModelFile &file) : file(file), budget(file) {}

  /// `data` is kept by reference.
  void add(const std::string &name, const TensorData &data);
  /// The groups, and the tensors of each, in the order in which they were added.
  std::vector<std::vector<EqualMatrix>> take();

private:
  using Key = std::tuple<DType, Shape, std::string>;
  ModelFile &file;
  SearchBudget budget;
  std::map<Key, std::vector<size_t>> bySample, byCorners; // groups, by what their first one holds
  std::vector<std::vector<EqualMatrix>> groups;
  std::vector<const TensorData *> firsts; // of each group
};

/// Equal matrices, as they are or transposed, other than the copies of tables, none of them large: groups
/// in the file's order. Either they were one weight, which an exporter has transposed or joined for each of
/// its uses, or they are layers with equal initial values: the file does not show which.
std::vector<std::vector<EqualMatrix>> findEqualMatrices(ModelFile &file,
                                                        llvm::ArrayRef<WeightCopy> tableCopies);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_EQUALMATRICES_H
