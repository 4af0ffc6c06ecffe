//===- Buffers.h - float initializers that are no parameters ------------------------*- C++ -*-===//
//
// A model's buffers are written as initializers like its weights. What is known to be one, by its
// use and, where that is not enough, by its values; never by a name:
//
//   - a rotary embedding's frequencies: all that is computed from them goes through a sine or a
//     cosine and nowhere else
//   - ALiBi's slopes (Press et al., arXiv 2108.12409): they do nothing but scale numbers that are
//     computed from integers, which positions and masks are, or from positions that an exporter
//     has written as floats: rows that count
//   - operands that are never trained: class weights of a loss, cosines and sines of a rotary
//     embedding, scales of a resize, mean and variance of a batch normalization for inference
//   - biases of ALiBi that exporters have computed: they are added to scores of attention, whose
//     softmax weighs the rows of a matrix, and every row, of a head or of a query of one, rises or
//     falls evenly, as slope x (j - i), slope x j and slope x |j - i| do, but for what a mask in it
//     has set to minus infinity
//   - tables of cosines and sines that multiply activations: two tensors of one shape, or one tensor
//     with both, in halves or interleaved along one dimension; recognized because cos^2 + sin^2 is
//     the same everywhere
//   - sines and cosines of positions, which are added to what tokens are embedded as: they would
//     start the training of a table that is learned, but no model known here learns it from there
//   - masks that are computed with element by element: zeros and one number that is minus infinity
//     or near it, or a lower triangle of ones
//
//===------------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_BUFFERS_H
#define PARTITA_LIB_IMPORT_BUFFERS_H

#include "onnx.pb.h"
#include "partita/Import/ModelFile.h"
#include "llvm/ADT/StringSet.h"
#include <string>
#include <vector>

namespace partita::importer {

/// The names of the graph's initializers that are buffers. They are read into memory, so none has
/// more than 2^22 elements: 65536 positions of 64 angles.
llvm::StringSet<> findBuffers(const onnx::GraphProto &graph, ModelFile &file);

/// The names of the others that are, whole and nothing else, added to scores of attention: an
/// element for every query and key. In the file's order.
std::vector<std::string> findScoreBiases(const onnx::GraphProto &graph,
                                         const llvm::StringSet<> &buffers);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BUFFERS_H
