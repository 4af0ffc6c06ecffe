// Dropout with counter-based random numbers.

#include "partita_rt/init.h"
#include "partita_rt/kernels.h"

#include "cpu/kernels/drops.h"
#include "cpu/kernels/storage.h"

namespace partita_rt {

uint64_t stepKey(uint64_t seed, int64_t step) { return keyOfStep(seed, step); }

template <typename T>
void dropout(T *y, const T *x, const Shape &shape, const Shape &full, const Dropout &dropout,
             int64_t first) {
  Drops drops(dropout.ratio, uint64_t(dropout.key), dropout.id);
  float scale = float(1.0 / (1.0 - dropout.ratio));
  // Numbers are consecutive from the outermost of the trailing dimensions that may be cut.
  int outer = shape.rank;
  int64_t run = 1, strides[kMaxDims] = {}, index[kMaxDims] = {};
  for (bool same = true; same && outer > 0;) {
    --outer;
    run *= shape[outer];
    same = shape[outer] == full[outer];
  }
  int64_t stride = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= full[d];
  }
  int64_t number = first;
  for (int64_t done = 0, all = shape.elements(); done < all; done += run) {
    const T *from = x + done;
    T *to = y + done;
    forDropped(drops, number, run,
               [&](int64_t i, bool dropped) { to[i] = dropped ? 0.0f : from[i] * scale; });
    for (int d = outer - 1; d >= 0; --d) {
      number += strides[d];
      if (++index[d] < shape[d])
        break;
      number -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

#define DROPOUT(T)                                                                                 \
  template void dropout(T *, const T *, const Shape &, const Shape &, const Dropout &, int64_t);
FOR_STORAGE(DROPOUT)
#undef DROPOUT

} // namespace partita_rt
