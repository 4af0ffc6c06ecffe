// What the kernels' tests ask of the simulated GPU (test/Support/simt), where there is a real one:
// its scheduler chooses the order.

#ifndef PARTITA_TEST_GPU_SIMT_H
#define PARTITA_TEST_GPU_SIMT_H

#include <cstdint>

/// Tests of the simulation itself are left out.
#define PARTITA_TEST_ON_GPU 1

namespace simt {

enum class Order { Forward, Reverse, Random };
inline void setOrder(Order, uint64_t = 0) {}

} // namespace simt

#endif // PARTITA_TEST_GPU_SIMT_H
