//===- CallNotes.cpp - arguments of PyTorch's operations that ONNX lacks ----------------------===//
//
// The exporter leaves them out of the graph, and still writes them into its record of the call.
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
  notes.push_back({"the model scales the gradient of " +
                       std::string(tables.size() == 1 ? "table " : "tables ") + listed(tables) +
                       " by how often a batch has each id (scale_grad_by_freq), which ONNX does not "
                       "say: here no gradient is scaled",
                   tables,
                   /*isReported=*/false,
                   /*isOfParameters=*/true});
}

/// cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing).
void NoteFinder::noteSmoothedLabels() {
  for (const onnx::NodeProto &node : graph.node()) {
    std::optional<ProgramCall> call = callOf(node);
    double smoothing = 0;
    if (!call || call->operation != "cross_entropy_loss" ||
        call->textAt(5).getAsDouble(smoothing) || smoothing == 0)
      continue;
    notes.push_back({"the model's loss smooths its labels (label_smoothing=" +
                         call->textAt(5).str() +
                         "), which the exporter has left out of the file: training is without it",
                     {},
                     /*isReported=*/false,
                     /*isOfParameters=*/true});
    return;
  }
}

} // namespace partita::importer
