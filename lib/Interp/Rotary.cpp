//===- Rotary.cpp - kernels of rotary position embedding -----------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static LogicalResult rotateHalf(tx::RotateHalfOp op, Inputs in, Outputs out) {
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row)
    for (int64_t i = 0; i < n / 2; ++i) {
      int64_t a = row * n + (op.getInterleaved() ? 2 * i : i),
              b = row * n + (op.getInterleaved() ? 2 * i + 1 : i + n / 2);
      out[0].reals[a] = -in[0]->reals[b];
      out[0].reals[b] = in[0]->reals[a];
    }
  return success();
}

/// x cos + R x sin, or with `back` x cos + R^T (x sin): R has row a -> -b, b -> a.
static LogicalResult rotary(tx::RotaryOp op, Inputs in, Outputs out) {
  const auto &x = in[0]->reals, &cos = in[1]->reals, &sin = in[2]->reals;
  int64_t n = in[0]->dim(-1);
  for (int64_t row = 0; row < in[0]->leading(1); ++row)
    for (int64_t i = 0; i < n / 2; ++i) {
      int64_t a = row * n + (op.getInterleaved() ? 2 * i : i),
              b = row * n + (op.getInterleaved() ? 2 * i + 1 : i + n / 2);
      bool back = op.getBack();
      out[0].reals[a] = x[a] * cos[a] + (back ? x[b] * sin[b] : -x[b] * sin[a]);
      out[0].reals[b] = x[b] * cos[b] + (back ? -x[a] * sin[a] : x[a] * sin[b]);
    }
  return success();
}

void partita::interp::addRotaryKernels(KernelTable &table) {
  table.add<tx::RotateHalfOp>(rotateHalf);
  table.add<tx::RotaryOp>(rotary);
}
