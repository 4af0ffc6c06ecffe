// Messages between threads (thread_channel.h).

#include "cpu/groups/thread_channel.h"
#include "common/mesh/mesh.h"
#include "partita_rt/machine.h"

#include <cstring>
#include <map>
#include <unistd.h>

namespace partita_rt {

void ThreadChannel::post(Message mine) {
  uint64_t number = mine.signature.number;
  Shared::Entry &entry = shared->ring[number % kRing];
  Message theirs;
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->started[endpoint.sends] = number;
    if (shared->started[!endpoint.sends] < number) {
      entry.message = std::move(mine);
      return;
    }
    theirs = std::move(entry.message);
  }
  if (!mine.signature.matches(theirs.signature))
    throw Error(mismatchText(endpoint, mine.signature, theirs.signature));
  const Message &from = endpoint.sends ? mine : theirs, &to = endpoint.sends ? theirs : mine;
  for (size_t i = 0; i < from.buffers.size(); ++i)
    if (from.buffers[i].bytes > 0)
      std::memcpy(to.buffers[i].data, from.buffers[i].data, size_t(from.buffers[i].bytes));
  entry.complete.store(number, std::memory_order_release);
}

std::vector<RankChannels> makeThreadChannels(std::vector<Rank> &ranks, const FailureFlag &failure) {
  std::vector<RankChannels> all;
  if (ranks.size() == 1)
    return all;
  // The waits of all ranks share and own the positions.
  auto shownRanks = std::make_shared<std::vector<ShownRank>>(ranks.size());
  std::vector<const RankPosition *> byRank;
  for (ShownRank &each : *shownRanks)
    byRank.push_back(&each.position);
  std::map<std::pair<int, int>, std::shared_ptr<ThreadChannel::Shared>> shared; // by row and sender
  for (Rank &rank : ranks) {
    RankChannels &own = all.emplace_back();
    ShownRank &shown = (*shownRanks)[size_t(rank.rank)];
    own.waits = std::make_unique<RankWaits>(
        rank, RankView{&shown.position, &shown.flight, byRank, shownRanks});
    own.take(rank, [&](ChannelEndpoint endpoint) {
      auto &state = shared[{endpoint.row, endpoint.sends ? endpoint.self : endpoint.peer}];
      if (!state)
        state = std::make_shared<ThreadChannel::Shared>();
      return std::make_unique<ThreadChannel>(std::move(endpoint), *own.waits, &failure, state);
    });
  }
  return all;
}

RanksInSight sightOfThreads(const Program &program, const std::vector<RankChannels> &all) {
  RanksInSight sight;
  for (int r = 0; r < int(all.size()); ++r) {
    sight.positions.push_back(&all[size_t(r)].waits->position());
    sight.flights.push_back(&all[size_t(r)].waits->flight());
    sight.names.push_back(processText(rankText(program, r), hostName(), getpid()));
    sight.own.push_back(r);
  }
  sight.local = sight.own;
  return sight;
}

} // namespace partita_rt
