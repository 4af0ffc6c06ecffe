// What the CPU's transports of messages have in common: the messages of an end are numbered,
// remembered from start to wait, and awaited by name.

#ifndef PARTITA_RT_CPU_CHANNEL_H
#define PARTITA_RT_CPU_CHANNEL_H

#include "common/mesh/message.h"
#include "cpu/group.h"
#include "cpu/waits.h"

#include <array>
#include <memory>
#include <vector>

namespace partita_rt {

class OrderedEnd : public ChannelEnd {
public:
  /// `waits` must outlive the end; `failure` may be null.
  OrderedEnd(ChannelPlace place, RankWaits &waits, const FailureFlag *failure)
      : ChannelEnd(place.name, place.sends), place(std::move(place)), waits(waits),
        failure(failure) {}

  PendingMessage start(Message message) override;
  void finish(uint64_t number) override;
  int outstanding() const override { return int(open.size()); }

protected:
  /// More may be under way; a start then waits for the oldest.
  static constexpr uint64_t kRing = 64;

  /// Gives the message, which has its number, to the transport. Does not block.
  virtual void post(Message message) = 0;

  const ChannelPlace place;

private:
  void awaitMessage(uint64_t number);

  RankWaits &waits;
  const FailureFlag *failure;
  uint64_t started = 0;
  std::vector<uint64_t> open; ///< started, not waited for
  std::array<MessageSignature, kRing> signatures;
};

/// What one rank waits for, and its ends of channels.
struct RankChannels {
  std::unique_ptr<RankWaits> waits;
  std::vector<std::unique_ptr<ChannelEnd>> ends;
  std::vector<ChannelEnd *> byRow;

  /// Adds the ends that `make(place)` returns, and gives the rank its channels and waits.
  void take(Rank &rank, const std::function<std::unique_ptr<ChannelEnd>(ChannelPlace)> &make);
};

/// Of all ranks, threads of this process. A program without channels has waits alone, and one rank
/// not even those.
std::vector<RankChannels> makeThreadChannels(std::vector<Rank> &ranks, const FailureFlag &failure);
/// Of the rank that this MPI process is; all of them call it together.
RankChannels makeProcessChannels(Rank &rank);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_CHANNEL_H
