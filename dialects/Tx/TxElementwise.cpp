//===- TxElementwise.cpp - see TxElementwise.td -----------------------------------------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

/// Terms at different positions are parts of a sum. A term that several positions have would count
/// several times.
std::optional<Holders> AddOp::placeResults(ArrayRef<Holders> operands, std::string &) {
  const Holders &a = operands[0], &b = operands[1];
  if (!a.partial && !b.partial && (a.positions & b.positions).any())
    return Holders{a.positions & b.positions, false};
  if ((a.partial || a.isOne()) && (b.partial || b.isOne()))
    return Holders{a.positions | b.positions, true};
  return std::nullopt;
}

SmallVector<Value> AddOp::cutTo(OpBuilder &, const StageShare &stage) {
  if (!stage.isPartial(getResult()) || stage.has(getA()) == stage.has(getB()))
    return {};
  return {stage.copyOf(stage.has(getA()) ? getA() : getB())};
}

#define GET_OP_CLASSES
#include "dialects/Tx/TxElementwise.cpp.inc"
