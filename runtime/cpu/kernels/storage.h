// Kernels over several storage types: the instantiated ones, and sums that are added to a 16-bit
// result only once.

#ifndef PARTITA_RT_CPU_KERNELS_STORAGE_H
#define PARTITA_RT_CPU_KERNELS_STORAGE_H

#include "cpu/kernels/vector.h"
#include "partita_rt/kernels.h"

#include <algorithm>

/// FOR_STORAGE(F): F(T) for each type that activations are stored in.
#define FOR_STORAGE(F) F(float) F(Half) F(BFloat16)
/// FOR_RESULTS(F): F(Y, X) for results in their operands' type and for float results.
#define FOR_RESULTS(F)                                                                             \
  F(float, float) F(float, Half) F(Half, Half) F(float, BFloat16) F(BFloat16, BFloat16)

namespace partita_rt {

template <typename T> constexpr bool kIsFloat = std::is_same_v<T, float>;

/// Elements of a result held in float at a time, on the stack: a multiple of all unrolling factors.
constexpr int64_t kChunk = 1024;

/// Calls `body(sums, first, n)` to compute elements [first, first + n) of y in float: a float y in
/// place and at once, a 16-bit y in chunks, each rounded when it is complete. `reads`: the body
/// adds to the previous value of y.
template <typename Y, typename Body>
inline void throughFloat(Y *y, int64_t n, bool reads, Body body) {
  if constexpr (kIsFloat<Y>) {
    body(y, int64_t{0}, n);
  } else {
    alignas(64) float sums[kChunk];
    for (int64_t first = 0; first < n; first += kChunk) {
      int64_t count = std::min(kChunk, n - first);
      if (reads)
        convertArray(sums, y + first, count);
      body(sums, first, count);
      convertArray(y + first, sums, count);
    }
  }
}

/// Calls body(pointer) with a pointer to float or to T, whichever it is.
template <typename T, typename Body> inline void withType(T *pointer, Body body) { body(pointer); }
template <typename T, typename Body>
inline void withType(const FloatOrPointer<T> &pointer, Body body) {
  pointer.isFloat ? body(pointer.asFloat()) : body(pointer.asOther());
}

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_STORAGE_H
