//===- FormulaNotes.cpp - formulas of TorchScript's exporter that are not PyTorch's ------------===//
//
// The exporter writes pairwise_distance and cdist as (sum of (a - b)^p)^(1 / (p + eps)): eps is in the
// exponent instead of beside the difference, and odd powers lack the absolute value. It writes
// cosine_similarity with eps as a bound of the product of both norms; PyTorch bounds each norm.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/Literals.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "partita/Import/HostTensor.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace partita::importer {

namespace {

/// Up to here an eps changes what is computed of numbers that are all but zero.
constexpr double smallEpsilon = 1e-5;

class FormulaFinder {
public:
  FormulaFinder(ModelFile &file, const onnx::GraphProto &graph) : file(file) {
    for (const onnx::TensorProto &tensor : graph.initializer())
      read(tensor.name(), tensor);
    for (const onnx::NodeProto &node : graph.node()) {
      for (const std::string &output : node.output())
        makers[output] = &node;
      compute(node);
      if (isDistance(node))
        distances.push_back(node.name());
      if (isSimilarity(node))
        similarities.push_back(node.name());
    }
  }

  std::vector<std::string> distances, similarities;

private:
  void read(llvm::StringRef name, const onnx::TensorProto &tensor) {
    std::optional<TensorData> data = file.tryLocate(tensor);
    if (!data || data->count != 1)
      return;
    if (std::optional<HostTensor> value = file.tryRead(*data))
      numbers[name] = value->onlyDouble();
  }

  /// A literal, or a sum or quotient of numbers.
  void compute(const onnx::NodeProto &node) {
    if (node.output_size() != 1)
      return;
    if (std::optional<Literal> literal = literalOf(node)) {
      if (literal->tensor)
        read(node.output(0), *literal->tensor);
      else if (literal->number)
        numbers[node.output(0)] = *literal->number;
    }
    const OpRow &facts = factsOf(node);
    if (node.input_size() != 2)
      return;
    std::optional<double> a = numberOf(node.input(0)), b = numberOf(node.input(1));
    if (a && b && facts.isSum())
      numbers[node.output(0)] = *a + *b;
    if (a && b && facts.effect == OpEffect::Scales && facts.inverts)
      numbers[node.output(0)] = *a / *b;
  }

  std::optional<double> numberOf(llvm::StringRef value) const {
    auto found = numbers.find(value);
    return found == numbers.end() ? std::nullopt : std::optional<double>(found->second);
  }

  /// The node that makes a value, if it has this effect and one or two operands.
  const onnx::NodeProto *maker(llvm::StringRef value, OpEffect effect, bool inverts = false) const {
    const onnx::NodeProto *node = makers.lookup(value);
    return node && node->input_size() == 2 && factsOf(*node).effect == effect &&
                   factsOf(*node).inverts == inverts
               ? node
               : nullptr;
  }

  /// What a sum or a root is of; empty if the value is none. By the names of operators: the formula is
  /// one spelling of TorchScript's exporter.
  llvm::StringRef operandOf(llvm::StringRef op, llvm::StringRef value) const {
    const onnx::NodeProto *node = makers.lookup(value);
    bool isIt = node && node->op_type() == op && node->domain().empty() && node->input_size() > 0;
    return isIt ? llvm::StringRef(node->input(0)) : "";
  }

  /// ((a - b)^p summed)^e, where e is not 1 / p or p is odd.
  bool isDistance(const onnx::NodeProto &root) const {
    if (root.output_size() != 1 || maker(root.output(0), OpEffect::Powers) != &root)
      return false;
    std::optional<double> exponent = numberOf(root.input(1));
    const onnx::NodeProto *power = maker(operandOf("ReduceSum", root.input(0)), OpEffect::Powers);
    std::optional<double> p = power ? numberOf(power->input(1)) : std::nullopt;
    if (!exponent || !p || !maker(power->input(0), OpEffect::Adds, /*inverts=*/true))
      return false;
    return std::fmod(*p, 2) != 0 || std::abs(1 / *exponent - *p) > smallEpsilon;
  }

  /// ... / max(sqrt((a a summed) (b b summed)), eps)
  bool isSimilarity(const onnx::NodeProto &quotient) const {
    if (quotient.output_size() != 1 ||
        maker(quotient.output(0), OpEffect::Scales, /*inverts=*/true) != &quotient)
      return false;
    const onnx::NodeProto *bound = maker(quotient.input(1), OpEffect::Bounds);
    std::optional<double> epsilon = bound ? numberOf(bound->input(1)) : std::nullopt;
    if (!epsilon || *epsilon <= smallEpsilon)
      return false;
    const onnx::NodeProto *norms = maker(operandOf("Sqrt", bound->input(0)), OpEffect::Scales);
    return norms && llvm::all_of(norms->input(), [&](const std::string &norm) {
             return !operandOf("ReduceSum", norm).empty();
           });
  }

  ModelFile &file;
  llvm::StringMap<const onnx::NodeProto *> makers;
  llvm::StringMap<double> numbers;
};

} // namespace

void NoteFinder::noteFormulas() {
  if (exporter != Exporter::TorchScript)
    return;
  FormulaFinder finder(file, graph);
  auto say = [&](const std::vector<std::string> &nodes, const std::string &what) {
    if (nodes.empty())
      return;
    noteBeside((nodes.size() == 1 ? "node " : "nodes ") + listed(nodes) +
                   (nodes.size() == 1 ? " computes " : " compute ") + what +
                   ": the program computes what the file says; " + exportByDynamo.str(),
               {})
        .isOfForward = true;
  };
  say(finder.distances, "a pairwise_distance (or cdist) as TorchScript's exporter writes it, with "
                        "eps in the exponent instead of added to the difference, and without the "
                        "absolute value of odd powers");
  say(finder.similarities, "a cosine_similarity as TorchScript's exporter writes it, with eps as "
                           "the least product of both norms instead of the least norm");
}

} // namespace partita::importer
