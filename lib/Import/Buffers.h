//===- Buffers.h - float initializers that are no parameters ------------------------*- C++ -*-===//
//
// A model's buffers are written as initializers like its weights. Two kinds of numbers are known to
// be buffers by their use:
//
//   - a rotary embedding's frequencies: all that is computed from them goes through a sine or a
//     cosine and nowhere else
//   - ALiBi's slopes (Press et al., arXiv 2108.12409): they do nothing but scale numbers that are
//     computed from integers, which positions and masks are
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_BUFFERS_H
#define PARTITA_LIB_IMPORT_BUFFERS_H

#include "onnx.pb.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

/// The names of the graph's initializers that are buffers.
llvm::StringSet<> findBuffers(const onnx::GraphProto &graph);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BUFFERS_H
