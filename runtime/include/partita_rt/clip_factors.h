// By what gradients are multiplied where some steps sum momenta in place of gradients (one_bit.h) and `--clip` is given, for the interpreter and for
// kernels.

#ifndef PARTITA_RT_CLIP_FACTORS_H
#define PARTITA_RT_CLIP_FACTORS_H

#include "exact_steps.h"

#include <cmath>

namespace partita_rt {

struct ClipFactors {
  double
      ofSums; ///< of what a compressed sum yields: the factor that clips in exact steps; 1 in all others, whose sums are of scaled terms
  double
      ofGradients; ///< of a gradient: in all other steps, in which nobody knows the norm of the gradients' sum, `typical`
  double
      typical; ///< the root of the factor's mean square in the exact steps so far; 1 before the first
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

} // namespace partita_rt

#endif // PARTITA_RT_CLIP_FACTORS_H
