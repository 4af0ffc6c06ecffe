//===- StoredTypes.cpp - the types in which an op's results are stored ------------------------===//

#include "lib/Amp/StoredTypes.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;

bool amp::isWide(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32();
}

bool amp::isNarrow(Type type) { return isa<RankedTensorType>(type) && isShortFloat(type); }

bool amp::isSplat(Value value) {
  auto constant = value.getDefiningOp<tx::ConstantOp>();
  return constant && constant.getValue().isSplat();
}

std::optional<SmallVector<Type>> amp::storedTypes(Operation *op, ValueRange operands) {
  SmallVector<Type> types(op->getResultTypes()), inferred;
  auto infers = dyn_cast<InferTypeOpInterface>(op);
  if (infers && failed(infers.inferReturnTypes(
                    op->getContext(), std::nullopt, operands, op->getDiscardableAttrDictionary(),
                    op->getPropertiesStorage(), op->getRegions(), inferred)))
    return std::nullopt;
  if (!infers) // ops that move elements store them unchanged
    inferred.assign(types.size(), tx::storedElement(operands));
  if (inferred.size() < types.size())
    return std::nullopt;
  for (auto [type, stored] : llvm::zip(types, inferred))
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && isa<FloatType>(tensor.getElementType()))
      type = tensor.clone(getElementTypeOrSelf(stored));
  return types;
}

bool amp::suitsFp8(Value operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (type.getRank() == 0 || type.getNumElements() == 0)
    return false;
  int64_t width = type.getShape().back(), rows = type.getNumElements() / width;
  return width % kFp8Multiple == 0 && rows % kFp8Multiple == 0;
}
