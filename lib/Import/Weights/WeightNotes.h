//===- WeightNotes.h - what a file leaves unsaid of its weights ---------------------*- C++ -*-===//
//
// Notes beside those of Weights: on parameters that are no tensors of the file any more, and, where
// no record says what a parameter is, on tensors that may be something else than they are taken for.
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

/// Single elements that are kept as they are and may be parameters: a learned temperature; and
/// vectors that are trained and may be buffers: the mean and deviation of the data.
std::vector<WeightNote> noteUnnamedKinds(ModelFile &file, const Weights &weights);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTNOTES_H
