//===- Literals.h - numbers in the model's code -------------------------------------*- C++ -*-===//
//
// A literal is a number that the model's Python code contains, such as the 0.5 of x * 0.5: no tensor of
// the model, and never trained. Exporters write it as a Constant node, or as an initializer that the model
// has no name for. Dynamo's record of a call has its text instead ("mul(%x, 0.5)", CallReaders.h).
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_LITERALS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_LITERALS_H

#include "onnx.pb.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace partita::importer {

/// How a Constant node holds a literal.
struct Literal {
  const onnx::TensorProto *tensor = nullptr; ///< or null
  std::optional<double> number;              ///< without a tensor
  bool isScalar = false;                     ///< it has no dimensions
};

/// That of a Constant node.
std::optional<Literal> literalOf(const onnx::NodeProto &node);

/// The values of a TorchScript export that are literals, in branches too.
class Literals {
public:
  explicit Literals(const onnx::GraphProto &graph);

  bool contains(llvm::StringRef value) const { return names.contains(value); }

private:
  void collect(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes);

  llvm::StringSet<> names;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_LITERALS_H
