// Hopper's warp-group matmuls on a CPU (see simt.h): wgmma.m64nNk16 with operands in dynamic shared
// memory, through descriptors with the 128-byte swizzle, or with a in registers, as fragments of
// the PTX ISA.
//
// A matmul happens at some time between its issue and its wait_group. Here that is the latest time
// (Order::Forward: exposes operands that are overwritten too early), the earliest (Order::Reverse:
// exposes operands that have not arrived yet) or either (Order::Random). Until the wait its sums
// are NaN, and writes to them are lost. Errors are: a matmul without wgmma.fence since the last
// wait_group, one that reads data copied to shared memory without a subsequent fence.proxy.async,
// and a thread that ends without having waited.

#ifndef PARTITA_TEST_SIMT_WGMMA_H
#define PARTITA_TEST_SIMT_WGMMA_H

#include "simt/simt.h"

namespace simt {

/// Returns bytes from a multiple of 1,024 below the block's dynamic shared memory.
uint32_t sharedAddress(const void *p);

enum class Narrow : uint8_t { Half, BFloat16 };
/// One wgmma: c [4 * columns of 8] += a b.
struct GroupMatmul {
  float *c;
  int columns; ///< N / 8
  Narrow type;
  const uint32_t *registers; ///< a's four, or null: `left` is its descriptor
  uint64_t left, right;
  bool leftTransposed, transposed, sum;
};
void multiplyGroup(const GroupMatmul &matmul, Where where);
void beginMatmuls();
void commitMatmuls();
void waitForMatmuls(int left);

/// stmatrix.x4. All lanes write when the last one arrives at the latest.
void storeMatrices(void *row, const uint32_t (&r)[4], Where where);

/// Covers this thread's writes.
void fenceForMatmuls();
/// Notes that a copy or stmatrix has written here.
void noteWritten(const void *shared);
/// Has a thread written here without a fence since?
bool isUnfenced(const void *shared);

} // namespace simt

#endif // PARTITA_TEST_SIMT_WGMMA_H
