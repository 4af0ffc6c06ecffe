//===- AlikeLayers.cpp - layers that cost the same --------------------------------------------===//
//
// Each layer gets a description, a sequence of words that has everything but the layer's number, and
// of two layers in succession the descriptions are compared.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/AlikeLayers.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using train::LayerAttr;

namespace {

using Words = std::vector<uintptr_t>;

/// Tells apart what stands at one place of a description.
enum Word : uintptr_t { kEnd, kOfLayer, kOfOutside, kParameter };

uintptr_t word(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

class Describer {
public:
  Describer(func::FuncOp function, int64_t count)
      : symbols(function->getParentOp()), ops(count), passing(count) {
    function.walk([&](Operation *op) {
      LayerAttr layer = LayerAttr::of(op);
      if (!layer || layer.getNumber() < 0 || layer.getNumber() >= count)
        return;
      std::vector<Operation *> &own = ops[layer.getNumber()];
      places[op] = {layer.getNumber(), static_cast<int64_t>(own.size())};
      own.push_back(op);
    });
    function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        countPassing(result);
      for (Region &region : op->getRegions())
        for (Value argument : region.getArguments())
          countPassing(argument);
    });
    for (Words &types : passing)
      llvm::sort(types);
  }

  Words describe(int64_t layer) const {
    Words words;
    append(words, passing[layer - 1]);
    append(words, passing[layer]);
    for (Operation *op : ops[layer])
      describe(words, op, layer);
    return words;
  }

private:
  /// A layer and the number of the op in it.
  struct Place {
    int64_t layer, number;
  };

  static void append(Words &words, ArrayRef<uintptr_t> more) {
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(kEnd);
  }

  const Place *placeOf(Operation *op) const {
    auto found = places.find(op);
    return found == places.end() ? nullptr : &found->second;
  }

  /// Counts the value at each boundary between its definition and its last use in a layer.
  void countPassing(Value value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<train::ReadOp>(op))
      return; // a parameter is on the stages that use it
    const Place *definition = op ? placeOf(op) : nullptr;
    int64_t last = -1;
    for (Operation *user : value.getUsers())
      if (const Place *place = placeOf(user))
        last = std::max(last, place->layer);
    for (int64_t layer = definition ? definition->layer : 0; layer < last; ++layer)
      passing[layer].push_back(word(value.getType().getAsOpaquePointer()));
  }

  static DictionaryAttr attributesOf(Operation *op) {
    NamedAttrList attributes(provenance::attributesWithout(op));
    if (auto dropout = dyn_cast<DropoutInterface>(op))
      attributes.erase(dropout.getDropoutIdName());
    if (auto parameter = dyn_cast<train::ParameterOp>(op))
      for (StringAttr each : {parameter.getSymNameAttrName(), parameter.getInitialAttrName(),
                              parameter.getFillAttrName()})
        attributes.erase(each);
    return attributes.getDictionary(op->getContext());
  }

  void describe(Words &words, Operation *op, int64_t layer) const {
    words.push_back(word(op->getName().getAsOpaquePointer()));
    words.push_back(word(attributesOf(op).getAsOpaquePointer()));
    // An op with regions is like no other; models have none within layers.
    words.push_back(op->getNumRegions() ? word(op) : 0);
    for (Value operand : op->getOperands())
      describeOperand(words, operand, layer);
    words.push_back(kEnd);
    for (Value result : op->getResults()) {
      words.push_back(word(result.getType().getAsOpaquePointer()));
      describeUses(words, result, layer);
    }
    words.push_back(kEnd);
  }

  void describeOperand(Words &words, Value operand, int64_t layer) const {
    Operation *op = operand.getDefiningOp();
    if (auto read = dyn_cast_or_null<train::ReadOp>(op)) {
      auto parameter = symbols.lookup<train::ParameterOp>(read.getSymbol());
      words.push_back(kParameter);
      words.push_back(word(operand.getType().getAsOpaquePointer()));
      words.push_back(parameter ? word(attributesOf(parameter).getAsOpaquePointer()) : word(op));
      describeUses(words, operand, layer);
    } else if (const Place *place = op ? placeOf(op) : nullptr) {
      words.insert(words.end(), {kOfLayer, static_cast<uintptr_t>(layer - place->layer),
                                 static_cast<uintptr_t>(place->number),
                                 cast<OpResult>(operand).getResultNumber()});
    } else {
      words.insert(words.end(), {kOfOutside, word(operand.getAsOpaquePointer())});
    }
  }

  /// Appends who reads the value, in an order that does not depend on the list of uses.
  void describeUses(Words &words, Value value, int64_t layer) const {
    SmallVector<std::array<uintptr_t, 4>> uses;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (const Place *place = placeOf(user))
        uses.push_back({kOfLayer, static_cast<uintptr_t>(place->layer - layer),
                        static_cast<uintptr_t>(place->number), use.getOperandNumber()});
      else
        uses.push_back({kOfOutside, word(user), 0, use.getOperandNumber()});
    }
    llvm::sort(uses);
    for (const auto &use : uses)
      words.insert(words.end(), use.begin(), use.end());
    words.push_back(kEnd);
  }

  SymbolTable symbols;
  std::vector<std::vector<Operation *>> ops; ///< of each layer, in program order
  DenseMap<Operation *, Place> places;
  std::vector<Words> passing; ///< types of the values that pass from each layer to the next
};

} // namespace

std::vector<int64_t> analysis::kindsOfLayers(func::FuncOp function, int64_t count) {
  Describer describer(function, count);
  std::vector<int64_t> kinds(count);
  Words before;
  for (int64_t layer = 1; layer < count; ++layer) {
    Words own = describer.describe(layer);
    bool isAlike = layer > 1 && layer < count - 1 && own == before;
    kinds[layer] = kinds[layer - 1] + (isAlike ? 0 : 1);
    before = std::move(own);
  }
  return kinds;
}
