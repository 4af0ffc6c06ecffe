//===- SharedWeights.h - initializers that several nodes read -----------------------*- C++ -*-===//
//
// A tied embedding is meant, a layer that is applied again too. What is not: both of PyTorch's
// exporters merge initializers that are equal, so a model that was never trained, whose norms are
// all ones and biases all zeros, comes back with one norm for all of its layers, and training moves
// all of them as one.
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_SHAREDWEIGHTS_H
#define PARTITA_LIB_IMPORT_SHAREDWEIGHTS_H

#include "partita/Import/ModelFile.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

struct SharedWeight {
  std::string name;
  int64_t uses;
  /// All its elements are this number, and it is read more often than any matrix is multiplied
  /// with: several parameters that an exporter has merged.
  std::optional<double> mergedValue;
};

/// The float initializers with more than one element that several nodes read and that are no buffers,
/// in the file's order.
std::vector<SharedWeight> findShared(ModelFile &file, const llvm::StringSet<> &buffers);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_SHAREDWEIGHTS_H
