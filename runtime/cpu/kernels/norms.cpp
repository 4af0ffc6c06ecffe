// The norm of all gradients, and its uses: clipping, the loss scale (kernels.h).

#include "partita_rt/kernels.h"
#include "partita_rt/program.h"

#include <algorithm>
#include <cmath>

namespace partita_rt {

void squareSum(double *sums, const Elements *arrays, size_t count) {
  for (const Elements *at = arrays; at != arrays + count; ++at) {
    const Elements &array = *at;
    *sums++ = array.dtype == DType::Float16
                  ? sumOfSquares(static_cast<const Half *>(array.data), array.count)
              : array.dtype == DType::BFloat16
                  ? sumOfSquares(static_cast<const BFloat16 *>(array.data), array.count)
                  : sumOfSquares(static_cast<const float *>(array.data), array.count);
  }
}

void rootOfSum(float *norm, std::initializer_list<Squares> squares) {
  double total = 0;
  for (const Squares &each : squares)
    for (int64_t i = 0; i < each.count; ++i)
      total += each.sums[i];
  *norm = float(std::sqrt(total));
}

void firstNonfinite(Rank &rank, const Squares *squares, size_t count, const int *parameters) {
  int first = -1;
  for (const Squares *each = squares; each != squares + count; ++each)
    for (int64_t i = 0; i < each->count; ++i, ++parameters)
      if (!std::isfinite(each->sums[i]) && (first < 0 || *parameters < first))
        first = *parameters;
  rank.report.firstNonfinite = first;
}

void trustRatio(float *ratio, const double *squares, double least, double most) {
  double value = std::sqrt(squares[0]), direction = std::sqrt(squares[1]);
  bool both = value > 0 && direction > 0;
  *ratio = both ? float(std::min(std::max(value / direction, least), most)) : 1.0f;
}

void frozenRatio(float *ratio, float *coefficient, float *factor, const double *squares,
                 const double *largest, const float *t, const float *apply,
                 const FrozenRatioOptions &options) {
  FrozenRatio next =
      frozenRatioOf(squares, *largest, double(*t), double(*coefficient), double(*factor), options);
  *ratio = float(next.ratio);
  if (apply && *apply == 0)
    return;
  *coefficient = float(next.coefficient);
  *factor = float(next.factor);
}

void clipScale(float *scale, const float *norm, double maxNorm) {
  double length = double(*norm);
  if (!(length < double(INFINITY)))
    *scale = NAN;
  else
    *scale = maxNorm > 0 ? float(1.0 / std::max(1.0, (length + 1e-6) / maxNorm)) : 1.0f;
}

void allFinite(float *finite, const float *norm) { *finite = std::isfinite(*norm) ? 1.0f : 0.0f; }

void updateScale(Rank &rank, float *scale, int64_t *steps, int64_t *lastOverflow,
                 int64_t *hysteresis, int64_t *skipped, const float *finite,
                 const LossScalerOptions &options) {
  bool overflow = *finite == 0;
  LossScalerResult next =
      updateLossScale({double(*scale), *steps, *lastOverflow, *hysteresis}, options, overflow);
  rank.report.lossScale = *scale;
  rank.report.scaleExhausted = next.stop;
  *scale = float(std::min(next.state.scale, 0x1p127)); // twice as much overflows float
  *steps = next.state.step;
  *lastOverflow = next.state.lastOverflow;
  *hysteresis = next.state.hysteresis;
  *skipped += overflow ? 1 : 0;
  rank.report.skippedSteps = *skipped;
}

} // namespace partita_rt
