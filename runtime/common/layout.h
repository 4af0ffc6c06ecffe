// Where a rank's piece of a tensor lies in the whole.

#ifndef PARTITA_RT_COMMON_LAYOUT_H
#define PARTITA_RT_COMMON_LAYOUT_H

#include "partita_rt/program.h"

namespace partita_rt {

/// First index of the piece along each dimension.
inline Shape pieceStart(const Program &program, const int *coordinates, const Shape &global,
                        const Splits &splits) {
  Shape start, size = global;
  start.rank = global.rank;
  for (const Split &split : splits) {
    size.dims[split.dim] /= program.mesh[split.axis].size;
    start.dims[split.dim] += coordinates[split.axis] * size.dims[split.dim];
  }
  return start;
}

/// Calls visit(globalIndex, localIndex, n) for the runs of n elements that are contiguous in both
/// the whole and the piece, in the piece's order.
template <typename Visit>
void forRuns(const Shape &global, const Shape &local, const Shape &start, Visit visit) {
  // Trailing dimensions that the piece holds whole form one run with the dimension before them.
  int last = global.rank;
  int64_t run = 1;
  while (last > 0) {
    --last;
    run *= local[last];
    if (local[last] != global[last])
      break;
  }
  if (global.rank == 0 || local.elements() == 0) {
    if (global.rank == 0)
      visit(0, 0, 1);
    return;
  }
  int64_t runs = local.elements() / run;
  for (int64_t r = 0; r < runs; ++r) {
    int64_t rest = r, stride = 1, index = 0;
    for (int d = global.rank - 1; d >= 0; --d) {
      int64_t at = start[d];
      if (d < last) {
        at += rest % local[d];
        rest /= local[d];
      }
      index += at * stride;
      stride *= global[d];
    }
    visit(index, r * run, run);
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_LAYOUT_H
