//===- TxFp8.cpp - see TxFp8.td ---------------------------------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

/// Does `scales` have a number for each operand?
template <typename Op> static LogicalResult verifyScales(Op op) {
  int64_t count = op.getScales().getType().getDimSize(0);
  for (int64_t number : {op.getNumberA(), op.getNumberB()})
    if (number < 0 || number >= count)
      return op.emitOpError() << "takes scale " << number << " of " << count;
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Tx/TxFp8.cpp.inc"
