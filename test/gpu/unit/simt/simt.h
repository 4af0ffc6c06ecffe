// Replaces the simulated GPU (test/Support/simt) in the kernels' tests on a real one, whose
// scheduler chooses the order.

#ifndef PARTITA_TEST_GPU_SIMT_H
#define PARTITA_TEST_GPU_SIMT_H

#include <cstdint>

/// Leaves out tests of the simulation itself.
#define PARTITA_TEST_ON_GPU 1

namespace simt {

enum class Order { Forward, Reverse, Random };
inline void setOrder(Order, uint64_t = 0) {}
inline void setBlocksAtOnce(int) {}

} // namespace simt

#endif // PARTITA_TEST_GPU_SIMT_H
