// Sums over ranks that send a sign per element and a scale per tensor: those of 1-bit Adam (Tang et al.,
// arXiv 2102.02888), 1-bit LAMB (Li et al., arXiv 2104.06069) and 0/1 Adam (Lu et al., arXiv 2202.06009), with
// errors that workers and servers feed back.
//
// A tensor of n elements has a chunk of ceil(n / ranks) elements per rank, its server, in memory
// order; the last chunks are shorter or empty, and nothing is padded with elements. What a rank
// sends to a server is a block: a scale per tensor, then each tensor's chunk as bits, from a whole
// byte on. What a server sends to everyone is a block of the same form, so that both phases, an
// all-to-all and an all-gather, move the same number of bytes.
//
// A tensor may itself end in padding, as a shard of 33 rows that has 32 does. Its chunks and bits stay where they
// are; no scale counts its padding, whose sum is 0.

#ifndef PARTITA_RT_ONE_BIT_H
#define PARTITA_RT_ONE_BIT_H

#include "partita_rt/clip_factors.h"
#include "partita_rt/comm.h"
#include "partita_rt/exact_steps.h"
#include "partita_rt/one_bit_shapes.h"

#include <cstddef>

namespace partita_rt {

/// One tensor of a compressed sum.
struct OneBitTensor {
  float *values; ///< this rank's term of the sum; becomes the sum
  float *worker; ///< as many: what this rank's compression has left out so far
  float *server; ///< oneBitChunk: what the compression of this rank's chunk has left out
  int64_t count;
  /// As many are no padding (oneBitValid), the same on all ranks. The rest stays 0, errors too.
  int64_t valid = count;
};
using OneBitTensors = std::initializer_list<OneBitTensor>;

inline int64_t oneBitScratch(OneBitTensors tensors, int ranks) {
  int64_t block = 0;
  for (const OneBitTensor &each : tensors)
    block += oneBitBytes(each.count, ranks);
  return oneBitScratch(block, ranks);
}

/// What a rank adds to its ranks' sum of the tensor's new momentum, from its term g of a gradient's sum and the momentum m of all
/// ranks: x = m / ranks + (1 - beta) (scale g - m / ranks), or g while the sum is exact. x may be g.
void oneBitTerm(float *x, const float *g, const float *m, int64_t n, int ranks, double beta,
                float scale, bool exact);

/// The new momentum m of all ranks, from the sum of their terms: m + (1 - beta) (scale sum - m), or the sum if it is no longer exact.
void oneBitMean(float *m, const float *sum, int64_t n, double beta, float scale, bool exact);

/// The factors of step `t` (clip_factors.h), of which `typical` is kept for the next one.
inline void oneBitClip(float *ofSums, float *ofGradients, float *typical, float factor, float t,
                       double beta, ExactSteps exact) {
  writeClipFactors(ofSums, ofGradients, typical, factor, t, beta, exact);
}

/// Sums the tensors over the ranks of a group. All ranks pass the same `compresses`. Without it the
/// sum is allReduce's, bit for bit, and the errors stay; with it, of x_r being a rank's values plus
/// its worker's error, and s(x) = |x| / sqrt(n), the scale of a tensor or chunk of n elements
/// that are no padding (0 if there are none):
///
///     worker = x_r - s(x_r) sign(x_r);  y = sum over ranks of s(x_r) sign(x_r), plus the server's error
///     server = y - s(y) sign(y);        values = s(y) sign(y)
///
/// The sign of 0 is +1; ranks are added in their order. If any rank's scale of any tensor is
/// infinite or not a number, all values become NaN on all ranks, and all errors stay; if a server's sum
/// is beyond float32, its chunk of the tensor is infinite on all ranks, and its error stays. No program
/// skips such a step: parameters become NaN, and the next loss ends the run. One rank alone compresses
/// nothing. Padding is 0 after all compressed sums, and its errors stay.
void oneBitAllReduce(Communicator &group, OneBitTensors tensors, bool compresses, void *scratch,
                     const char *why);

} // namespace partita_rt

#endif // PARTITA_RT_ONE_BIT_H
