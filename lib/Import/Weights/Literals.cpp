//===- Literals.cpp ---------------------------------------------------------------------------===//

#include "lib/Import/Weights/Literals.h"
#include "lib/Import/File/ExporterNames.h"

namespace partita::importer {

std::optional<Literal> literalOf(const onnx::NodeProto &node) {
  if (node.op_type() != "Constant")
    return std::nullopt;
  Literal literal;
  for (const onnx::AttributeProto &each : node.attribute()) {
    if (each.has_t())
      literal.tensor = &each.t();
    if (each.has_f())
      literal.number = each.f();
    if (each.has_i())
      literal.number = static_cast<double>(each.i());
  }
  literal.isScalar = literal.tensor ? literal.tensor->dims_size() == 0 : literal.number.has_value();
  return literal;
}

Literals::Literals(const onnx::GraphProto &graph) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (!isModelName(tensor.name()))
      names.insert(tensor.name());
  collect(graph.node());
}

void Literals::collect(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
  for (const onnx::NodeProto &node : nodes) {
    if (literalOf(node))
      names.insert_range(node.output());
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        collect(attribute.g().node());
  }
}

} // namespace partita::importer
