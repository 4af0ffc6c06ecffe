// Sums in rank order, for all transports of the CPU, and the ranks' shares of them.

#ifndef PARTITA_RT_CPU_GROUPS_RANK_ORDER_H
#define PARTITA_RT_CPU_GROUPS_RANK_ORDER_H

#include "partita_rt/comm.h"

namespace partita_rt {

/// out[i] = sources[0][i] op sources[1][i] op ... in rank order; out may be one of the sources.
/// `count` in elements.
void reduceInRankOrder(char *out, const char *const *sources, int ranks, int64_t count, DType dtype,
                       Reduce reduce);

/// The same in parts, for sources that are not in one place: the sums so far are in the type of
/// additions, float for 16-bit elements, and are rounded once at the end. `begins`: there are none yet.
void addInRankOrder(char *sums, bool begins, const char *const *sources, int ranks, int64_t count,
                    DType dtype, Reduce reduce);
void roundSums(char *out, const char *sums, int64_t count, DType dtype);
/// Bytes of such a sum.
int64_t sumWidth(DType dtype);

/// The elements [begin, end) of share number `part` if n elements are divided among `parts`, in
/// multiples of 16 elements (a cache line of float32) if possible.
struct Range {
  int64_t begin, end;
};
Range shareOf(int64_t n, int part, int parts);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_RANK_ORDER_H
