//===- WeightNotes.h - what a file leaves unsaid of its weights ---------------------*- C++ -*-===//
//
// Notes beside those of Weights: on parameters that are no tensors of the file any more.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTNOTES_H
#define PARTITA_LIB_IMPORT_WEIGHTNOTES_H

#include "lib/Import/Weights/Weights.h"

namespace partita::importer {

/// "'a', 'b' and 3 more".
std::string listed(llvm::ArrayRef<std::string> names);

/// Parameters that an exporter has merged with others, inseparably, or removed.
std::vector<WeightNote> noteLost(const onnx::GraphProto &graph);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTNOTES_H
