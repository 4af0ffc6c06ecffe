// Hopper's bulk copies of boxes of tensors into shared memory, and the barriers that they complete, on a
// CPU (see simt.h): cp.async.bulk.tensor, mbarrier, by the PTX ISA.
//
// A copy happens at some time between its issue and the end of a wait for its barrier. Here that is the
// latest time (Order::Forward: when no thread can go on without it; exposes a forgotten wait), the
// earliest (Order::Reverse: exposes a buffer that is still being read) or either (Order::Random). Errors
// are: a barrier that is used before it is made, or without a fence behind its making; a wait for bytes
// that nobody copies; a copy over what a thread has stored by stmatrix or cp.async without a fence.proxy.async
// (other stores are not noted), or to a wrong address; and a block that ends before a copy that it has issued is waited for.

#ifndef PARTITA_TEST_SIMT_BULK_H
#define PARTITA_TEST_SIMT_BULK_H

#include "simt/simt.h"

namespace simt {

/// What a CUtensorMap of 16-bit elements with a 128-byte swizzle has; the outermost dimension last.
struct BoxMap {
  static constexpr int kRank = 4;
  static constexpr uint64_t kMagic = 0x5041525449544131;
  uint64_t magic;
  const unsigned char *data;
  uint32_t sizes[kRank], box[kRank]; ///< elements
  uint64_t strides[kRank - 1];       ///< bytes, of all dimensions but the first
};

/// A barrier for one arrival, of the thread that announces bytes.
void makeBarrier(uint64_t *barrier);
/// Covers the barriers that this thread has made.
void fenceBarriers();
void announceBytes(uint64_t *barrier, uint32_t bytes);
/// Waits until the phase with this parity is complete.
void waitForPhase(uint64_t *barrier, uint32_t parity, Where where);
/// Copies the box at these elements, with zeros for those outside the tensor.
void copyBox(void *shared, const BoxMap *map, const int (&at)[BoxMap::kRank], uint64_t *barrier);

} // namespace simt

#endif // PARTITA_TEST_SIMT_BULK_H
