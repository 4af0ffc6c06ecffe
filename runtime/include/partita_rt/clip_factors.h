// By what gradients are multiplied where some steps sum momenta in place of gradients (one_bit.h) and `--clip` is given, for the interpreter and for
// kernels.

#ifndef PARTITA_RT_CLIP_FACTORS_H
#define PARTITA_RT_CLIP_FACTORS_H

#include "exact_steps.h"

#include <cmath>

namespace partita_rt {

struct ClipFactors {
  /// Of what a compressed sum yields: the factor that clips in exact steps; 1 in all others, whose sums are of scaled terms.
  double ofSums;
  /// Of a gradient: the same in exact steps; `typical` in all others, in which nobody knows the norm of the gradients' sum.
  double ofGradients;
  /// The root of the factor's mean square in the exact steps so far; 1 before the first.
  double typical;
};

/// Returns the factors of step `t` from the factor that clips its gradients, and what was typical before. The mean is the variance's, which keeps `beta`
/// of itself in a step: so it is of the factors that the variance's gradients had. It is divided by the sum of its weights, in a form in which the
/// mean of equal factors is that factor to the bit.
PARTITA_RT_HOST_DEVICE inline ClipFactors clipFactorsOf(double factor, double typical, double t,
                                                        double beta, const ExactSteps &exact) {
  if (!exact.contains(int64_t(t)))
    return {1, typical, typical};
  double steps = double(exact.countUntil(int64_t(t))),
         weight = (1 - beta) / (1 - std::pow(beta, steps)), square = typical * typical;
  return {factor, factor, std::sqrt(square + weight * (factor * factor - square))};
}

/// What kernels do: writes the factors of step `t`; `typical` is kept for the next one.
PARTITA_RT_HOST_DEVICE inline void writeClipFactors(float *ofSums, float *ofGradients,
                                                    float *typical, float factor, float t,
                                                    double beta, const ExactSteps &exact) {
  ClipFactors next = clipFactorsOf(double(factor), double(*typical), double(t), beta, exact);
  *ofSums = float(next.ofSums);
  *ofGradients = float(next.ofGradients);
  *typical = float(next.typical);
}

} // namespace partita_rt

#endif // PARTITA_RT_CLIP_FACTORS_H
