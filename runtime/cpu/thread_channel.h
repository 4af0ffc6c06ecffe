// Messages between threads of one process: the end that comes second copies straight from the
// sender's buffers to the receiver's, so a message needs no polls and nothing is staged.

#ifndef PARTITA_RT_CPU_THREAD_CHANNEL_H
#define PARTITA_RT_CPU_THREAD_CHANNEL_H

#include "cpu/channel.h"

#include <mutex>

namespace partita_rt {

class ThreadChannel final : public OrderedEnd {
public:
  /// What the two ends share. An entry of the ring is used again kRing messages later, which an end
  /// starts only when the earlier message is complete.
  struct Shared {
    struct Entry {
      Message message; ///< of the end that came first
      std::atomic<uint64_t> complete{0};
    };
    std::mutex mutex;
    uint64_t started[2] = {}; ///< by the receiver, by the sender
    std::array<Entry, kRing> ring;
  };
  ThreadChannel(ChannelPlace place, RankWaits &waits, const FailureFlag *failure,
                std::shared_ptr<Shared> shared)
      : OrderedEnd(std::move(place), waits, failure), shared(std::move(shared)) {}

  bool isComplete(uint64_t number) const override {
    return shared->ring[number % kRing].complete.load(std::memory_order_acquire) >= number;
  }

private:
  void post(Message message) override;

  std::shared_ptr<Shared> shared;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_THREAD_CHANNEL_H
