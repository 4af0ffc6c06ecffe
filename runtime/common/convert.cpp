// Casts whole arrays on the host (kernels.h): for CPU kernels, and for updates that a host makes
// for its GPU, where a skipped step also rounds the parameters that it leaves unchanged.

#include "common/convert.h"
#include "partita_rt/kernels.h"
#include "partita_rt/random.h"

namespace partita_rt {

template <typename D, typename S> void convert(D *dst, const S *src, int64_t n) {
  convertArray(dst, src, n);
}

#define CONVERT(S)                                                                                 \
  template void convert(float *, const S *, int64_t);                                              \
  template void convert(Half *, const S *, int64_t);                                               \
  template void convert(BFloat16 *, const S *, int64_t);
CONVERT(float)
CONVERT(Half)
CONVERT(BFloat16)
#undef CONVERT

void convertStochastically(BFloat16 *__restrict dst, const float *__restrict src, int64_t n,
                           uint64_t key, int64_t first) {
  for (int64_t i = 0; i < n; ++i)
    dst[i] = roundStochastically(src[i], uint16_t(mix64(key + uint64_t(first + i)) >> 48));
}

} // namespace partita_rt
