//===- Roundings.cpp --------------------------------------------------------------------------===//

#include "lib/Import/Roundings.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Train/Tensors.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace partita::importer {

/// Returns true if the value is only moved, and then widened.
static bool isWidened(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<tx::ReshapeOp, tx::TransposeOp, tx::BroadcastOp>(user))
      return isWidened(user->getResult(0));
    return isa<tx::CastOp>(user) && isa<FloatType>(getElementTypeOrSelf(user->getResult(0))) &&
           !isShortFloat(user->getResult(0).getType());
  });
}

/// Returns whether a parameter has 16 bits. An exporter may also have made a copy of one (`alsoFolded`).
static bool hasShortParameter(ModuleOp module, bool alsoFolded) {
  return llvm::any_of(module.getOps<train::ParameterOp>(), [&](train::ParameterOp each) {
    return isShortFloat(each.getType()) &&
           (alsoFolded || train::tensorsOf(each).front().folded == train::Folded::No);
  });
}

/// Integers are rounded as floats are; truth values are exact.
Roundings::Roundings(ModuleOp module) {
  bool hasShort = hasShortParameter(module, /*alsoFolded=*/true);
  module.walk([&](tx::CastOp cast) {
    Type from = getElementTypeOrSelf(cast.getX().getType());
    if (!isShortFloat(cast.getType()) || from.isInteger(1))
      return;
    bool isKept = !hasShort && !isShortFloat(from) && isWidened(cast.getResult());
    (isKept ? kept : dropped).push_back(cast);
  });
}

std::string roundingWarning(ModuleOp module) {
  llvm::SmallSetVector<StringRef, 4> nodes;
  llvm::SmallSetVector<Type, 2> types;
  for (tx::CastOp cast : Roundings(module).dropped)
    if (auto name = cast->getAttrOfType<StringAttr>(kCastNode)) {
      nodes.insert(name.getValue());
      types.insert(getElementTypeOrSelf(cast.getType()));
    }
  module.walk([](tx::CastOp cast) { cast->removeAttr(kCastNode); });
  // A copy of 16 bits, made by the exporter, does not make it a model of 16 bits.
  if (nodes.empty() || hasShortParameter(module, /*alsoFolded=*/false))
    return "";
  auto nameOf = [](Type type) { return type.isF16() ? "float16" : "bfloat16"; };
  bool isOne = nodes.size() == 1;
  return oneOf(llvm::map_to_vector(nodes, [](StringRef each) { return each.str(); }), "node") +
         " casts to " + nameOf(types.front()) +
         " (torch.autocast, x.half()), where PyTorch rounds and float16 may overflow: the program "
         "computes in one type, float32 unless --precision sets another, and does not round there; "
         "to train as PyTorch does, export without the " +
         (isOne ? "cast" : "casts") + " and use --precision" +
         (types.size() == 1 ? std::string(" ") + nameOf(types.front()) : "");
}

} // namespace partita::importer
