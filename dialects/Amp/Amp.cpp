//===- Amp.cpp - mixed precision --------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::amp;

#include "dialects/Amp/AmpDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Amp/AmpOps.cpp.inc"

void AmpDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Amp/AmpOps.cpp.inc"
      >();
}

LogicalResult QuantizeOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  Type element = result.getElementType();
  if (element != getStored() && element != x.getElementType())
    return emitOpError() << "makes " << element << ", expected " << getStored()
                         << " or the operand's type, " << x.getElementType();
  if (result.clone(x.getElementType()) != x)
    return emitOpError() << "makes " << result << " of " << x;
  int64_t count = getScales().getType().getDimSize(0), number = getNumber();
  if (number < 0 || number >= count)
    return emitOpError() << "takes scale " << number << " of " << count;
  Type raised = getRaised() ? getRaised().getType() : Type();
  if (raised != (getMaxima() ? Type(getMaxima().getType()) : Type()))
    return emitOpError() << "raises maxima exactly if it is given them, in their type";
  if (getMaxima() && getMaxima().getType().getDimSize(0) != count)
    return emitOpError() << "has " << count << " scales and " << getMaxima().getType().getDimSize(0)
                         << " maxima";
  return success();
}
