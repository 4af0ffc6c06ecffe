//===- KindNotes.cpp - tensors that may or may not be parameters ------------------------------===//
//
// PyTorch's TorchScript exporter writes parameters and buffers alike, under their names in the model.
// It generates the names of what it has computed, and of literals: "onnx::Mul_12", or
// the path of a Constant node, which begins with a slash. The remaining tensors are the model's own,
// and if their use does not show what they are, a note says what they are taken for.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/BufferValues.h"
#include "lib/Import/Weights/InitializerUses.h"
#include "lib/Import/Weights/Literals.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::importer {

namespace {

/// How a tensor of the model is used.
struct OwnUses {
  bool computes = false;              ///< it is an operand of arithmetic
  bool isSubtrahendOrDivisor = false; ///< it is subtracted, not from a literal, or divided by
};

/// Is the result a function of the first operand's elements alone, one by one?
bool keepsElements(const onnx::NodeProto &node) {
  static constexpr OpEffect effects[] = {OpEffect::Renames, OpEffect::Reshapes,   OpEffect::Picks,
                                         OpEffect::LooksUp, OpEffect::Negates,    OpEffect::Maps,
                                         OpEffect::Turns,   OpEffect::Normalizes, OpEffect::Powers};
  return llvm::is_contained(effects, effectOf(node));
}

bool computes(OpEffect effect) {
  static constexpr OpEffect effects[] = {OpEffect::Adds,   OpEffect::Scales, OpEffect::Bounds,
                                         OpEffect::Powers, OpEffect::Joins,  OpEffect::Combines};
  return llvm::is_contained(effects, effect);
}

/// Nothing is known of a tensor that is not the model's own by its name or its use.
OwnUses ownUses(llvm::StringRef name, llvm::ArrayRef<InitializerUses::Use> uses,
                const Literals &literals) {
  OwnUses own;
  bool isOwn = isModelName(name);
  for (auto [node, operand] : uses) {
    const OpRow &facts = factsOf(*node);
    isOwn |= facts.learnedOperand == operand;
    own.computes |= computes(facts.effect);
    // "1 - gate" is a learned gate's rest; data minus its mean is no literal.
    bool isRest = facts.effect == OpEffect::Adds && literals.contains(node->input(0));
    own.isSubtrahendOrDivisor |= facts.inverts && operand == 1 && !isRest;
  }
  return isOwn ? own : OwnUses();
}

/// The model's floats that are operands of arithmetic, that have so many dimensions other than 1, and that no
/// option decides.
std::vector<std::string> inArithmetic(const onnx::GraphProto &graph, const WeightTable &weights,
                                      int64_t wide,
                                      llvm::function_ref<bool(llvm::StringRef, OwnUses)> isWanted) {
  InitializerUses all(graph, keepsElements);
  Literals literals(graph);
  std::vector<std::string> names;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    std::optional<DType> type = dtypeFromOnnx(tensor.data_type());
    OwnUses uses = ownUses(tensor.name(), all.of(tensor.name()), literals);
    if (type && isFloat(*type) && uses.computes && !weights.isDecided(tensor.name()) &&
        llvm::count_if(tensor.dims(), [](int64_t size) { return size != 1; }) == wide &&
        isWanted(tensor.name(), uses))
      names.push_back(tensor.name());
  }
  return names;
}

/// "tensor 'a' ONE" or "tensors 'a' and 'b' SEVERAL".
std::string about(const std::vector<std::string> &names, const char *one, const char *several) {
  bool isOne = names.size() == 1;
  return (isOne ? "tensor " : "tensors ") + listed(names) + (isOne ? one : several);
}

} // namespace

/// Single elements that are constants here but may be parameters, such as a learned temperature.
void NoteFinder::noteSingles() {
  if (!omitsKinds(exporter))
    return;
  std::vector<std::string> singles =
      inArithmetic(graph, weights, /*wide=*/0,
                   [&](llvm::StringRef name, OwnUses) { return !weights.isParameter(name); });
  if (!singles.empty())
    note(about(singles,
               " has one element, and the file does not say whether it is a parameter: "
               "kept as a constant",
               " have one element each, and the file does not say which are parameters: "
               "kept as constants") +
             "; a learned temperature or gate is trained by --trainable " + quoted(singles.front()),
         singles);
}

/// Vectors that are trained but may be buffers, such as mean and deviation of the data.
void NoteFinder::noteStatistics() {
  if (!omitsKinds(exporter))
    return;
  std::vector<std::string> statistics =
      inArithmetic(graph, weights, /*wide=*/1, [&](llvm::StringRef name, OwnUses uses) {
        return uses.isSubtrahendOrDivisor && weights.isParameter(name) &&
               !weights.isUnreadConstant(name);
      });
  bool isOne = statistics.size() == 1;
  if (!statistics.empty())
    note(about(statistics, " is subtracted or is a divisor", " are subtracted or are divisors") +
             ", like the data's mean or deviation; " + (isOne ? "it is" : "they are") +
             " trained, because the file does not say whether " +
             (isOne ? "it is a parameter" : "they are parameters") + ". Use --freeze " +
             quoted(statistics.front()) + " to keep " + (isOne ? "it" : "the first") +
             " fixed, --trainable " + quoted(statistics.front()) + " if it is a parameter",
         statistics);
}

/// A table of sines of positions is a constant here, whatever its name: Marian's is called like an
/// embedding's weight. But a model may learn positions that start as sines.
void NoteFinder::noteTablesOfSines() {
  if (!omitsKinds(exporter))
    return;
  std::vector<std::string> names;
  for (const std::string &name : order) {
    const Tensor &tensor = tensorOf(name);
    if (!weights.buffers.contains(name) || tensor.isParameter || tensor.isDecided ||
        !tensor.isRead || !(isModelName(name) || isFoldedName(name)))
      continue;
    std::optional<HostTensor> values = file.tryRead(tensor.data);
    if (values && isSinusoidal(*values))
      names.push_back(name);
  }
  if (names.empty())
    return;
  note(oneOf(names) +
           " holds sines and cosines of positions and is not trained, because the file does not "
           "say whether it is a parameter; use --trainable " +
           quoted(names.front()) + " if positions are learned from there",
       names);
}

/// The names of parameters of torch.nn's modules are known; what a model registers itself may be a
/// parameter or a buffer.
void NoteFinder::noteMayBeBuffers() {
  if (!omitsKinds(exporter))
    return;
  std::vector<std::string> names;
  for (const std::string &name : order)
    if (isModelName(name) && !isModuleParameter(name) && isGuessed(tensorOf(name)) &&
        !isNoted(name))
      names.push_back(name);
  if (names.empty())
    return;
  bool isOne = names.size() == 1;
  note(about(names,
             " is trained, although the file does not say whether it is a parameter or a buffer",
             " are trained, although the file does not say whether they are parameters or "
             "buffers") +
           ". Use --freeze " + quoted(names.front()) + " to keep " + (isOne ? "it" : "the first") +
           " fixed, --trainable " + quoted(names.front()) + " if it is a parameter",
       names);
}

} // namespace partita::importer
