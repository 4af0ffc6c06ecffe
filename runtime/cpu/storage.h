// Kernels over several storage types: which are instantiated, and sums that a 16-bit result takes
// part in once.

#ifndef PARTITA_RT_CPU_STORAGE_H
#define PARTITA_RT_CPU_STORAGE_H

#include "cpu/vector.h"
#include "partita_rt/kernels.h"

#include <algorithm>

/// FOR_STORAGE(F): F(T) for the types that activations are stored in.
#define FOR_STORAGE(F) F(float) F(Half) F(BFloat16)
/// FOR_RESULTS(F): F(Y, X) for results of their operands' type and for float results.
#define FOR_RESULTS(F)                                                                             \
  F(float, float) F(float, Half) F(Half, Half) F(float, BFloat16) F(BFloat16, BFloat16)

namespace partita_rt {

template <typename T> constexpr bool kIsFloat = std::is_same_v<T, float>;

/// Elements of a result that are in float at a time, on the stack: a multiple of all unrolling.
constexpr int64_t kChunk = 1024;

/// `body(sums, first, n)` makes elements [first, first + n) of y in float. A float y is made in
/// place and at once, another one by chunks, each rounded when it is complete. `reads`: the body
/// adds to what y holds.
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

#endif // PARTITA_RT_CPU_STORAGE_H
