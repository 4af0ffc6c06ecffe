// The functions that cuda/attention/mma.cuh and cuda/kernels/async_copy.cuh require to compile
// without nvcc, implemented with simt.

#ifndef PARTITA_TEST_WITHOUT_NVCC_MMA_H
#define PARTITA_TEST_WITHOUT_NVCC_MMA_H

#include "partita_rt/half.h"
#include "simt/mma.h"

#include <type_traits>

namespace without_nvcc {

template <typename T>
void multiplyAdd(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, partita_rt::Half>)
    simt::multiplyHalves(c, a, b0, b1, SIMT_WHERE("mma"));
  else
    simt::multiplyBFloats(c, a, b0, b1, SIMT_WHERE("mma"));
}
inline void loadMatrices(uint32_t (&r)[4], const void *row) {
  simt::loadMatrices(r, row, false, SIMT_WHERE("ldmatrix"));
}
inline void loadTransposed(uint32_t (&r)[4], const void *row) {
  simt::loadMatrices(r, row, true, SIMT_WHERE("ldmatrix.trans"));
}
inline void copyAsync(void *shared, const void *global, int bytes) {
  simt::copyAsync(shared, global, bytes, 16);
}
inline void copyWordAsync(void *shared, const void *global, bool inside) {
  simt::copyAsync(shared, global, inside ? 4 : 0, 4);
}
inline void commitCopies() { simt::commitCopies(); }
template <int kLeft> void waitForCopies() { simt::waitForCopies(kLeft); }
template <typename T> uint32_t roundPair(float first, float second) {
  return T(first).bits | uint32_t(T(second).bits) << 16;
}

} // namespace without_nvcc

#endif // PARTITA_TEST_WITHOUT_NVCC_MMA_H
