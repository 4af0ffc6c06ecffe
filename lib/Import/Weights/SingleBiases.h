//===- SingleBiases.h - parameters of one element -----------------------------------*- C++ -*-===//
//
// Exporters write the scalars of a model's arithmetic as initializers, so a float tensor of one
// element is a constant. One is trained, by its use: the bias of a layer that has one output, as
// the head of a regression has.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_SINGLEBIASES_H
#define PARTITA_LIB_IMPORT_SINGLEBIASES_H

#include "onnx.pb.h"
#include "llvm/ADT/StringSet.h"

namespace partita::importer {

/// The names of the graph's initializers of shape [1] that are added to a product with a matrix of
/// one column, or by a convolution with one kernel, whose matrix or kernel is an initializer, and
/// are read nowhere else: exporters merge equal tensors.
llvm::StringSet<> findSingleBiases(const onnx::GraphProto &graph);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_SINGLEBIASES_H
