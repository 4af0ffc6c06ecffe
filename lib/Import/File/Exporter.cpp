//===- Exporter.cpp ---------------------------------------------------------------------------===//

#include "lib/Import/File/Exporter.h"
#include "lib/Import/File/Origins.h"
#include "onnx.pb.h"
#include "llvm/ADT/Twine.h"

namespace partita::importer {

Exporter exporterOf(const onnx::ModelProto &model, const Origins &origins) {
  return origins.known()                      ? Exporter::Dynamo
         : model.producer_name() != "pytorch" ? Exporter::Other
         : origins.problem().empty()          ? Exporter::TorchScript
                                              : Exporter::DynamoUnread;
}

std::string exportUnfolded(Exporter exporter, bool hasFoldedNames) {
  bool isDynamo = exporter == Exporter::Dynamo || exporter == Exporter::DynamoUnread;
  return std::string("export without constant folding (torch.onnx.export: ") +
         (isDynamo         ? "optimize=False)"
          : hasFoldedNames ? "do_constant_folding=False)"
                           : "do_constant_folding=False, or with dynamo optimize=False)");
}

std::string exportDynamically(llvm::StringRef what) {
  return ("export " + what + " with dynamo=True and dynamic_shapes").str();
}

std::string inDynamicShapes(bool isOne) {
  return std::string("in dynamic_axes or dynamic_shapes; if tracing still bakes in ") +
         (isOne ? "its size" : "their sizes") + ", export with dynamo=True";
}

} // namespace partita::importer
