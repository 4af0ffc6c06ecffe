//===- CallNotes.cpp - arguments of PyTorch's operations that ONNX lacks ----------------------===//
//
// The exporter leaves them out of the graph, but records them with the call.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Weights/WeightNotes.h"
#include "partita/Import/ExportRecord.h"

namespace partita::importer {

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse).
void NoteFinder::noteScaledByFrequency() {
  std::vector<std::string> tables;
  for (const onnx::NodeProto &node : graph.node()) {
    std::optional<ProgramCall> call = callOf(node);
    if (!call || call->operation != "embedding" || call->textAt(3) != "True" ||
        node.input_size() == 0 || llvm::is_contained(tables, node.input(0)))
      continue;
    if (hasGradient(node.input(0)))
      tables.push_back(node.input(0));
  }
  if (tables.empty())
    return;
  noteBeside("the model scales the gradient of " +
                 std::string(tables.size() == 1 ? "table " : "tables ") + listed(tables) +
                 " by how often a batch has each id (scale_grad_by_freq), which ONNX cannot "
                 "express: gradients are not scaled here",
             tables);
}

} // namespace partita::importer
