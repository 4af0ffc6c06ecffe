//===- ContextBytes.cpp - what a ring or an exchange of heads sends ---------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Partition/ContextParallel.h"
#include <numeric>

using namespace mlir;
using namespace partita;

/// Shifts of a ring in one direction: as far as there is work.
static int64_t shiftsOf(tx::AttentionOp op, int64_t ranks) {
  int64_t s = op.getQ().getType().getDimSize(1), t = op.getK().getType().getDimSize(1);
  tx::OtherMask mask{op.getCausal(), static_cast<int64_t>(op.getWindow().value_or(0))};
  return std::max(tx::stepsWithWork({s, ranks}, {t, ranks}, mask, op.getBlocksAttr()).find_last(),
                  0);
}

double ContextBytes::ofRing(tx::AttentionOp op) const {
  RankedTensorType type = op.getK().getType();
  double keys = double(type.getDimSize(2)) * type.getDimSize(1);
  double gradients =
      2 * std::max(1.0, 32.0 / type.getElementTypeBitWidth());      // of K and V, in float32
  return double(shiftsOf(op, axes.ranks)) * (4 + gradients) * keys; // K and V twice
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
  return double(type.getNumElements()) / double(keys.getDimSize(0) * keys.getDimSize(3)) *
         type.getElementTypeBitWidth() / keys.getElementTypeBitWidth();
}

double ContextBytes::ofExchange(tx::AttentionOp op, int64_t others,
                                const DataIndependence &independent) const {
  double queries = double(op.getQ().getType().getDimSize(2)) * op.getQ().getType().getDimSize(1);
  int64_t heads = op.getK().getType().getDimSize(2), length = op.getK().getType().getDimSize(1);
  // A single key head is gathered, twice, and its gradient is scattered; others are exchanged.
  double keys = hasOneKeyHead(op) ? 6.0 * double(axes.ranks * length)
                                  : 4.0 * double(std::lcm(heads, axes.ranks * others) * length);
  return double(axes.ranks - 1) / double(axes.ranks) * (4 * queries + keys) +
         double(axes.ranks - 1) * gatheredBias(op, independent);
}
