// Processes that send messages over TCP (socket_processes.h).

#include "cpu/carriers/sockets/socket_processes.h"
#include "common/mesh/launch.h"
#include "cpu/carriers/sockets/connections.h"
#include "cpu/carriers/sockets/shared_pages.h"
#include "cpu/carriers/sockets/streams.h"

#include <algorithm>
#include <sys/resource.h>

namespace partita_rt {

namespace {

class SocketProcesses final : public Processes {
public:
  SocketProcesses(const processes::LaunchEnvironment &environment, const Program &program)
      : streams(environment.ranks), own(environment, program), address(environment.address) {
    rlimit files; // one for each connection
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
      files.rlim_cur = files.rlim_max;
      setrlimit(RLIMIT_NOFILE, &files);
    }
  }
  int rank() const override { return own.rendezvous.rank(); }
  int ranks() const override { return own.rendezvous.ranks(); }

  std::vector<std::string> allGather(const std::string &mine, const char *what) override {
    return own.rendezvous.allGather(mine, what);
  }
  NodeMemory shareMemory(int64_t bytes) override {
    own.rendezvous.setTimeout(timeoutSeconds()); // --timeout's, from here on
    int most = ranksPerNode();
    pages = std::make_shared<SharedPages>(own.rendezvous, bytes,
                                          most ? std::to_string(rank() / most) : "");
    return {pages->places, pages->nodes, pages};
  }
  std::unique_ptr<Messenger> messenger(const std::vector<int> &members,
                                       const std::set<int> &peers) override;
  RankView show(const Rank &rank) override;
  /// The rendezvous watches.
  std::shared_ptr<void> watch(RankWaits &) override {
    connections.reset(); // all have connected: nobody listens any more
    own.rendezvous.setPlace(own.place);
    return nullptr;
  }
  [[noreturn]] void fail(const std::string &message) override { own.rendezvous.fail(message); }

private:
  Streams streams; ///< open until all ranks have said goodbye
  processes::LaunchedRank own;
  const std::string address; ///< rank 0's
  std::unique_ptr<Connections> connections;
  std::shared_ptr<SharedPages> pages;
  uint32_t messengers = 0;
};

} // namespace

std::unique_ptr<Processes> joinBySockets(const processes::LaunchEnvironment &environment,
                                         const Program &program) {
  return std::make_unique<SocketProcesses>(environment, program);
}

std::unique_ptr<Messenger> SocketProcesses::messenger(const std::vector<int> &members,
                                                      const std::set<int> &peers) {
  if (!connections)
    connections = std::make_unique<Connections>(own.rendezvous, address);
  std::set<int> others;
  for (int peer : peers)
    others.insert(members[size_t(peer)]);
  connections->connect(others, streams, std::min(timeoutSeconds(), 300.0));
  uint32_t number = ++messengers;
  return members.empty() ? nullptr : std::make_unique<SocketMessenger>(streams, number, members);
}

RankView SocketProcesses::show(const Rank &) {
  own.place.phase = Phase::Unknown; // the set-up is over; the rank's body says what it does
  RankView view{&own.place, &own.flight, {}, nullptr};
  for (int r = 0; r < ranks(); ++r)
    view.places.push_back(r == rank() ? &own.place : own.rendezvous.placeOf(r));
  return view;
}

} // namespace partita_rt
