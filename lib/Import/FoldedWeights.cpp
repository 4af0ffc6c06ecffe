//===- FoldedWeights.cpp ----------------------------------------------------------------------===//

#include "FoldedWeights.h"
#include "Buffers.h"
#include "TiedWeights.h"
#include "onnx.pb.h"

using namespace mlir;

namespace partita::importer {

static constexpr llvm::StringLiteral unfolded =
    "export it without folding constants (torch.onnx.export: "
    "do_constant_folding=False, or with dynamo optimize=False)";

/// "'a', 'b' and 3 more".
static std::string listed(llvm::ArrayRef<std::string> names) {
  constexpr size_t most = 4;
  std::string text;
  llvm::ArrayRef<std::string> told = names.take_front(names.size() > most ? most - 1 : most);
  for (const auto &[i, name] : llvm::enumerate(told))
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + quoted(name);
  size_t left = names.size() - told.size();
  return text + (left ? " and " + std::to_string(left) + " more" : "");
}

static std::string describeRepeated(llvm::ArrayRef<std::vector<std::string>> groups) {
  std::string others =
      groups.size() < 2 ? "" : " (one group of " + std::to_string(groups.size()) + ")";
  return "tensors " + listed(groups[0]) + " are equal, element by element" + others +
         ": they are trained apart; if they are one weight, which an exporter has computed for "
         "each of its uses, " +
         unfolded.str();
}

static std::string describeBiases(llvm::ArrayRef<std::string> names) {
  std::string others = names.size() < 2 ? "" : ", one of " + std::to_string(names.size()) + ",";
  return "tensor " + quoted(names[0]) + others +
         " is added to the scores of attention, an element for every query and key: each element "
         "is trained; if it is a relative position bias, which an exporter has computed from a "
         "smaller table (perhaps with a mask in it), " +
         unfolded.str() + ", or keep it as it is by --freeze " + quoted(names[0]);
}

std::vector<std::string> describeFolded(ModelFile &file) {
  std::vector<std::string> sentences;
  if (auto groups = findRepeated(file); !groups.empty())
    sentences.push_back(describeRepeated(groups));
  if (auto names = findScoreBiases(file.model().graph(), file); !names.empty())
    sentences.push_back(describeBiases(names));
  return sentences;
}

} // namespace partita::importer
