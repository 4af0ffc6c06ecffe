// Converts arrays between storage types on the host of every target: for CPU kernels, and for
// updates that a host makes for its GPU.

#ifndef PARTITA_RT_COMMON_CONVERT_H
#define PARTITA_RT_COMMON_CONVERT_H

#include "partita_rt/half.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace partita_rt {

/// y[i] = x[i]: widens, rounds, or copies.
template <typename Y, typename X>
inline void convertArray(Y *__restrict y, const X *__restrict x, int64_t n) {
  if constexpr (std::is_same_v<X, Y>)
    std::memcpy(y, x, size_t(n) * sizeof(X));
  else
    for (int64_t i = 0; i < n; ++i)
      y[i] = x[i];
}
#ifdef __F16C__
template <> inline void convertArray(float *__restrict y, const Half *__restrict x, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(x + i))));
  for (; i < n; ++i)
    y[i] = x[i];
}
template <> inline void convertArray(Half *__restrict y, const float *__restrict x, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i)
    y[i] = x[i];
}
#endif

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CONVERT_H
