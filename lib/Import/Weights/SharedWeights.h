//===- SharedWeights.h - initializers that several nodes read -----------------------*- C++ -*-===//
//
// Several readers are intended for a tied embedding and for a layer that is applied again. But both of
// PyTorch's exporters also merge equal initializers: a model that was never trained, whose norms are
// all ones and biases all zeros, is exported with one norm for all its layers, and would be trained
// with one.
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_SHAREDWEIGHTS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_SHAREDWEIGHTS_H

#include "partita/Import/ModelFile.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

struct SharedWeight {
  std::string name;
  int64_t uses;
  /// All its elements are this number, and it is read more often than any matrix: probably several
  /// parameters that an exporter has merged.
  std::optional<double> mergedNumber;
};

/// The float initializers with more than one element that several nodes read and that are not buffers,
/// in the file's order.
std::vector<SharedWeight> findShared(ModelFile &file, const llvm::StringSet<> &buffers);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_SHAREDWEIGHTS_H
