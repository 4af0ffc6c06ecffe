// The functions that cuda/attention/bulk_copy.cuh requires to compile without nvcc, implemented with
// simt.

#ifndef PARTITA_TEST_WITHOUT_NVCC_BULK_COPY_H
#define PARTITA_TEST_WITHOUT_NVCC_BULK_COPY_H

#include "simt/bulk.h"

#include <cuda.h>

namespace without_nvcc {

using simt::announceBytes;
using simt::fenceBarriers;
using simt::makeBarrier;
inline void waitForPhase(uint64_t *barrier, uint32_t parity) {
  simt::waitForPhase(barrier, parity, SIMT_WHERE("mbarrier.try_wait"));
}
inline void copyBox(void *shared, const CUtensorMap *map, int column, int row, int head, int batch,
                    uint64_t *barrier) {
  simt::copyBox(shared, reinterpret_cast<const simt::BoxMap *>(map), {column, row, head, batch},
                barrier);
}

} // namespace without_nvcc

#endif // PARTITA_TEST_WITHOUT_NVCC_BULK_COPY_H
