// What a query's scores are counted from. Kernels, forward and backward, whole or in steps, and the compiler's
// interpreter, which includes this header, agree on it: logSumExp is relative to it.

#ifndef PARTITA_RT_ATTENTION_BASE_H
#define PARTITA_RT_ATTENTION_BASE_H

#include "host_device.h"

namespace partita_rt {

/// A query that sees a key whose bias is not below this has the base zero.
constexpr double kLowBias = -64.0;

/// Returns the base of a query, given the largest bias of the keys that it sees, of the full sequence, whatever part
/// of them a call has. The logarithm of a softmax's denominator is stored for the backward pass, and from one step
/// of a ring to the next. Where a mask hides all keys by a finite number (the lowest float, -1e9), that number
/// would absorb it, and with it how many keys there were: so
///
///     score = (scale * q.k + bias) - base;    logSumExp = log(sum of exp(score))
///
/// Scores are rounded as without a base: what is subtracted from their sum with the bias changes no softmax. Where the
/// bias of all keys is -inf, the base is zero.
template <typename Real> PARTITA_RT_HOST_DEVICE inline Real baseOf(Real largestBias) {
  bool finite = largestBias - largestBias == Real(0);
  return finite && largestBias < Real(kLowBias) ? largestBias : Real(0);
}

} // namespace partita_rt

#endif // PARTITA_RT_ATTENTION_BASE_H
