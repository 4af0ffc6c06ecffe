// The norm of all gradients, and what follows from it (kernels.h).

#include "partita_rt/kernels.h"

#include <algorithm>
#include <cmath>

namespace partita_rt {

void squareSum(double *sum, std::initializer_list<Elements> arrays) {
  double total = 0;
  for (const Elements &array : arrays)
    total += sumOfSquares(array.data, array.count);
  *sum = total;
}

void rootOfSum(float *norm, std::initializer_list<const double *> squares) {
  double total = 0;
  for (const double *square : squares)
    total += *square;
  *norm = float(std::sqrt(total));
}

void trustRatio(float *ratio, const double *squares, double least, double most) {
  double value = std::sqrt(squares[0]), direction = std::sqrt(squares[1]);
  bool both = value > 0 && direction > 0;
  *ratio = both ? float(std::min(std::max(value / direction, least), most)) : 1.0f;
}

void clipScale(float *scale, const float *norm, double maxNorm) {
  double length = double(*norm);
  if (!(length < double(INFINITY)))
    *scale = NAN;
  else
    *scale = maxNorm > 0 ? float(1.0 / std::max(1.0, (length + 1e-6) / maxNorm)) : 1.0f;
}

} // namespace partita_rt
