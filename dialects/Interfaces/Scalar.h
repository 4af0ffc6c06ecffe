//===- Scalar.h - the functions in scalar expressions -------------------------------*- C++ -*-===//
//
// The interpreter evaluates the expressions of the op tables (elementwise ops, optimizers) with
// these functions. The runtime has the same functions in float32 (partita_rt/math.h), vectorized,
// under the names in lib/Lower/Kernels/ScalarText.cpp.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_INTERFACES_SCALAR_H
#define PARTITA_DIALECTS_INTERFACES_SCALAR_H

#include "runtime/include/partita_rt/exact_steps.h"
#include <algorithm>
#include <cmath>

namespace partita::scalar {
using std::abs, std::ceil, std::cos, std::erf, std::exp, std::floor, std::log, std::pow, std::sin,
    std::sqrt, std::tanh;
inline double select(bool c, double a, double b) { return c ? a : b; }
inline double max(double a, double b) { return a > b || a != a ? a : b; }
inline double min(double a, double b) { return a < b || a != a ? a : b; }
/// Returns the nearest integer; halves round to even.
inline double round(double x) { return std::nearbyint(x); }
inline double quotient(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }
inline double modulo(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }
inline double rest(double a, double b) { return std::fmod(a, b); }
/// Returns a / (1 + e), e >= 0, which GPUs compute without a division.
inline double over_one_plus(double a, double e) { return a / (1.0 + e); }
/// Returns tanh(x), of which float32 programs need a small absolute error.
inline double near_tanh(double x) { return std::tanh(x); }
/// Returns the derivative of gelu_tanh at x, given t = tanh(0.7978845608 (x + 0.044715 x^3)).
inline double gelu_tanh_slope(double x, double t) {
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.7978845608028654 * (1.0 + 0.134145 * x * x);
}
/// Returns the derivative of x s at x, given s = sigmoid(x).
inline double silu_slope(double x, double s) { return s * (1.0 + x * (1.0 - s)); }
/// Returns the smallest power of two from 2^-50 to 2^60 that is not below max / 1.75, times `unit`;
/// `initial` if max is 0.
inline double fp8_scale(double max, double unit, double initial) {
  int exponent = 0;
  bool isAbove = 2 * std::frexp(max, &exponent) > 1.75;
  exponent += isAbove ? 0 : -1;
  return max == 0 ? initial : std::ldexp(unit, std::min(std::max(exponent, -50), 60));
}
/// Is step `step` of training one that sums exactly (partita_rt/exact_steps.h)?
inline bool exact_step(double step, double until, double doubling) {
  return partita_rt::ExactSteps{static_cast<int64_t>(until), static_cast<int64_t>(doubling)}
      .contains(static_cast<int64_t>(step));
}
/// The number of these steps up to this one.
inline double exact_steps(double until, double doubling) {
  return static_cast<double>(
      partita_rt::ExactSteps{static_cast<int64_t>(until), static_cast<int64_t>(doubling)}.count());
}
} // namespace partita::scalar

#endif // PARTITA_DIALECTS_INTERFACES_SCALAR_H
