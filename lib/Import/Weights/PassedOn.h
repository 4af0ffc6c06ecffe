//===- PassedOn.h - tensors under the names of their casts and copies ---------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_PASSEDON_H
#define PARTITA_LIB_IMPORT_PASSEDON_H

#include "onnx.pb.h"
#include "llvm/ADT/StringRef.h"

namespace partita::importer {

/// Is the result the operand under another name or in another type? Its readers then count as readers
/// of the operand (exporters cast the weights of a model in another precision).
inline bool passesOn(const onnx::NodeProto &node) {
  llvm::StringRef op = node.op_type();
  return (op == "Cast" || op == "Identity") && node.domain().empty() && node.input_size() == 1 &&
         node.output_size() == 1;
}

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_PASSEDON_H
