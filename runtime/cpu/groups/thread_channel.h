// Messages between threads of one process: the end that starts second copies straight from the
// sender's buffers to the receiver's, so a message needs no polls and nothing is staged.

#ifndef PARTITA_RT_CPU_GROUPS_THREAD_CHANNEL_H
#define PARTITA_RT_CPU_GROUPS_THREAD_CHANNEL_H

#include "cpu/groups/channel.h"

#include <mutex>

namespace partita_rt {

class ThreadChannel final : public OrderedEnd {
public:
  /// State shared by the two ends. An entry of the ring is reused kRing messages later; an end
  /// starts that message only after the earlier one is complete.
  struct Shared {
    struct Entry {
      Message message; ///< from the end that started first
      std::atomic<uint64_t> complete{0};
    };
    std::mutex mutex;
    uint64_t started[2] = {}; ///< by the receiver and the sender
    std::array<Entry, kRing> ring;
  };
  ThreadChannel(ChannelEndpoint endpoint, RankWaits &waits, const FailureFlag *failure,
                std::shared_ptr<Shared> shared)
      : OrderedEnd(std::move(endpoint), waits, failure), shared(std::move(shared)) {}

  bool isComplete(uint64_t number) const override {
    return shared->ring[number % kRing].complete.load(std::memory_order_acquire) >= number;
  }

private:
  void post(Message message) override;

  std::shared_ptr<Shared> shared;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_THREAD_CHANNEL_H
