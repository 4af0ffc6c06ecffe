// Messages over NCCL (partita_rt/channel.h): a channel is a communicator of two ranks, with a
// stream of its own at either end.
//
// A single communicator for all channels would impose one order: a receive that starts ahead of its
// use would hold back a send that the other stage needs first, and two stages could wait for each
// other.

#ifndef PARTITA_RT_CUDA_RANKS_NCCL_CHANNEL_H
#define PARTITA_RT_CUDA_RANKS_NCCL_CHANNEL_H

#include "common/mesh/message.h"
#include "cuda/ranks/nccl_queue.h"

namespace partita_rt::cuda {

/// A start queues the message on the channel's stream, after all work queued on the compute stream;
/// a wait makes the compute stream wait for it. The buffers are one group of NCCL calls. NCCL
/// compares nothing: ends that differ hang, and the watchdog names them.
class NcclChannel final : public ChannelEnd, public NcclQueue {
public:
  /// Takes ownership of the communicator, whose rank 0 sends.
  NcclChannel(const ChannelEndpoint &endpoint, std::string key, ncclComm_t comm, Device &device,
              std::shared_ptr<Watchdog> watchdog)
      : ChannelEnd(endpoint.name, endpoint.sends),
        NcclQueue({std::move(key), "channel", endpoint.name, "message"}, comm, device,
                  std::move(watchdog)) {}

  PendingMessage start(Message message) override;
  void finish(uint64_t number) override { await(number); }
  int outstanding() const override { return notAwaited(); }
  bool isComplete(uint64_t number) const override { return isDone(number); }

private:
  void issue(const Message &message);
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_RANKS_NCCL_CHANNEL_H
