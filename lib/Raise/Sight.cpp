//===- Sight.cpp - see Sight.h ----------------------------------------------------------------===//

#include "lib/Raise/Sight.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

bool Sight::isShown(int64_t i, int64_t j) const {
  tx::AttentionOp attention = op;
  int64_t last =
      i + attention.getK().getType().getDimSize(1) - attention.getQ().getType().getDimSize(1);
  return (!attention.getCausal() || j <= last) &&
         (!attention.getWindow() || j > last - static_cast<int64_t>(*attention.getWindow()));
}

std::optional<std::vector<double>> Sight::row(int64_t sample, int64_t head, int64_t i) {
  ArrayRef<int64_t> shape = bias.getType().getShape();
  std::optional<Row> row = evaluator.row(
      bias, {shape[0] == 1 ? 0 : sample, shape[1] == 1 ? 0 : head, shape[2] == 1 ? 0 : i});
  if (!row)
    return std::nullopt;
  std::vector<double> numbers = row->elements();
  if (numbers.size() == 1)
    numbers.assign(op.getK().getType().getDimSize(1), numbers[0]);
  return numbers;
}
