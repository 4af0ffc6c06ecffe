//===- Dropout.cpp - kernel of tx.dropout -----------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"
#include "partita/Interp/Random.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// Without a key all elements stay. The number of an element is its row-major index in the whole
/// tensor, of which this may be a shard that starts at `first`.
static LogicalResult dropout(tx::DropoutOp op, Inputs in, Outputs out) {
  out[0].reals = in[0]->reals;
  if (!op.getKey())
    return success();
  double ratio = op.getRatio().convertToDouble();
  SmallVector<int64_t> full(in[0]->shape);
  if (op.getFullShape())
    full.assign(op.getFullShape()->begin(), op.getFullShape()->end());
  int64_t elements = 1;
  for (int64_t size : full)
    elements *= size;
  auto key = static_cast<uint64_t>(in[1]->ints[0]);
  int64_t first = in[2]->ints[0] * elements + (op.getFirst() ? in[3]->ints[0] : 0);
  walk(in[0]->shape, rowMajorStrides(full), first, [&](int64_t i, int64_t number) {
    bool dropped = isDropped(key, static_cast<int64_t>(op.getId()), number, ratio);
    out[0].reals[i] = dropped ? 0 : in[0]->reals[i] / (1 - ratio);
  });
  return success();
}

void partita::interp::addDropoutKernels(KernelTable &table) { table.add<tx::DropoutOp>(dropout); }
