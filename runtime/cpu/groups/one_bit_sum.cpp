// Sums over ranks with one bit per element on CPUs (partita_rt/one_bit.h).

#include "common/mesh/one_bit_sum.h"
#include "cpu/kernels/one_bit.h"

namespace partita_rt {

namespace {

struct CpuOneBit final : OneBitKernels {
  void pack(const OneBitBlocks &blocks, uint8_t *sent) const override {
    packForServers(blocks, sent);
  }
  void serve(const OneBitBlocks &blocks, int self, const uint8_t *sent, const uint8_t *received,
             uint8_t *served) const override {
    serveSums(blocks, self, sent, received, served);
  }
  void unpack(const OneBitBlocks &blocks, const uint8_t *received) const override {
    unpackSums(blocks, received);
  }
};

} // namespace

void oneBitAllReduce(Communicator &group, OneBitTensors tensors, bool compresses, void *scratch,
                     const char *why) {
  sumWithOneBit(CpuOneBit(), group, tensors, compresses, scratch, why);
}

} // namespace partita_rt
