//===- Elementwise.cpp - elementwise ops and casts --------------------------------------------===//
//
// An elementwise op answers for itself: its scalar expression, evaluated in double precision.
// Integers below 2^53 are exact there.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// The number as an integer of this width: truncated toward zero, i1 asks whether it is not zero.
/// Numbers that no integer of the width is near to are an error.
static LogicalResult toInteger(Operation *op, unsigned width, double value, int64_t &result) {
  if (width == 1) {
    result = value != 0;
    return success();
  }
  double limit = std::ldexp(1.0, static_cast<int>(std::min(width, 64u)) - 1);
  double truncated = std::trunc(value);
  if (!(truncated >= -limit && truncated < limit))
    return op->emitError() << "yields " << value << ", which no i" << width << " holds";
  result = static_cast<int64_t>(truncated);
  return success();
}

LogicalResult partita::interp::evaluateElementwise(Operation *op, Inputs in, Outputs out) {
  auto scalar = cast<ScalarInterface>(op);
  Tensor &result = out[0];
  unsigned width =
      result.isReal ? 0 : getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
  SmallVector<double> operands(in.size());
  for (int64_t i = 0, n = result.size(); i < n; ++i) {
    for (auto [operand, tensor] : llvm::zip(operands, in))
      operand = tensor->number(i);
    double value = scalar.evaluateScalar(operands);
    if (result.isReal)
      result.reals[i] = value;
    else if (failed(toInteger(op, width, value, result.ints[i])))
      return failure();
  }
  return success();
}

double partita::interp::roundTo(FloatType type, double value) {
  if (isByteFloat(type)) { // saturates
    double most = APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
    value = value > most ? most : value < -most ? -most : value;
  }
  APFloat number(value);
  bool losesInfo = false;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

LogicalResult partita::interp::evaluateCast(Operation *op, bool round, const Tensor &in,
                                            Tensor &out) {
  Type to = getElementTypeOrSelf(op->getResult(0)), from = getElementTypeOrSelf(op->getOperand(0));
  auto real = dyn_cast<FloatType>(to);
  if (!real && !in.isReal && to.getIntOrFloatBitWidth() >= from.getIntOrFloatBitWidth()) {
    out.ints = in.ints; // widening is exact beyond 2^53 too
    return success();
  }
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    if (!real && failed(toInteger(op, to.getIntOrFloatBitWidth(), in.number(i), out.ints[i])))
      return failure();
    if (real)
      out.reals[i] = round ? roundTo(real, in.number(i)) : in.number(i);
  }
  return success();
}
