// Sums with one bit per element, between kernels (one_bit_sum.h).

#include "common/mesh/one_bit_sum.h"

#include "common/mesh/request.h"
#include "partita_rt/work.h"

namespace partita_rt {

namespace {

void exchangeBlocks(Communicator &group, CollectiveKind kind, const uint8_t *from, uint8_t *to,
                    int64_t bytes, const char *why) {
  Communicator::Request request;
  request.kind = kind;
  request.dtype = DType::UInt8;
  request.why = why;
  request.items.push_back(
      {reinterpret_cast<const char *>(from), reinterpret_cast<char *>(to), bytes, INT64_MAX});
  WorkScope scope(group.clock(), Work::Collectives);
  wait(group.start(std::move(request)));
}

void sumExactly(Communicator &group, OneBitTensors tensors, const char *why) {
  Communicator::Request request;
  request.kind = CollectiveKind::AllReduce;
  request.why = why;
  for (const OneBitTensor &each : tensors)
    request.items.push_back({reinterpret_cast<const char *>(each.values),
                             reinterpret_cast<char *>(each.values), each.count, INT64_MAX});
  WorkScope scope(group.clock(), Work::Collectives);
  wait(group.start(std::move(request)));
}

} // namespace

void sumWithOneBit(const OneBitKernels &kernels, Communicator &group, OneBitTensors tensors,
                   bool compresses, void *scratch, const char *why) {
  if (!compresses || group.size() == 1)
    return sumExactly(group, tensors, why);
  OneBitBlocks blocks(tensors, group.size());
  auto *sent = static_cast<uint8_t *>(scratch);
  uint8_t *received = sent + blocks.ranks * blocks.bytes,
          *served = received + blocks.ranks * blocks.bytes;
  kernels.pack(blocks, sent);
  exchangeBlocks(group, CollectiveKind::AllToAll, sent, received, blocks.bytes, why);
  kernels.serve(blocks, group.rank(), sent, received, served);
  exchangeBlocks(group, CollectiveKind::AllGather, served, received, blocks.bytes, why);
  kernels.unpack(blocks, received);
}

} // namespace partita_rt
