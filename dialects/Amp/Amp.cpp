//===- Amp.cpp - mixed precision --------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include <algorithm>

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

/// Is `columns` the transpose of `x` in this type?
static bool isTransposed(RankedTensorType columns, RankedTensorType x, Type element) {
  SmallVector<int64_t> shape(x.getShape());
  if (shape.empty())
    return false;
  std::rotate(shape.begin(), shape.end() - 1, shape.end());
  return columns.getElementType() == element && columns.getShape() == ArrayRef(shape);
}

LogicalResult QuantizeOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  if (!getRows() && !getColumns())
    return emitOpError() << "makes neither rows nor columns";
  if (Value rows = getRows()) {
    auto result = cast<RankedTensorType>(rows.getType());
    Type element = result.getElementType();
    if (element != getStored() && element != x.getElementType())
      return emitOpError() << "makes " << element << ", expected " << getStored()
                           << " or the operand's type, " << x.getElementType();
    if (result.clone(x.getElementType()) != x)
      return emitOpError() << "makes " << result << " of " << x;
    if (getColumns() && element != getStored())
      return emitOpError() << "makes columns of " << getStored() << " beside rows of " << element;
  }
  if (Value columns = getColumns();
      columns && !isTransposed(cast<RankedTensorType>(columns.getType()), x, getStored()))
    return emitOpError() << "makes columns " << columns.getType() << " of " << x;
  if (Value sums = getSums()) {
    auto made = cast<RankedTensorType>(sums.getType());
    if (!getColumns() || made.getElementType() != x.getElementType() ||
        made.getDimSize(0) != x.getShape().back())
      return emitOpError() << "makes sums " << made << " of " << x
                           << ", expected them beside columns, in x's type";
  }
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

QuantizeOp QuantizeOp::withResults(Type rows, Type columns, Type sums) {
  OpBuilder builder(*this);
  Value maxima = getMaxima();
  auto made =
      QuantizeOp::create(builder, getLoc(), rows, columns, maxima ? maxima.getType() : Type(), sums,
                         getX(), getScales(), maxima, getNumberAttr(), getStoredAttr());
  made->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  for (auto [before, after] : {std::pair(getRows(), made.getRows()),
                               {getColumns(), made.getColumns()},
                               {getRaised(), made.getRaised()},
                               {getSums(), made.getSums()}})
    if (before && after)
      before.replaceAllUsesWith(after);
  erase();
  return made;
}
