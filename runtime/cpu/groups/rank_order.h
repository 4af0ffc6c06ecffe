// Sums in rank order, for all transports of the CPU. Ranks' shares of them: node_traffic.h.

#ifndef PARTITA_RT_CPU_GROUPS_RANK_ORDER_H
#define PARTITA_RT_CPU_GROUPS_RANK_ORDER_H

#include "partita_rt/comm.h"
#include "partita_rt/node_traffic.h"

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
} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_RANK_ORDER_H
