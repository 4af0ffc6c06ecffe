// Channels between MPI processes (channel.h), and the window in which those of one node see each
// other's places (common/mesh/place.h).

#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/mesh/message.h"
#include "cpu/message_channel.h"
#include "cpu/shared_window.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <unistd.h>

namespace partita_rt {

namespace {

/// What the processes tell each other before they train.
struct Told {
  char host[64];
  int32_t process;
  int32_t node; ///< its lowest rank
};

/// What keeps places alive.
struct Places {
  SharedWindow window;           ///< the node's
  std::vector<RankPlace> remote; ///< of other nodes' ranks, if this process watches them
};

/// Groups the processes that share memory: those of a node. With PARTITA_RT_TRANSPORT=messages each
/// is a node of its own.
MPI_Comm nodeOf(const Rank &rank) {
  MPI_Comm node;
  if (asksForMessages())
    MPI_Comm_split(MPI_COMM_WORLD, rank.rank, 0, &node);
  else
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank.rank, MPI_INFO_NULL, &node);
  return node;
}

/// Makes what the node's ranks show, and says which there are.
void shareShown(const Rank &rank, MPI_Comm node, Places &memory, RanksInSight &sight) {
  int size = 0;
  MPI_Comm_size(node, &size);
  memory.window = shareMemory(node, sizeof(ShownRank));
  sight.local.resize(size_t(size));
  MPI_Allgather(&rank.rank, 1, MPI_INT, sight.local.data(), 1, MPI_INT, node);
  sight.places.resize(size_t(rank.ranks));
  sight.flights.resize(size_t(rank.ranks));
  int own = 0;
  MPI_Comm_rank(node, &own);
  new (memory.window.places[size_t(own)]) ShownRank();
  for (int r = 0; r < size; ++r) {
    auto *shown = reinterpret_cast<ShownRank *>(memory.window.places[size_t(r)]);
    sight.places[size_t(sight.local[size_t(r)])] = &shown->place;
    sight.flights[size_t(sight.local[size_t(r)])] = &shown->flight;
  }
  sight.places[size_t(rank.rank)]->beats = 1; // watched from here on
  MPI_Barrier(node);                          // every place is constructed before others look at it
}

/// All processes call it together.
RanksInSight lookAround(const Rank &rank, Places &memory) {
  RanksInSight sight;
  sight.own = {rank.rank};
  shareShown(rank, nodeOf(rank), memory, sight);
  Told own{};
  std::strncpy(own.host, hostName().c_str(), sizeof(own.host) - 1);
  own.process = getpid();
  own.node = *std::min_element(sight.local.begin(), sight.local.end());
  std::vector<Told> told(size_t(rank.ranks));
  MPI_Allgather(&own, sizeof(own), MPI_BYTE, told.data(), sizeof(own), MPI_BYTE, MPI_COMM_WORLD);
  std::vector<int> nodes;
  bool shareAll = true;
  for (int r = 0; r < rank.ranks; ++r) {
    const Told &its = told[size_t(r)];
    sight.names.push_back(processText(rankText(*rank.program, r), its.host, its.process));
    nodes.push_back(its.node);
    shareAll &= its.node == own.node;
  }
  if (shareAll)
    return sight;
  sight.remote = std::make_unique<RemoteBeats>(rank.rank, nodes);
  if (!sight.remote->watches())
    return sight;
  memory.remote = std::vector<RankPlace>(size_t(rank.ranks));
  for (size_t r = 0; r < nodes.size(); ++r)
    if (nodes[r] != own.node)
      sight.places[r] = &memory.remote[r];
  return sight;
}

} // namespace

RankChannels makeProcessChannels(Rank &rank) {
  RankChannels own;
  if (rank.ranks == 1)
    return own;
  auto memory = std::make_shared<Places>();
  own.sight = lookAround(rank, *memory);
  own.waits = std::make_unique<RankWaits>(rank, own.sight.places, own.sight.flights, memory);
  own.waits->watchDeaths(own.sight.local);
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
