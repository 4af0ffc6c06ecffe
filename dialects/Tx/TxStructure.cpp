//===- TxStructure.cpp - see TxStructure.td ---------------------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxStructure.cpp.inc"

//===------------------------------------------------------------------------------------------------===//
// Verifiers of one rank's shapes; rules check the full ones
//===------------------------------------------------------------------------------------------------===//

static LogicalResult verifySameElement(Operation *op) {
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  for (Type type : op->getOperandTypes())
    if (cast<RankedTensorType>(type).getElementType() != element)
      return op->emitOpError() << "element types differ: " << type << " and "
                               << op->getResult(0).getType();
  return success();
}

LogicalResult ConstantOp::verify() {
  auto plain = dyn_cast<RankedTensorType>(getValue().getShapedType());
  if (!plain || plain.getEncoding() || plain.getShape() != getType().getShape() ||
      plain.getElementType() != getType().getElementType())
    return emitOpError() << "value of type " << getValue().getShapedType()
                         << " in a result of type " << getType();
  return success();
}

/// Checks that repeating `few` gives `many`, of which a rank may have a shard.
static LogicalResult verifyRepeat(Operation *op, RankedTensorType few, RankedTensorType many,
                                  int64_t dim, int64_t times) {
  SmallVector<int64_t> from = par::Layout::of(few).shape, to = par::Layout::of(many).shape;
  if (dim < 0 || dim >= few.getRank() || few.getRank() != many.getRank() || times < 1)
    return op->emitOpError() << "repeats dimension " << dim << " of " << few << " " << times
                             << " times in " << many;
  if (from[dim] * times != to[dim])
    return op->emitOpError() << "repeats a dimension of " << from[dim] << " " << times
                             << " times, which is not the " << to[dim] << " of " << many;
  if (few.getElementType() != many.getElementType())
    return op->emitOpError() << "element types differ: " << few << " and " << many;
  return success();
}

LogicalResult RepeatOp::verify() {
  return verifyRepeat(*this, getX().getType(), getType(), getDim(), getTimes());
}
LogicalResult RepeatSumOp::verify() {
  return verifyRepeat(*this, getType(), getX().getType(), getDim(), getTimes());
}

LogicalResult ReshapeOp::verify() {
  if (getX().getType().getNumElements() != getType().getNumElements())
    return emitOpError() << getX().getType() << " has " << getX().getType().getNumElements()
                         << " elements, " << getType() << " has " << getType().getNumElements();
  return verifySameElement(*this);
}

LogicalResult TransposeOp::verify() {
  auto from = getX().getType();
  SmallVector<int64_t> sorted(getPermutation()), shape;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, from.getRank())))
    return emitOpError() << "permutation of " << from.getRank() << " dimensions expected";
  for (int64_t p : getPermutation())
    shape.push_back(from.getDimSize(p));
  if (ArrayRef<int64_t>(shape) != getType().getShape())
    return emitOpError() << "permuting " << from << " does not give " << getType();
  return verifySameElement(*this);
}

LogicalResult BroadcastOp::verify() {
  auto from = getX().getType(), to = getType();
  int64_t added = to.getRank() - from.getRank();
  if (added < 0)
    return emitOpError() << "cannot broadcast " << from << " to " << to;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (from.getDimSize(i) != to.getDimSize(i + added) && from.getDimSize(i) != 1)
      return emitOpError() << "cannot broadcast " << from << " to " << to;
  return verifySameElement(*this);
}

/// Checks that positions offsets + i * strides, i < small, lie inside big.
static LogicalResult verifyCut(Operation *op, RankedTensorType big, RankedTensorType small,
                               ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides) {
  int64_t rank = big.getRank();
  if (small.getRank() != rank || static_cast<int64_t>(offsets.size()) != rank ||
      static_cast<int64_t>(strides.size()) != rank)
    return op->emitOpError() << "needs an offset and a stride per dimension of " << big;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t last = offsets[i] + (small.getDimSize(i) - 1) * strides[i];
    if (strides[i] == 0 ||
        (small.getDimSize(i) > 0 && (offsets[i] < 0 || offsets[i] >= big.getDimSize(i) ||
                                     last < 0 || last >= big.getDimSize(i))))
      return op->emitOpError() << "dimension " << i << ": offset " << offsets[i] << " and stride "
                               << strides[i] << " leave " << big;
  }
  return verifySameElement(op);
}

LogicalResult SliceOp::verify() {
  return verifyCut(*this, getX().getType(), getType(), getOffsets(), getStrides());
}
LogicalResult PadOp::verify() {
  return verifyCut(*this, getType(), getX().getType(), getOffsets(), getStrides());
}

LogicalResult ConcatOp::verify() {
  int64_t rank = getType().getRank(), dim = getDim(), total = 0;
  if (getInputs().empty() || dim < 0 || dim >= rank)
    return emitOpError() << "needs inputs and a dimension below " << rank;
  for (Value input : getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    for (int64_t i = 0; i < rank; ++i)
      if (type.getRank() != rank || (i != dim && type.getDimSize(i) != getType().getDimSize(i)))
        return emitOpError() << "input " << type << " does not fit " << getType() << " along "
                             << dim;
    total += type.getDimSize(dim);
  }
  if (total != getType().getDimSize(dim))
    return emitOpError() << "the inputs' sizes along " << dim << " add up to " << total
                         << ", the result has " << getType().getDimSize(dim);
  return verifySameElement(*this);
}

static LogicalResult verifyReduce(Operation *op, RankedTensorType from, RankedTensorType to,
                                  ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      shape.push_back(from.getDimSize(i));
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= from.getRank() || llvm::is_contained(dims.take_front(i), dim))
      return op->emitOpError() << "dims must be distinct and below " << from.getRank();
  if (ArrayRef<int64_t>(shape) != to.getShape())
    return op->emitOpError() << "reducing " << from << " does not give " << to;
  return verifySameElement(op);
}
LogicalResult ReduceSumOp::verify() {
  return verifyReduce(*this, getX().getType(), getType(), getDims());
}
LogicalResult ReduceMeanOp::verify() {
  return verifyReduce(*this, getX().getType(), getType(), getDims());
}
LogicalResult ReduceMaxOp::verify() {
  return verifyReduce(*this, getX().getType(), getType(), getDims());
}
