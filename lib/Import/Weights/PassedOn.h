//===- PassedOn.h - tensors under the names of their casts and copies ---------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_PASSEDON_H
#define PARTITA_LIB_IMPORT_PASSEDON_H

#include "lib/Import/Operators/Registry.h"
#include "onnx.pb.h"

namespace partita::importer {

/// Is the result the operand under another name or in another type? Its readers then count as readers
/// of the operand (exporters cast the weights of a model in another precision).
inline bool passesOn(const onnx::NodeProto &node) {
  return effectOf(node) == OpEffect::Renames && node.input_size() == 1 && node.output_size() == 1;
}

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_PASSEDON_H
