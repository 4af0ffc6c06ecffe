// Channels between MPI processes (channel.h), and the window in which those of one node see each
// other's places (waits.h).

#include "common/mesh/message.h"
#include "cpu/message_channel.h"
#include "cpu/shared_window.h"

#include <new>

namespace partita_rt {

/// Returns places by rank; null for those of other nodes.
static std::vector<RankPlace *> sharePlaces(const Rank &rank, std::shared_ptr<void> &owner) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank.rank, MPI_INFO_NULL, &node);
  int size = 0;
  MPI_Comm_size(node, &size);
  SharedWindow window = shareMemory(node, sizeof(RankPlace));
  owner = std::move(window.owner);
  std::vector<int> ranks(static_cast<size_t>(size));
  MPI_Allgather(&rank.rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, node);
  std::vector<RankPlace *> places(static_cast<size_t>(rank.ranks));
  for (int r = 0; r < size; ++r)
    places[size_t(ranks[size_t(r)])] = reinterpret_cast<RankPlace *>(window.places[size_t(r)]);
  new (places[size_t(rank.rank)]) RankPlace();
  MPI_Barrier(node); // every place is constructed before others look at it
  return places;
}

RankChannels makeProcessChannels(Rank &rank) {
  RankChannels own;
  if (rank.ranks == 1)
    return own;
  std::shared_ptr<void> memory;
  std::vector<RankPlace *> places = sharePlaces(rank, memory);
  own.waits = std::make_unique<RankWaits>(rank, std::move(places), std::move(memory));
  own.waits->watchDeaths();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  own.take(rank, [&](ChannelPlace place) {
    return std::make_unique<MessageChannel>(std::move(place), *own.waits, comm,
                                            channelTests().rendezvous);
  });
  std::vector<ChannelEnd *> ends;
  for (auto &end : own.ends)
    ends.push_back(end.get());
  own.waits->setMoveMessages([ends] {
    for (ChannelEnd *end : ends)
      end->advance();
  });
  return own;
}

} // namespace partita_rt
