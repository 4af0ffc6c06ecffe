//===- TxDialect.cpp - registers the op tables ------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Par/Par.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#include "dialects/Tx/TxDialect.cpp.inc"

void TxDialect::initialize() {
  registerBlocks();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxElementwise.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxRounding.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxActivation.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxStructure.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxTransformer.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxFused.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tx/TxFp8.cpp.inc"
      >();
}

Operation *TxDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!elements || !tensor || elements.getShapedType().getShape() != tensor.getShape())
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

Type partita::tx::storedElement(ValueRange operands) {
  for (Value operand : operands)
    if (isShortFloat(operand.getType()))
      return getElementTypeOrSelf(operand);
  return getElementTypeOrSelf(operands.front());
}

Type partita::tx::statisticElement(Value operand) {
  return inSingleAtLeast(getElementTypeOrSelf(operand));
}

Value partita::tx::createSplat(OpBuilder &builder, Location loc, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  auto plain = RankedTensorType::get(tensor.getShape(), tensor.getElementType());
  Attribute element;
  if (auto floating = dyn_cast<FloatType>(tensor.getElementType()))
    element = builder.getFloatAttr(floating, value);
  else
    element = builder.getIntegerAttr(tensor.getElementType(), static_cast<int64_t>(value));
  return ConstantOp::create(builder, loc, type,
                            cast<ElementsAttr>(Attribute(DenseElementsAttr::get(plain, element))));
}
