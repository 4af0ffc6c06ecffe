//===- FoldedWeights.h - parameters that exporters have computed --------------------*- C++ -*-===//
//
// An exporter that folds constants writes what it has computed of a weight as an initializer of its
// own. Training it is not training the weight, and nothing in the file leads back to it.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FOLDEDWEIGHTS_H
#define PARTITA_LIB_IMPORT_FOLDEDWEIGHTS_H

#include "ModelFile.h"

namespace partita::importer {

/// A sentence each on what looks so and is trained as it stands: matrices that the file holds
/// several times, relative position biases of which all elements are written out.
std::vector<std::string> describeFolded(ModelFile &file);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FOLDEDWEIGHTS_H
