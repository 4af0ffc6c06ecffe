// The functions that cuda/attention/turns.cuh requires to compile without nvcc, implemented with simt.

#ifndef PARTITA_TEST_WITHOUT_NVCC_TURNS_H
#define PARTITA_TEST_WITHOUT_NVCC_TURNS_H

#include "simt/simt.h"

namespace without_nvcc {

inline uint32_t drawTicket(uint32_t *counter) {
  simt::letOtherBlocksRun();
  return __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
}
inline void announceCount(uint32_t *counter, uint32_t count) {
  simt::letOtherBlocksRun();
  if (int32_t(count - __atomic_load_n(counter, __ATOMIC_RELAXED)) <= 0)
    simt::throwInKernel("a counter of turns that does not grow");
  __atomic_store_n(counter, count, __ATOMIC_RELEASE);
  simt::letOtherBlocksRun();
}
inline void announceOne(uint32_t *counter) {
  simt::letOtherBlocksRun();
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELEASE);
  simt::letOtherBlocksRun();
}
inline void waitForCount(const uint32_t *counter, uint32_t count) {
  simt::letOtherBlocksRun();
  simt::waitForOtherBlock(
      [&] { return int32_t(__atomic_load_n(counter, __ATOMIC_ACQUIRE) - count) >= 0; });
}

} // namespace without_nvcc

#endif // PARTITA_TEST_WITHOUT_NVCC_TURNS_H
