// The functions that cuda/attention/wgmma.cuh requires to compile without nvcc, implemented with
// simt.

#ifndef PARTITA_TEST_WITHOUT_NVCC_WGMMA_H
#define PARTITA_TEST_WITHOUT_NVCC_WGMMA_H

#include "partita_rt/half.h"
#include "simt/wgmma.h"

#include <type_traits>

namespace without_nvcc {

using simt::beginMatmuls;
using simt::commitMatmuls;
using simt::fenceForMatmuls;
using simt::sharedAddress;
template <int kLeft> void waitForMatmuls() { simt::waitForMatmuls(kLeft); }
inline void storeMatrices(void *row, const uint32_t (&r)[4]) {
  simt::storeMatrices(row, r, SIMT_WHERE("stmatrix"));
}
template <int N> void pin(float (&)[N][4]) {}

template <typename T>
constexpr simt::Narrow kNarrow =
    std::is_same_v<T, partita_rt::Half> ? simt::Narrow::Half : simt::Narrow::BFloat16;
template <typename T, bool kTransposed, bool kLeft = false, int kColumns>
void multiplyGroup(float (&c)[kColumns][4], uint64_t left, uint64_t right, bool sum) {
  simt::multiplyGroup(
      {&c[0][0], kColumns, kNarrow<T>, nullptr, left, right, kLeft, kTransposed, sum},
      SIMT_WHERE("wgmma"));
}
template <typename T, bool kTransposed, int kColumns>
void multiplyGroup(float (&c)[kColumns][4], const uint32_t (&left)[4], uint64_t right, bool sum) {
  simt::multiplyGroup({&c[0][0], kColumns, kNarrow<T>, left, 0, right, false, kTransposed, sum},
                      SIMT_WHERE("wgmma"));
}

} // namespace without_nvcc

#endif // PARTITA_TEST_WITHOUT_NVCC_WGMMA_H
