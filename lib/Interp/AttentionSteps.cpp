//===- AttentionSteps.cpp - kernels of the steps of a ring --------------------------------------===//
//
// A backward step trusts `lse` and `out` of all steps, since it has but one rank's keys.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "lib/Interp/AttentionMath.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;
using namespace partita::interp::attention;

/// Where a step's operand stands; -1 if there is none.
static int indexOf(Operation *op, Value operand) {
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (operand && value == operand)
      return static_cast<int>(i);
  return -1;
}

template <typename Op> static Positions positionsOf(Op op, Inputs in) {
  Positions at;
  at.queries = Positions::runs(*in[indexOf(op, op.getFirstQuery())], in[0]->shape[1]);
  at.keys = Positions::runs(*in[indexOf(op, op.getFirstKey())], in[1]->shape[1]);
  at.s = par::Layout::of(op.getQ().getType()).shape[1];
  at.t = par::Layout::of(op.getK().getType()).shape[1];
  return at;
}

static LogicalResult attentionStep(tx::AttentionStepOp op, Inputs in, Outputs out) {
  Extras extras(op, in);
  Positions at = positionsOf(op, in);
  int before = indexOf(op, op.getOutBefore()), lseBefore = indexOf(op, op.getLseBefore());
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Scores scores = scoresOf(op, *in[0], *in[1], extras, at, b, h);
      Matrix &p = scores.values, kept = factors(op, extras, at, b, h, heads);
      Matrix sum = before < 0 ? Matrix(s, out[0].shape[3]) : headOf(*in[before], b, h);
      for (int64_t i = 0; i < p.rows; ++i) {
        int64_t row = (b * heads + h) * s + i;
        double old = lseBefore < 0 ? -INFINITY : in[lseBefore]->reals[row];
        double largest = std::max(old, scores.largest(i)), total = 0;
        if (largest != -INFINITY) {
          total = old == -INFINITY ? 0 : std::exp(old - largest);
          for (int64_t j = 0; j < p.columns; ++j)
            if (scores.sees(i, j))
              total += std::exp(p.at(i, j) - largest);
        }
        double lse = largest != -INFINITY                  ? largest + std::log(total)
                     : op.getBias() && !op.getZeroHidden() ? NAN
                                                           : -INFINITY;
        for (int64_t j = 0; j < p.columns; ++j)
          p.at(i, j) = scores.sees(i, j) && lse != -INFINITY
                           ? std::exp(p.at(i, j) - lse) * kept.at(i, j)
                           : 0;
        for (int64_t d = 0; d < sum.columns; ++d)
          if (std::isnan(lse))
            sum.at(i, d) = NAN; // as the softmax of no score
          else
            sum.at(i, d) *= old == -INFINITY ? 0 : std::exp(old - lse);
        out[1].reals[row] = lse;
      }
      addHead(out[0], b, h, sum);
      addHead(out[0], b, h, p * headOf(*in[2], b, keyHead(*in[0], *in[1], h)));
    }
  return success();
}

/// From lse and out of all steps: P = exp(score - lse), and the sum of dout out.
static LogicalResult attentionStepGrad(tx::AttentionStepGradOp op, Inputs in, Outputs out) {
  Extras extras(op, in);
  Positions at = positionsOf(op, in);
  int64_t heads = in[0]->shape[2], s = in[0]->shape[1];
  if (op.getDqBefore())
    out[0].add(*in[6]);
  for (int64_t b = 0; b < in[0]->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      Scores scores = scoresOf(op, *in[0], *in[1], extras, at, b, h);
      Matrix &p = scores.values;
      for (int64_t i = 0; i < p.rows; ++i)
        for (int64_t j = 0; j < p.columns; ++j) {
          double lse = in[4]->reals[(b * heads + h) * s + i];
          p.at(i, j) = scores.sees(i, j) && lse != -INFINITY ? std::exp(p.at(i, j) - lse) : 0;
        }
      Matrix result = headOf(*in[3], b, h), dout = headOf(*in[5], b, h);
      auto rowSum = [&](int64_t i, const Matrix &) { return rowDot(result, dout, i); };
      addGradients(op, in, *in[5], out, extras, at, b, h, p, factors(op, extras, at, b, h, heads),
                   rowSum);
    }
  return success();
}

void partita::interp::addAttentionStepKernels(KernelTable &table) {
  table.add<tx::AttentionStepOp>(attentionStep);
  table.add<tx::AttentionStepGradOp>(attentionStepGrad);
}
