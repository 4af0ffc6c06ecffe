// Tensor cores and asynchronous copies on a CPU (see simt.h): mma.m16n8k16, ldmatrix and cp.async,
// by the fragments of the PTX ISA.
//
// An asynchronous copy happens at some time between its issue and its wait_group. Here that is the
// latest time (Order::Forward: exposes a forgotten wait), the earliest (Order::Reverse: exposes a
// buffer that is still being read) or either (Order::Random). A thread that ends without having
// waited is an error.

#ifndef PARTITA_TEST_SIMT_MMA_H
#define PARTITA_TEST_SIMT_MMA_H

#include "simt/simt.h"

namespace simt {

/// c += a b for a warp; products are added in order, in float.
void multiplyHalves(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Where where);
void multiplyBFloats(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, Where where);

/// ldmatrix.x4. A lane reads its row when it arrives, before the others write if they may.
void loadMatrices(uint32_t (&r)[4], const void *row, bool transposed, Where where);

/// size: bytes written, 4 or 16.
void copyAsync(void *shared, const void *global, int bytes, int size);
void commitCopies();
void waitForCopies(int left);

} // namespace simt

#endif // PARTITA_TEST_SIMT_MMA_H
