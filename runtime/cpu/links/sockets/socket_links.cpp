// Processes that send messages over TCP (socket_links.h).

#include "cpu/links/sockets/socket_links.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "cpu/links/sockets/connections.h"
#include "cpu/links/sockets/shared_pages.h"
#include "cpu/links/sockets/streams.h"
#include "cpu/watch/deaths.h"
#include "partita_rt/machine.h"
#include "partita_rt/timeout.h"
#include "processes/hub.h"

#include <algorithm>
#include <new>
#include <optional>
#include <sys/resource.h>

namespace partita_rt {

namespace {

/// What a node's ranks show each other, at the end of what each shares: where it is, and its flight
/// recorder, which a process that is stopped or was killed leaves to the others.
class SharedRanks {
public:
  SharedRanks(const processes::Rendezvous &rendezvous, std::shared_ptr<SharedPages> itsPages,
              int64_t at)
      : pages(std::move(itsPages)), self(rendezvous.rank()), peers(rendezvous.peers()) {
    new (pages->regions[size_t(self)] + at) ShownRank();
    for (char *region : pages->regions)
      shown.push_back(region ? reinterpret_cast<ShownRank *>(region + at) : nullptr);
  }
  ShownRank &own() const { return *shown[size_t(self)]; }
  /// Null: the rank is of another node.
  const RankPosition *positionOf(int rank) const {
    return shown[size_t(rank)] ? &shown[size_t(rank)]->position : nullptr;
  }
  /// This node's, as a signal's handler sees them.
  std::vector<DeathWatch::Watched> watched() const {
    std::vector<DeathWatch::Watched> ranks;
    for (size_t r = 0; r < shown.size(); ++r)
      if (shown[r])
        ranks.push_back(
            {int(r), processes::nameOf(peers, int(r)), &shown[r]->position, &shown[r]->flight});
    return ranks;
  }
  void write(const std::string &reason) const {
    write(self, reason);
    for (size_t r = 0; r < shown.size(); ++r)
      if (shown[r] && processCannotRun(peers[r].process))
        write(int(r), reason);
  }

private:
  void write(int rank, const std::string &reason) const {
    writeFlight(shown[size_t(rank)]->flight, rank, processes::nameOf(peers, rank).c_str(),
                reason.c_str());
  }

  const std::shared_ptr<SharedPages> pages;
  const int self;
  const std::vector<processes::Peer> peers;
  std::vector<ShownRank *> shown; ///< by rank
};

class SocketLinks final : public ProcessLinks {
public:
  SocketLinks(const processes::LaunchEnvironment &environment, const Program &program)
      : streams(environment.ranks), own(environment, program), program(program),
        address(environment.address) {
    rlimit files; // one for each connection
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
      files.rlim_cur = files.rlim_max;
      setrlimit(RLIMIT_NOFILE, &files);
    }
  }
  int rank() const override { return own.rendezvous.rank(); }
  int ranks() const override { return own.rendezvous.ranks(); }
  std::vector<int> launcherNumbers() const override { return own.rendezvous.launcherNumbers(); }

  std::vector<std::string> allGather(const std::string &mine, const char *what) override {
    return own.rendezvous.allGather(mine, what);
  }
  NodeMemory shareMemory(int64_t bytes) override {
    own.rendezvous.setTimeout(timeoutSeconds()); // --timeout's, from here on
    std::optional<int> node = pretendedNode(own.rendezvous.peers()[size_t(rank())].launcherNumber);
    int64_t shownAt = (bytes + 63) / 64 * 64;
    pages = std::make_shared<SharedPages>(own.rendezvous, shownAt + int64_t(sizeof(ShownRank)),
                                          node ? std::to_string(*node) : "");
    shared = std::make_shared<SharedRanks>(own.rendezvous, pages, shownAt);
    return {pages->regions, pages->nodes, pages};
  }
  std::unique_ptr<Messenger> messenger(const std::vector<int> &members,
                                       const std::set<int> &peers) override;
  RankView show(const Rank &rank) override;
  /// The rendezvous watches.
  std::shared_ptr<void> watch(RankWaits &) override {
    connections.reset(); // all have connected: nobody listens any more
    own.rendezvous.setPosition(shared->own().position);
    return nullptr;
  }
  [[noreturn]] void fail(const std::string &message) override {
    if (deaths)
      deaths->endWithError();
    own.rendezvous.fail(message); // which decides what rank prints
  }

private:
  Streams streams; ///< open until all ranks have said goodbye
  processes::LaunchedRank own;
  const Program &program;
  const std::string address; ///< rank 0's
  std::unique_ptr<Connections> connections;
  std::shared_ptr<SharedPages> pages;
  std::shared_ptr<const SharedRanks> shared;
  std::optional<DeathWatch> deaths; ///< from when all ranks show where they are
  uint32_t messengers = 0;
};

} // namespace

std::unique_ptr<ProcessLinks> joinBySockets(const processes::LaunchEnvironment &environment,
                                            const Program &program) {
  return std::make_unique<SocketLinks>(environment, program);
}

std::unique_ptr<Messenger> SocketLinks::messenger(const std::vector<int> &members,
                                                  const std::set<int> &peers) {
  if (!connections)
    connections = std::make_unique<Connections>(own.rendezvous, address);
  std::set<int> others;
  for (int peer : peers)
    others.insert(members[size_t(peer)]);
  connections->connect(others, streams, std::min(timeoutSeconds(), kMostToJoin));
  uint32_t number = ++messengers;
  return members.empty() ? nullptr : std::make_unique<SocketMessenger>(streams, number, members);
}

RankView SocketLinks::show(const Rank &) {
  own.position.phase = Phase::Unknown; // the set-up is over; the rank's body says what it does
  // Until all ranks have said goodbye, which is after the destruction of the pages here.
  own.rendezvous.setRecord([shared = shared](const std::string &reason) { shared->write(reason); });
  std::vector<DeathWatch::Watched> watched = shared->watched();
  bool areAll = watched.size() == size_t(ranks());
  deaths.emplace(rank(), std::move(watched), areAll, DeathWatch::Reporter::Thread);
  RankView view{&shared->own().position, &shared->own().flight, {}, pages};
  for (int r = 0; r < ranks(); ++r) {
    const RankPosition *near = shared->positionOf(r);
    if (near && r != rank())
      own.rendezvous.see(r, *near);
    view.positions.push_back(near ? near : own.rendezvous.positionOf(r));
  }
  return view;
}

} // namespace partita_rt
