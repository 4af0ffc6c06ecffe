// Sums in rank order, for all transports of the CPU, and the ranks' shares of them.

#ifndef PARTITA_RT_CPU_RANK_ORDER_H
#define PARTITA_RT_CPU_RANK_ORDER_H

#include "partita_rt/comm.h"

namespace partita_rt {

/// out[i] = sources[0][i] op sources[1][i] op ... in rank order; out may be one of the sources.
/// `count` in elements.
void reduceInRankOrder(char *out, const char *const *sources, int ranks, int64_t count, DType dtype,
                       Reduce reduce);

/// The elements [begin, end) of share number `part` if n elements are divided among `parts`, in
/// multiples of 16 elements (a cache line of float32) if possible.
struct Range {
  int64_t begin, end;
};
Range shareOf(int64_t n, int part, int parts);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_RANK_ORDER_H
