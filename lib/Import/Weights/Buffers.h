//===- Buffers.h - float initializers that are no parameters ------------------------*- C++ -*-===//
//
// Exporters write a model's buffers as initializers, like its weights. These are recognized by their
// use and, where that is not enough, by their values; never by name:
//
//   - frequencies of a rotary embedding: everything computed from them and from positions goes into a
//     sine or cosine, and they neither rise and fall nor have a sign; or tables of such angles
//   - slopes of ALiBi (Press et al., arXiv 2108.12409): they only scale numbers that are computed from
//     integers (positions, masks), or from positions that an exporter has written as floats, and are
//     powers of two with evenly spaced exponents
//   - operands that are never trained: class weights of a loss, cosines and sines of a rotary
//     embedding, scales of a resize, mean and variance of a batch normalization for inference
//   - biases of ALiBi that an exporter has computed: they are added to the scores of attention, and
//     every row, per head or per query, is linear, as slope x (j - i), slope x j or slope x |j - i|,
//     apart from elements that a mask has set to minus infinity
//   - tables of cosines and sines that multiply activations: two tensors of one shape, or one tensor
//     with both, in halves or interleaved along one dimension; recognized because cos^2 + sin^2 is
//     the same everywhere
//   - sines and cosines of positions that are added to token embeddings. A learned table could start
//     from such values, but no model known here does
//   - masks in elementwise operations: zeros and one number that is minus infinity or near it, or a
//     lower triangle of ones
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_BUFFERS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_BUFFERS_H

#include "onnx.pb.h"
#include "partita/Import/ModelFile.h"
#include "llvm/ADT/StringSet.h"
#include <string>
#include <vector>

namespace partita::importer {

/// The names of the graph's initializers that are buffers. They are read into memory, so none has
/// more than 2^22 elements: 65536 positions of 64 angles.
llvm::StringSet<> findBuffers(const onnx::GraphProto &graph, ModelFile &file);

/// The names of other tensors that are only added to the scores of attention, without a lookup: an
/// element for every query and key. In the file's order.
std::vector<std::string> findScoreBiases(const onnx::GraphProto &graph,
                                         const llvm::StringSet<> &buffers);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_BUFFERS_H
