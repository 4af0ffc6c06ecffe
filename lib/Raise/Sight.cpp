//===- Sight.cpp - see Sight.h ----------------------------------------------------------------===//

#include "lib/Raise/Sight.h"
#include "partita/Support/HiddenScores.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

/// Elements of a bias in which a later key is looked for: all queries of short sequences, some of long ones.
constexpr int64_t mostElements = int64_t(1) << 20;

bool Sight::isShown(int64_t i, int64_t j) const {
  tx::AttentionOp attention = op;
  int64_t last =
      i + attention.getK().getType().getDimSize(1) - attention.getQ().getType().getDimSize(1);
  return (!attention.getCausal() || j <= last) &&
         (!attention.getWindow() || j > last - static_cast<int64_t>(*attention.getWindow()));
}

SmallVector<int64_t> Sight::indexOf(int64_t sample, int64_t head, int64_t i) {
  ArrayRef<int64_t> shape = bias.getType().getShape();
  return {shape[0] == 1 ? 0 : sample, shape[1] == 1 ? 0 : head, shape[2] == 1 ? 0 : i};
}

std::optional<double> Sight::element(int64_t sample, int64_t head, int64_t i, int64_t j) {
  SmallVector<int64_t> index = indexOf(sample, head, i);
  index.push_back(bias.getType().getDimSize(3) == 1 ? 0 : j);
  return evaluator.element(bias, index);
}

std::optional<std::vector<double>> Sight::row(int64_t sample, int64_t head, int64_t i) {
  std::optional<Row> row = evaluator.row(bias, indexOf(sample, head, i));
  if (!row)
    return std::nullopt;
  std::vector<double> numbers = row->elements();
  if (numbers.size() == 1)
    numbers.assign(op.getK().getType().getDimSize(1), numbers[0]);
  return numbers;
}

bool Sight::assumeInputs(double number) {
  SmallVector<Value> pending{bias};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op) {
      evaluator.assume(value, number);
    } else if (isa<ScalarInterface, tx::ConstantOp, tx::IotaOp, tx::CastOp, tx::BroadcastOp,
                   tx::ReshapeOp, tx::TransposeOp, tx::SliceOp, tx::EmbeddingOp>(op)) {
      llvm::append_range(pending, op->getOperands());
    } else {
      if (!isa<FloatType>(getElementTypeOrSelf(value.getType())))
        return false;
      evaluator.assume(value, 0.0);
    }
  }
  return true;
}

/// Does the bias show a query a later key, if every element of the inputs is `number`?
static bool seesLaterKeysWith(tx::AttentionOp op, double number) {
  Sight sight(op);
  if (!sight.assumeInputs(number))
    return false;
  int64_t queries = op.getQ().getType().getDimSize(1), keys = op.getK().getType().getDimSize(1),
          heads = sight.heads(),
          step = std::max<int64_t>(1, queries * heads / std::max<int64_t>(1, mostElements / keys));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < queries; i += step) {
      std::optional<std::vector<double>> numbers = sight.row(0, head, i);
      if (!numbers)
        return false;
      for (int64_t j = i + keys - queries + 1; j < keys; ++j)
        if (j >= 0 && !((*numbers)[j] < kHiddenBelow) && sight.isShown(i, j))
          return true;
    }
  return false;
}

bool raise::seesLaterKeys(tx::AttentionOp op) {
  if (op.getCausal() || !op.getBias())
    return !op.getCausal();
  // Masks have ones for what is seen, or for what is hidden.
  return seesLaterKeysWith(op, 1) || seesLaterKeysWith(op, 0);
}
