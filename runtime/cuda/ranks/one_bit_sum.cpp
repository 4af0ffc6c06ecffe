// Sums over ranks with one bit per element on GPUs (partita_rt/cuda/comm.h).

#include "common/mesh/one_bit_sum.h"
#include "cuda/kernels/one_bit.h"
#include "partita_rt/cuda/comm.h"

namespace partita_rt::cuda {

namespace {

class CudaOneBit final : public OneBitKernels {
public:
  explicit CudaOneBit(const Stream &stream) : stream(stream) {}
  void pack(const OneBitBlocks &blocks, uint8_t *sent) const override {
    packForServers(stream, blocks, sent);
  }
  void serve(const OneBitBlocks &blocks, int self, const uint8_t *sent, const uint8_t *received,
             uint8_t *served) const override {
    serveSums(stream, blocks, self, sent, received, served);
  }
  void unpack(const OneBitBlocks &blocks, const uint8_t *received) const override {
    unpackSums(stream, blocks, received);
  }

private:
  const Stream &stream;
};

} // namespace

void oneBitAllReduce(const Stream &stream, Communicator &group, OneBitTensors tensors,
                     bool compresses, void *scratch, const char *why) {
  sumWithOneBit(CudaOneBit(stream), group, tensors, compresses, scratch, why);
}

} // namespace partita_rt::cuda
