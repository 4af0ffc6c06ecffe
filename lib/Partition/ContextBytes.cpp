//===- ContextBytes.cpp - what a ring or an exchange of heads sends ---------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Partition/ContextParallel.h"
#include "lib/Partition/Propagation.h"
#include <numeric>

using namespace mlir;
using namespace partita;

/// Elements of one sequence.
static double elementsOf(TypedValue<RankedTensorType> value) {
  return double(value.getType().getNumElements()) / double(value.getType().getDimSize(0));
}

double ContextBytes::ofRing(tx::AttentionOp op) const {
  int64_t s = op.getQ().getType().getDimSize(1), t = op.getK().getType().getDimSize(1);
  tx::OtherMask mask{op.getCausal(), static_cast<int64_t>(op.getWindow().value_or(0))};
  tx::RingShifts shifts(
      tx::stepsWithWork({s, axes.ranks}, {t, axes.ranks}, mask, op.getBlocksAttr()));
  double inFloat = std::max(1.0, 32.0 / op.getK().getType().getElementTypeBitWidth());
  return (2.0 * double(shifts.keys) + inFloat * double(shifts.gradients)) *
         (elementsOf(op.getK()) + elementsOf(op.getV()));
}

/// Is a parameter among what a value is computed from?
static bool isOfParameter(Value value) {
  SmallVector<Value> open = {value};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *made = next.getDefiningOp();
    if (!made || !seen.insert(next).second)
      continue;
    if (isa<train::ReadOp>(made))
      return true;
    llvm::append_range(open, made->getOperands());
  }
  return false;
}

/// A rank takes its heads of a bias where takeHeadsEarly puts it. The gradient of what both parameters and data make there is
/// gathered: its full elements, on each rank. That of what parameters make alone is summed with theirs.
static int64_t gatheredBits(Value value, unsigned dim, int64_t blocks, Operation *user,
                            const DataIndependence &independent, const Propagation &propagation) {
  if (independent(value) || !isOfParameter(value))
    return 0;
  auto takesHeads = [&](Operation *each) { return each == user || isa<tx::AttentionOp>(each); };
  Operation *op = value.getDefiningOp();
  auto type = cast<RankedTensorType>(value.getType());
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  if (!op || !llvm::all_of(value.getUsers(), takesHeads))
    return bits;
  auto operands = operandsWithHeads(propagation, op, dim, blocks);
  if (operands.empty())
    return bits;
  int64_t sum = 0;
  for (auto [number, ofOperand] : operands)
    sum += gatheredBits(op->getOperand(number), ofOperand, blocks, op, independent, propagation);
  return sum;
}

double ContextBytes::ofExchange(tx::AttentionOp op, int64_t others,
                                const DataIndependence &independent,
                                const Propagation &propagation) const {
  double queries = elementsOf(op.getQ()) + elementsOf(op.getOut()),
         keys = elementsOf(op.getK()) + elementsOf(op.getV());
  int64_t heads = op.getK().getType().getDimSize(2);
  // A single key head is gathered, twice, and its gradient is scattered; others are exchanged.
  double repeated = double(std::lcm(heads, axes.ranks * others)) / double(heads);
  double each = hasOneKeyHead(op) ? 3.0 * double(axes.ranks) : 2.0 * repeated;
  int64_t gathered = 0; // for all sequences of a batch
  if (op.getBias() && op.getBias().getType().getDimSize(1) != 1)
    gathered = gatheredBits(op.getBias(), 1, others, op, independent, propagation);
  RankedTensorType type = op.getK().getType();
  return double(axes.ranks - 1) / double(axes.ranks) * (2.0 * queries + each * keys) +
         double(axes.ranks - 1) * double(gathered) /
             double(type.getDimSize(0) * type.getElementTypeBitWidth());
}
