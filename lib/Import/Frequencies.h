//===- Frequencies.h - float initializers that are no parameters ------------------------------===//
//
// A rotary embedding's frequencies are a buffer of the model, which an exporter may write as an
// initializer like any weight. They are recognized by their use: all that is computed from them
// goes through a sine or a cosine and nowhere else.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FREQUENCIES_H
#define PARTITA_LIB_IMPORT_FREQUENCIES_H

#include "onnx.pb.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

/// The names of the graph's initializers that only angles are computed from.
llvm::StringSet<> findFrequencies(const onnx::GraphProto &graph);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FREQUENCIES_H
