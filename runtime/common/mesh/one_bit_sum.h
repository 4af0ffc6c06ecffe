// Sums with one bit per element (partita_rt/one_bit.h): what is sent between a target's kernels.

#ifndef PARTITA_RT_COMMON_MESH_ONE_BIT_SUM_H
#define PARTITA_RT_COMMON_MESH_ONE_BIT_SUM_H

#include "common/mesh/one_bit_blocks.h"

namespace partita_rt {

/// A target's kernels, on memory that its collectives move.
class OneBitKernels {
public:
  /// Adds the workers' errors to the values and packs these for all servers.
  virtual void pack(const OneBitBlocks &blocks, uint8_t *sent) const = 0;
  /// Takes what all ranks have sent of this one's chunks, and packs their sums, with new errors. If any scale is not
  /// finite, errors stay and all bytes of `served` are 0xff: its scales are not numbers.
  virtual void serve(const OneBitBlocks &blocks, int self, const uint8_t *sent,
                     const uint8_t *received, uint8_t *served) const = 0;
  /// Values of all chunks; NaN where a scale is not a number. Padding becomes 0.
  virtual void unpack(const OneBitBlocks &blocks, const uint8_t *received) const = 0;

protected:
  ~OneBitKernels() = default;
};

/// oneBitAllReduce, by these kernels.
void sumWithOneBit(const OneBitKernels &kernels, Communicator &group, OneBitTensors tensors,
                   bool compresses, void *scratch, const char *why);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_ONE_BIT_SUM_H
