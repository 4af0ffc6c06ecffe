//===- SingleBiases.h - parameters of one element -----------------------------------*- C++ -*-===//
//
// Exporters write the scalars of a model's arithmetic as initializers, so a float tensor of one
// element is a constant. The exception, recognized by its use, is the bias of a layer with one
// output, such as the head of a regression.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_SINGLEBIASES_H
#define PARTITA_LIB_IMPORT_WEIGHTS_SINGLEBIASES_H

#include "onnx.pb.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

/// The names of the graph's initializers of shape [1] that are the bias of a matmul with a matrix of one
/// column, or of a convolution with one kernel, where matrix or kernel is an initializer. They must
/// be read nowhere else, because exporters merge equal tensors.
llvm::StringSet<> findSingleBiases(const onnx::GraphProto &graph);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_SINGLEBIASES_H
