// Common to the CPU's message transports: an end's messages are numbered, remembered from start to
// wait, and awaited by name.

#ifndef PARTITA_RT_CPU_GROUPS_CHANNEL_H
#define PARTITA_RT_CPU_GROUPS_CHANNEL_H

#include "common/mesh/message.h"
#include "cpu/groups/group.h"
#include "cpu/watch/waits.h"
#include "cpu/watch/watcher.h"

#include <array>
#include <memory>
#include <vector>

namespace partita_rt {

class OrderedEnd : public ChannelEnd {
public:
  /// `waits` must outlive the end; `failure` may be null.
  OrderedEnd(ChannelEndpoint endpoint, RankWaits &waits, const FailureFlag *failure)
      : ChannelEnd(endpoint.name, endpoint.sends), endpoint(std::move(endpoint)), waits(waits),
        failure(failure) {}

  PendingMessage start(Message message) override;
  void finish(uint64_t number) override;
  int outstanding() const override { return int(open.size()); }

protected:
  /// Max pending messages; beyond it a start waits for the oldest.
  static constexpr uint64_t kRing = 64;

  /// Hands the message, which has its number, to the transport. Does not block.
  virtual void post(Message message) = 0;

  const ChannelEndpoint endpoint;

private:
  void awaitMessage(uint64_t number);

  RankWaits &waits;
  const FailureFlag *failure;
  uint64_t started = 0;
  std::vector<uint64_t> open; ///< started, not waited for
  std::array<MessageSignature, kRing> signatures;
};

/// A rank's waits and its ends of channels.
struct RankChannels {
  std::unique_ptr<RankWaits> waits;
  std::vector<std::unique_ptr<ChannelEnd>> ends;
  std::vector<ChannelEnd *> byRow;

  /// Adds the ends that `make(endpoint)` returns, and gives the rank its channels and waits.
  void take(Rank &rank, const std::function<std::unique_ptr<ChannelEnd>(ChannelEndpoint)> &make);
};

/// Makes the channels of all ranks, which are threads of this process. A program without channels
/// gets waits only, and one with a single rank not even those.
std::vector<RankChannels> makeThreadChannels(std::vector<Rank> &ranks, const FailureFlag &failure);
/// Returns what a process sees of ranks that are its threads.
RanksInSight sightOfThreads(const Program &program, const std::vector<RankChannels> &all);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_CHANNEL_H
