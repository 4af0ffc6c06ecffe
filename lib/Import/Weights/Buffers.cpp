//===- Buffers.cpp - float initializers that are no parameters --------------------------------===//

#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/BufferValues.h"
#include "lib/Import/Weights/Literals.h"
#include "lib/Import/Weights/WeightValues.h"
#include "partita/Import/HostTensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <map>
#include <memory>

namespace partita::importer {

namespace {

/// What is known of all uses of a value so far.
struct Uses {
  bool angles = true;      ///< they end in a sine or cosine
  bool fixed = true;       ///< they are angles, or scale what is computed from integers
  bool constant = true;    ///< they end as operands that are no parameters
  bool multiplied = true;  ///< they end in elementwise multiplications
  bool elementwise = true; ///< they end in arithmetic, element by element, or as masks of attention
  bool scored = true;      ///< they end in scores of attention, by sums and products with numbers
  bool direct = true;      ///< the same, and no rows are looked up

  Uses &operator&=(const Uses &other) {
    angles &= other.angles;
    fixed &= other.fixed;
    constant &= other.constant;
    multiplied &= other.multiplied;
    elementwise &= other.elementwise;
    scored &= other.scored;
    direct &= other.direct;
    return *this;
  }
};

constexpr Uses anyUse{false, false, false, false, false, false, false};

bool isOneOf(OpEffect effect, llvm::ArrayRef<OpEffect> effects) {
  return llvm::is_contained(effects, effect);
}

/// Does the operator pass its elements on unchanged?
bool reshapes(OpEffect effect) { return isOneOf(effect, {OpEffect::Renames, OpEffect::Reshapes}); }

/// Does it pass on elements of its operands, unchanged or negated?
bool selects(OpEffect effect) {
  return reshapes(effect) ||
         isOneOf(effect, {OpEffect::Picks, OpEffect::LooksUp, OpEffect::Joins, OpEffect::Negates});
}

/// Does it multiply its operands?
bool multiplies(OpEffect effect) {
  return isOneOf(effect, {OpEffect::Scales, OpEffect::Contracts});
}

/// Does it compute with its operands element by element?
bool isElementwise(OpEffect effect) {
  return isOneOf(effect, {OpEffect::Adds, OpEffect::Scales, OpEffect::Chooses, OpEffect::Tests});
}

/// Is its result scores of attention if an operand is?
bool handsScoresOn(OpEffect effect) {
  return selects(effect) ||
         isOneOf(effect, {OpEffect::Adds, OpEffect::Scales, OpEffect::Bounds, OpEffect::Chooses});
}

/// Is its result attention's weights if an operand is?
bool handsWeightsOn(OpEffect effect) {
  return selects(effect) || isOneOf(effect, {OpEffect::Drops, OpEffect::Scales, OpEffect::Chooses});
}

/// Is this operand never trained?
bool takesConstant(const onnx::NodeProto &node, int operand) {
  return factsOf(node).fixes(operand) && !updatesStatistics(node);
}

bool isFloatType(int32_t type) {
  std::optional<DType> known = dtypeFromOnnx(type);
  return known && isFloat(*known);
}

bool isTensorOfNumbers(const onnx::TensorProto &tensor) {
  return isFloatType(tensor.data_type()) && tensor.dims_size() > 0;
}

/// Are its results single numbers if all its operands are? Not Range's, nor those of most operators that
/// reshape or look up.
bool keepsSingle(const onnx::NodeProto &node) {
  return node.op_type() == "Squeeze" || node.op_type() == "Gather" ||
         isOneOf(effectOf(node),
                 {OpEffect::Renames, OpEffect::Negates, OpEffect::Maps, OpEffect::Adds,
                  OpEffect::Scales, OpEffect::Bounds, OpEffect::Powers, OpEffect::Combines});
}

/// Scalars, literals or not, sizes of tensors and what is computed from these: as operands they scale a weight, as
/// the factor of torch.add(x, b, alpha=0.5) does, and are not positions.
llvm::StringSet<> findSingleNumbers(const onnx::GraphProto &graph) {
  llvm::StringSet<> single;
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (tensor.dims_size() == 0)
      single.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node()) {
    bool isSingle = effectOf(node) == OpEffect::Measures;
    if (std::optional<Literal> literal = literalOf(node))
      isSingle = literal->isScalar;
    else if (keepsSingle(node))
      isSingle = llvm::all_of(node.input(),
                              [&](const std::string &input) { return single.contains(input); });
    if (isSingle)
      single.insert_range(node.output());
  }
  return single;
}

/// Values that are computed from integers, and scalars, alone; `counts` are positions that are written
/// as floats.
llvm::StringSet<> findFromIntegers(const onnx::GraphProto &graph, const llvm::StringSet<> &counts) {
  llvm::StringSet<> floats; // the others
  for (const onnx::ValueInfoProto &input : graph.input())
    if (isFloatType(input.type().tensor_type().elem_type()))
      floats.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (isTensorOfNumbers(tensor) && !counts.contains(tensor.name()))
      floats.insert(tensor.name());
  llvm::StringSet<> result = counts, single = findSingleNumbers(graph);
  for (const onnx::NodeProto &node : graph.node()) {
    bool fromIntegers = llvm::all_of(node.attribute(), [](const onnx::AttributeProto &each) {
      return !each.has_g() && !(each.has_t() && isTensorOfNumbers(each.t()));
    });
    // A shape is integers, whatever has it.
    if (effectOf(node) != OpEffect::Measures)
      for (const std::string &input : node.input())
        fromIntegers &= !floats.contains(input);
    for (const std::string &output : node.output())
      if (!single.contains(output))
        (fromIntegers ? result : floats).insert(output);
  }
  return result;
}

/// Values that depend on rows looked up for the program's inputs, or on inputs that are floats.
llvm::StringSet<> findActivations(const onnx::GraphProto &graph) {
  llvm::StringSet<> floats, fromInputs, activations;
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (isTensorOfNumbers(tensor))
      floats.insert(tensor.name());
  for (const onnx::ValueInfoProto &input : graph.input()) {
    fromInputs.insert(input.name());
    if (isFloatType(input.type().tensor_type().elem_type()))
      activations.insert(input.name());
  }
  for (const onnx::NodeProto &node : graph.node()) {
    OpEffect effect = effectOf(node);
    if (effect == OpEffect::Measures)
      continue;
    auto any = [&](const llvm::StringSet<> &names) {
      return llvm::any_of(node.input(),
                          [&](const std::string &input) { return names.contains(input); });
    };
    bool isRow = effect == OpEffect::LooksUp && node.input_size() > 1 &&
                 floats.contains(node.input(0)) && fromInputs.contains(node.input(1));
    bool isActivation = isRow || any(activations), isFromInputs = any(fromInputs);
    for (const std::string &output : node.output()) {
      if (isActivation)
        activations.insert(output);
      if (isFromInputs)
        fromInputs.insert(output);
    }
  }
  return activations;
}

class BufferFinder {
public:
  BufferFinder(const onnx::GraphProto &graph, const llvm::StringSet<> &counts)
      : graph(graph), fromIntegers(findFromIntegers(graph, counts)),
        activations(findActivations(graph)) {}

  /// A node comes after its operands. Walking backward, all uses of a name are known when the node that
  /// defines it is reached.
  void run() {
    for (const onnx::ValueInfoProto &output : graph.output())
      use(output.name(), anyUse);
    for (const onnx::NodeProto &node : llvm::reverse(graph.node()))
      look(node);
  }

  /// A value without uses counts as used in any way.
  Uses of(llvm::StringRef name) const {
    auto known = uses.find(name);
    return known == uses.end() ? anyUse : known->second;
  }

private:
  void use(llvm::StringRef name, Uses here) { uses[name] &= here; }

  Uses ofOutputs(const onnx::NodeProto &node) {
    Uses all;
    bool isUsed = false;
    for (const std::string &output : node.output()) {
      isUsed |= uses.contains(output);
      all &= of(output);
    }
    return isUsed ? all : anyUse;
  }

  void look(const onnx::NodeProto &node) {
    const OpRow &facts = factsOf(node);
    OpEffect effect = facts.effect;
    if (effect == OpEffect::Measures)
      return; // asks for no values
    bool isAngle = effect == OpEffect::Turns;
    bool isScored = effect == OpEffect::Tests || (facts.distributes && weighs(node));
    Uses here{isAngle,  isAngle, false, facts.isProduct(), isElementwise(effect),
              isScored, isScored};
    bool handsAngles = handsAnglesOn(node);
    if (handsAngles || handsScoresOn(effect)) {
      Uses after = ofOutputs(node);
      here.angles = handsAngles && after.angles;
      here.fixed = reshapes(effect) ? after.fixed : here.angles;
      here.scored = handsScoresOn(effect) && after.scored;
      here.direct = handsScoresOn(effect) && effect != OpEffect::LooksUp && after.direct;
      if (selects(effect))
        here = {here.angles,       here.fixed,   after.constant, after.multiplied,
                after.elementwise, after.scored, here.direct};
    }
    if (handsWeightsOn(effect) && weighs(node))
      weights.insert_range(node.input());
    // Attention's second product. An Einsum's equation says which operand it is; here it may be any.
    if (node.op_type() == "Einsum")
      weights.insert_range(node.input());
    else if (node.op_type() == "MatMul" && node.input_size() > 0)
      weights.insert(node.input(0));
    for (int i = 0; i < node.input_size(); ++i) {
      Uses operand = here;
      operand.fixed |=
          facts.isProduct() && node.input_size() == 2 && fromIntegers.contains(node.input(1 - i));
      operand.constant |= takesConstant(node, i);
      bool isMask = facts.maskOperand == i;
      operand.elementwise |= isMask;
      operand.scored |= isMask;
      operand.direct |= isMask;
      use(node.input(i), operand);
    }
    useInBranches(node);
  }

  /// Does it compute angles from angles: in another shape, or multiplied with positions? A weight whose
  /// product with activations goes into a sine is a layer's.
  bool handsAnglesOn(const onnx::NodeProto &node) const {
    OpEffect effect = effectOf(node);
    return selects(effect) ||
           (multiplies(effect) && llvm::none_of(node.input(), [&](const std::string &input) {
              return activations.contains(input);
            }));
  }

  void useInBranches(const onnx::NodeProto &node) {
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      for (const onnx::NodeProto &inner : attribute.g().node()) {
        for (const std::string &input : inner.input())
          use(input, anyUse);
        useInBranches(inner);
      }
      for (const onnx::ValueInfoProto &output : attribute.g().output())
        use(output.name(), anyUse);
    }
  }

  /// Does a result weigh the rows of a matrix, as attention's softmax does?
  bool weighs(const onnx::NodeProto &node) const {
    return llvm::any_of(node.output(),
                        [&](const std::string &output) { return weights.contains(output); });
  }

  const onnx::GraphProto &graph;
  llvm::StringSet<> fromIntegers, activations, weights;
  llvm::StringMap<Uses> uses;
};

/// How many tables of one size are searched for pairs of cosines and sines.
constexpr size_t maxTables = 64;

/// The initializers' values, of those that are small enough and lie in the file.
class Values {
public:
  explicit Values(ModelFile &file) : file(file) {}

  bool has(const onnx::TensorProto &proto) { return locate(proto).has_value(); }

  std::optional<HostTensor> read(const onnx::TensorProto &proto) {
    std::optional<TensorData> data = locate(proto);
    std::optional<HostTensor> values = data ? file.tryRead(*data) : std::nullopt;
    return values && values->size() > 0 ? values : std::nullopt;
  }

private:
  std::optional<TensorData> locate(const onnx::TensorProto &proto) {
    std::optional<TensorData> data = file.tryLocate(proto);
    bool isThere = data && data->count <= maxSearched && data->place != TensorData::declared;
    return isThere ? data : std::nullopt;
  }

  ModelFile &file;
};

/// Positions, written as floats, that biases of attention are computed from.
llvm::StringSet<> findCounts(const onnx::GraphProto &graph, const BufferFinder &finder,
                             Values &values) {
  llvm::StringSet<> counts;
  for (const onnx::TensorProto &proto : graph.initializer())
    if (isTensorOfNumbers(proto) && finder.of(proto.name()).scored)
      if (std::optional<HostTensor> numbers = values.read(proto); numbers && isCounted(*numbers))
        counts.insert(proto.name());
  return counts;
}

} // namespace

llvm::StringSet<> findBuffers(const onnx::GraphProto &graph, ModelFile &file) {
  Values values(file);
  auto finder = std::make_unique<BufferFinder>(graph, llvm::StringSet<>());
  finder->run();
  llvm::StringSet<> found = findCounts(graph, *finder, values);
  if (!found.empty()) {
    finder = std::make_unique<BufferFinder>(graph, found);
    finder->run();
  }
  std::map<int64_t, std::vector<std::pair<llvm::StringRef, HostTensor>>> tables; // by elements
  for (const onnx::TensorProto &proto : graph.initializer()) {
    Uses uses = finder->of(proto.name());
    bool byValue = uses.fixed || (proto.dims_size() >= 2 && (uses.elementwise || uses.scored));
    if (!isFloatType(proto.data_type()) || !(uses.constant || byValue) ||
        found.contains(proto.name()))
      continue;
    if (uses.constant) {
      if (values.has(proto))
        found.insert(proto.name());
      continue;
    }
    std::optional<HostTensor> table = values.read(proto);
    if (!table)
      continue;
    if (uses.fixed) {
      if (uses.angles ? areFrequencies(*table) : areSlopes(*table))
        found.insert(proto.name());
    } else if ((uses.elementwise && (isMask(*table) || isSinusoidal(*table))) ||
               (uses.multiplied && isTurned(*table)) || (uses.scored && isAlibi(*table)))
      found.insert(proto.name());
    else if (uses.multiplied)
      tables[table->size()].push_back({proto.name(), *table});
  }
  for (auto &[size, ofSize] : tables) {
    llvm::ArrayRef few = llvm::ArrayRef(ofSize).take_front(maxTables);
    for (size_t i = 0; i < few.size(); ++i)
      for (size_t k = i + 1; k < few.size(); ++k)
        if (areTurns(few[i].second, few[k].second)) {
          found.insert(few[i].first);
          found.insert(few[k].first);
        }
  }
  return found;
}

std::vector<std::string> findScoreBiases(const onnx::GraphProto &graph,
                                         const llvm::StringSet<> &buffers) {
  BufferFinder finder(graph, {});
  finder.run();
  std::vector<std::string> found;
  for (const onnx::TensorProto &proto : graph.initializer()) {
    int rank = proto.dims_size();
    bool isOfPairs = rank >= 2 && proto.dims(rank - 2) > 1 && proto.dims(rank - 1) > 1;
    if (isOfPairs && isFloatType(proto.data_type()) && finder.of(proto.name()).direct &&
        !buffers.contains(proto.name()))
      found.push_back(proto.name());
  }
  return found;
}

} // namespace partita::importer
