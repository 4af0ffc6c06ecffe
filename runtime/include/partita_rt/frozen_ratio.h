// The ratio by which 1-bit LAMB (Li et al., arXiv 2104.06069) scales a parameter's update, and the two numbers that it keeps of each parameter, for the
// interpreter and for kernels.

#ifndef PARTITA_RT_FROZEN_RATIO_H
#define PARTITA_RT_FROZEN_RATIO_H

#include "host_device.h"

#include <cmath>

namespace partita_rt {

struct FrozenRatioOptions {
  double freeze;               ///< the last step of the warm-up
  double least, most;          ///< bounds of LAMB's ratio
  double keep;                 ///< of the running mean of the warm-up's ratios
  double factorMin, factorMax; ///< bounds of the factor after the warm-up
  double threshold;            ///< by what share of itself the factor may change in a step
};

struct FrozenRatio {
  double ratio;
  double coefficient; ///< the running mean of the warm-up's ratios; 0 before the first
  double factor;      ///< of the step
};

/// Returns the ratio of step `t` and what is kept, from what was kept. `squares` are the sums of squares of the parameter, of its update, and of the update
/// without decay; `largest` is the largest ratio of an element's frozen denominator to its fresh one, 0 if no element has any.
///
/// In the warm-up the ratio is LAMB's: the parameter's norm over that of the update, within bounds; 1 if one of them is 0, which the mean leaves out.
/// Afterwards it is the mean times a factor; without a mean, as of a parameter that was 0 all the time, the factor. Of numbers that are not finite nothing
/// is kept.
PARTITA_RT_HOST_DEVICE inline FrozenRatio frozenRatioOf(const double *squares, double largest,
                                                        double t, double coefficient, double factor,
                                                        const FrozenRatioOptions &options) {
  auto within = [](double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
  };
  if (!(squares[0] + squares[1] + squares[2] + largest < HUGE_VAL))
    return {1, coefficient, factor};
  double value = std::sqrt(squares[0]), update = std::sqrt(squares[1]);
  if (t <= options.freeze) {
    if (!(value > 0 && update > 0))
      return {1, coefficient, factor};
    double ratio = within(value / update, options.least, options.most);
    return {ratio, options.keep * coefficient + (1 - options.keep) * ratio, factor};
  }
  double share = update > 0 ? within(std::sqrt(squares[2]) / update, 0, 1) : 1;
  double next = (largest > 0 ? largest : 1) * share + 1 - share;
  next = within(next, options.factorMin, options.factorMax);
  next = within(next, factor * (1 - options.threshold), factor * (1 + options.threshold));
  return {(coefficient > 0 ? coefficient : 1) * next, coefficient, next};
}

} // namespace partita_rt

#endif // PARTITA_RT_FROZEN_RATIO_H
