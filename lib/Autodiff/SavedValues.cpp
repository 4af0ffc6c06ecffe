//===- SavedValues.cpp - forward values in the backward pass ----------------------------------===//

#include "lib/Autodiff/SavedValues.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include "dialects/Tx/Tx.h"
#include "partita/Analysis/Work.h"

using namespace mlir;
using namespace partita;

bool autodiff::isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || isa<par::FOp, tx::ThroughFp8Op>(op) ||
         analysis::isView(op);
}

Value autodiff::inBackward(OpBuilder &builder, train::AccumulateOp loop, Value value,
                           IRMapping &made) {
  if (value.getParentRegion() != &loop.getBody())
    return value;
  if (Value known = made.lookupOrNull(value))
    return known;
  Operation *definer = value.getDefiningOp();
  if (!definer || !isFree(definer))
    return loop.save(value);
  IRMapping operands;
  for (Value operand : definer->getOperands())
    operands.map(operand, inBackward(builder, loop, operand, made));
  Operation *again = builder.clone(*definer, operands);
  again->setLoc(provenance::backward(definer->getLoc()));
  made.map(definer->getResults(), again->getResults());
  return made.lookup(value);
}
