//===- KindNotes.cpp - what may be a parameter, or none ---------------------------------------===//
//
// PyTorch's TorchScript exporter writes parameters and buffers alike, under their names in the model.
// What it has computed, and the numbers of the program, it names itself: "onnx::Mul_12", or the path
// of a Constant node, which begins with a slash. So the tensors that remain are the model's own, and
// where a use does not tell what they are, a note says what they are taken for.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Weights/PassedOn.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::importer {

namespace {

/// What is computed with a tensor of the model.
struct OwnUses {
  bool computes = false;   ///< a sum, a product or the like has it for an operand
  bool isTakenOff = false; ///< it is subtracted, or what is divided by
};

bool isOneOf(llvm::ArrayRef<llvm::StringLiteral> ops, llvm::StringRef op) {
  return llvm::is_contained(ops, op);
}

class UseFinder {
public:
  explicit UseFinder(const onnx::GraphProto &graph) {
    for (const onnx::TensorProto &tensor : graph.initializer())
      if (isOwn(tensor.name()))
        uses.try_emplace(tensor.name());
    for (const onnx::NodeProto &node : graph.node())
      look(node);
  }

  OwnUses of(llvm::StringRef name) const { return uses.lookup(name); }

private:
  static bool isOwn(llvm::StringRef name) {
    return !name.starts_with("onnx::") && !name.starts_with("/");
  }

  /// Is the result a function of the first operand's elements alone, one by one?
  static bool keepsElements(const onnx::NodeProto &node) {
    static constexpr llvm::StringLiteral ops[] = {"Clip",    "Exp",      "Expand",   "Neg",
                                                  "Reshape", "Sigmoid",  "Softplus", "Squeeze",
                                                  "Tanh",    "Unsqueeze"};
    return passesOn(node) || isOneOf(ops, node.op_type());
  }

  void look(const onnx::NodeProto &node) {
    static constexpr llvm::StringLiteral computing[] = {"Add", "Div", "Mul", "PRelu", "Sub"};
    bool computes = isOneOf(computing, node.op_type());
    bool takesOff = node.op_type() == "Sub" || node.op_type() == "Div";
    for (const auto &[i, input] : llvm::enumerate(node.input())) {
      if (node.op_type() == "PRelu" && i == 1) // a slope is learned, whatever its name
        uses.try_emplace(input);
      auto alias = aliases.find(input);
      auto found = uses.find(alias == aliases.end() ? llvm::StringRef(input) : alias->second);
      if (found == uses.end())
        continue;
      found->second.computes |= computes;
      found->second.isTakenOff |= takesOff && i == 1;
      if (i == 0 && node.output_size() == 1 && keepsElements(node))
        aliases[node.output(0)] = found->first().str();
    }
  }

  llvm::StringMap<OwnUses> uses;
  llvm::StringMap<std::string> aliases; ///< by a function of a tensor's elements
};

/// "tensor 'a' ONE" or "tensors 'a' and 'b' SEVERAL".
std::string about(const std::vector<std::string> &names, const char *one, const char *several) {
  bool isOne = names.size() == 1;
  return (isOne ? "tensor " : "tensors ") + listed(names) + (isOne ? one : several);
}

} // namespace

std::vector<WeightNote> noteUnnamedKinds(ModelFile &file, const Weights &weights) {
  const onnx::GraphProto &graph = file.model().graph();
  if (file.model().producer_name() != "pytorch" || Origins(graph).known())
    return {};
  UseFinder finder(graph);
  std::vector<std::string> singles, statistics;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    const std::string &name = tensor.name();
    std::optional<DType> type = dtypeFromOnnx(tensor.data_type());
    OwnUses uses = finder.of(name);
    if (!type || !isFloat(*type) || !uses.computes || weights.isDecided(name))
      continue;
    int64_t wide = llvm::count_if(tensor.dims(), [](int64_t size) { return size != 1; });
    if (wide == 0 && !weights.isParameter(name))
      singles.push_back(name);
    else if (wide == 1 && uses.isTakenOff && weights.isParameter(name) && !weights.isFrozen(name))
      statistics.push_back(name);
  }
  std::vector<WeightNote> notes;
  if (!singles.empty())
    notes.push_back(
        {about(singles,
               " has one element, and the file does not say whether it is a parameter: "
               "kept as a constant",
               " have one element each, and the file does not say which are parameters: "
               "kept as constants") +
             "; a learned temperature or gate is trained by --trainable " + quoted(singles.front()),
         singles});
  bool isOne = statistics.size() == 1;
  if (!statistics.empty())
    notes.push_back(
        {about(statistics, " is subtracted or divided by", " are subtracted or divided by") +
             ", as buffers with statistics of the data are, and the file does not say "
             "what " +
             (isOne ? "it is: trained as a parameter" : "they are: trained as parameters") +
             "; --freeze " + quoted(statistics.front()) + " keeps it as it is, --trainable " +
             quoted(statistics.front()) + " says that it is a parameter",
         statistics});
  return notes;
}

} // namespace partita::importer
