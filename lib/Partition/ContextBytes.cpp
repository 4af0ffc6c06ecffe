//===- ContextBytes.cpp - what a ring or an exchange of heads sends ---------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Partition/ContextParallel.h"
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

/// A rank takes its heads of a bias. The gradient of one that both parameters and data make (relative positions plus a mask of
/// padding) is gathered: its full elements, on each rank. One that parameters make alone is summed with their gradients.
static double gatheredBias(tx::AttentionOp op, const DataIndependence &independent) {
  Value bias = op.getBias();
  if (!bias || op.getBias().getType().getDimSize(1) == 1 || independent(bias) ||
      !isOfParameter(bias))
    return 0;
  RankedTensorType type = op.getBias().getType(), keys = op.getK().getType();
  return double(type.getNumElements()) / double(keys.getDimSize(0)) *
         type.getElementTypeBitWidth() / keys.getElementTypeBitWidth();
}

double ContextBytes::ofExchange(tx::AttentionOp op, int64_t others,
                                const DataIndependence &independent) const {
  double queries = elementsOf(op.getQ()) + elementsOf(op.getOut()),
         keys = elementsOf(op.getK()) + elementsOf(op.getV());
  int64_t heads = op.getK().getType().getDimSize(2);
  // A single key head is gathered, twice, and its gradient is scattered; others are exchanged.
  double repeated = double(std::lcm(heads, axes.ranks * others)) / double(heads);
  double each = hasOneKeyHead(op) ? 3.0 * double(axes.ranks) : 2.0 * repeated;
  return double(axes.ranks - 1) / double(axes.ranks) * (2.0 * queries + each * keys) +
         double(axes.ranks - 1) * gatheredBias(op, independent);
}
