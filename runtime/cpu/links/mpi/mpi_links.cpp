// Processes that MPI's launcher has started (cpu/links/process_links.h). MPI's default error handler ends the
// job with its own message, so return codes are not checked.

#include "common/last_line.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/mesh/node_order.h"
#include "common/start_marks.h"
#include "cpu/links/mpi/meetings.h"
#include "cpu/links/mpi/mpi_messenger.h"
#include "cpu/links/process_links.h"
#include "cpu/watch/deaths.h"
#include "cpu/watch/waits.h"
#include "cpu/watch/watcher.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/machine.h"
#include "partita_rt/signal_masks.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <unistd.h>

namespace partita_rt {

namespace {

/// How long a rank waits for another one that has printed the same error, and ends all, in seconds.
constexpr unsigned kSpeakersPatience = 2;

class MpiLinks final : public ProcessLinks {
public:
  explicit MpiLinks(const Program &program) : program(program), meetings(program.name) {
    Meetings::Scope scope(meetings, "MPI_Init");
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    findNodes();
    if (count > 1 && allExpect(count))
      showRanks();
  }
  ~MpiLinks() override {
    allGather("", "the end of the run");
    Meetings::Scope scope(meetings, "MPI_Finalize");
    meetings.forget();
    deaths.reset();
    shown.reset();
    MPI_Finalize();
  }
  int rank() const override { return self; }
  int ranks() const override { return count; }
  std::vector<int> launcherNumbers() const override { return numbers; }

  std::vector<std::string> allGather(const std::string &mine, const char *what) override;
  NodeMemory shareMemory(int64_t bytes) override;
  std::unique_ptr<Messenger> messenger(const std::vector<int> &members,
                                       const std::set<int> &) override;
  RankView show(const Rank &rank) override;
  std::shared_ptr<void> watch(RankWaits &waits) override;
  [[noreturn]] void fail(const std::string &message) override;

private:
  void writeOwnFlight(const std::string &reason) const;
  void findNodes();
  bool allExpect(int ranks) const;
  void showRanks();

  const Program &program;
  Meetings meetings;
  int self = 0, count = 1;
  MPI_Comm all = MPI_COMM_NULL;     ///< by rank on the mesh, as what follows
  MPI_Comm node = MPI_COMM_NULL;    ///< this process's
  std::vector<int> local;           ///< ranks of the node
  std::vector<int> nodes;           ///< by rank: the lowest rank of its node
  std::vector<int> numbers;         ///< by rank: the launcher's
  std::shared_ptr<void> shown;      ///< memory of the node, with what its ranks show
  RanksInSight sight;               ///< until they are watched
  RankPosition *position = nullptr; ///< this rank's, as what follows
  FlightRing *flight = nullptr;
  std::string ownName; ///< in reports
  std::optional<DeathWatch>
      deaths;                     ///< from the start, as far as the program may have so many ranks
  std::weak_ptr<Watcher> watcher; ///< from when ranks can fail each other
};

} // namespace

std::unique_ptr<ProcessLinks> joinByMpi(const Program &program) {
  return std::make_unique<MpiLinks>(program);
}

//===-- Set-up ------------------------------------------------------------------------------===//

std::vector<std::string> MpiLinks::allGather(const std::string &mine, const char *what) {
  Meetings::Scope scope(meetings, what, /*isCounted=*/true);
  int length = int(mine.size()), sum = 0;
  std::vector<int> lengths(static_cast<size_t>(count)), starts;
  MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, all);
  for (int each : lengths) {
    starts.push_back(sum);
    sum += each;
  }
  std::string together(size_t(sum), 0);
  MPI_Allgatherv(mine.data(), length, MPI_BYTE, together.data(), lengths.data(), starts.data(),
                 MPI_BYTE, all);
  std::vector<std::string> texts;
  for (size_t r = 0; r < lengths.size(); ++r)
    texts.push_back(together.substr(size_t(starts[r]), size_t(lengths[r])));
  return texts;
}

/// Finds the processes of each node, and numbers all as the mesh has them.
void MpiLinks::findNodes() {
  int launched = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &launched);
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, launched, MPI_INFO_NULL, &machine);
  MPI_Comm_split(machine, pretendedNode(launched).value_or(0), launched, &node);
  int first = launched;
  MPI_Bcast(&first, 1, MPI_INT, 0, node);
  std::vector<int> firsts(static_cast<size_t>(count));
  MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<std::string> names;
  for (int each : firsts)
    names.push_back(std::to_string(each));
  std::vector<int> ranks = meshRanks(names);
  self = ranks[size_t(launched)];
  MPI_Comm_split(MPI_COMM_WORLD, 0, self, &all);
  numbers.resize(size_t(count));
  nodes.resize(size_t(count));
  for (size_t i = 0; i < ranks.size(); ++i) {
    numbers[size_t(ranks[i])] = int(i);
    nodes[size_t(ranks[i])] = ranks[size_t(firsts[i])];
  }
  for (int r = 0; r < count; ++r)
    if (nodes[size_t(r)] == nodes[size_t(self)])
      local.push_back(r);
}

NodeMemory MpiLinks::shareMemory(int64_t bytes) {
  Meetings::Scope scope(meetings, "the set-up of shared memory", /*isCounted=*/true);
  auto *window = new MPI_Win;
  char *base = nullptr;
  MPI_Win_allocate_shared(MPI_Aint(bytes + 64), 1, MPI_INFO_NULL, node, &base, window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, *window);
  NodeMemory memory;
  memory.owner = std::shared_ptr<void>(window, [](void *pointer) {
    auto *window = static_cast<MPI_Win *>(pointer);
    MPI_Win_unlock_all(*window);
    MPI_Win_free(window);
    delete window;
  });
  memory.nodes = nodes;
  memory.regions.resize(size_t(count));
  for (size_t i = 0; i < local.size(); ++i) {
    MPI_Aint length;
    int unit;
    char *at;
    MPI_Win_shared_query(*window, int(i), &length, &unit, &at);
    memory.regions[size_t(local[i])] = at + (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64;
  }
  return memory;
}

std::unique_ptr<Messenger> MpiLinks::messenger(const std::vector<int> &members,
                                               const std::set<int> &) {
  Meetings::Scope scope(meetings, "the set-up of messages", /*isCounted=*/true);
  MPI_Comm comm;
  MPI_Comm_split(all, members.empty() ? MPI_UNDEFINED : members.front(), self, &comm);
  return members.empty() ? nullptr : std::make_unique<MpiMessenger>(comm);
}

/// Together: have all processes a program for so many ranks? They may be of different builds.
bool MpiLinks::allExpect(int ranks) const {
  int expects = rankCount(program) == ranks, allDo = 0;
  MPI_Allreduce(&expects, &allDo, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return allDo != 0;
}

//===-- Watching ----------------------------------------------------------------------------===//

/// Makes what the node's ranks show, and lets them find each other's death from here on: in the set-up too,
/// launchers end all ranks when one was killed, and only one of them may be left to say so.
void MpiLinks::showRanks() {
  NodeMemory memory = shareMemory(sizeof(ShownRank));
  shown = memory.owner;
  sight.own = {self};
  sight.local = local;
  sight.positions.resize(size_t(count));
  sight.flights.resize(size_t(count));
  new (memory.regions[size_t(self)]) ShownRank();
  std::vector<std::string> hosts = allGather(hostName(), "hosts"),
                           ids = allGather(std::to_string(getpid()), "processes");
  for (int r = 0; r < count; ++r)
    sight.names.push_back(
        processText(rankText(program, r), hosts[size_t(r)], std::atoi(ids[size_t(r)].c_str())));
  std::vector<DeathWatch::Watched> watched;
  std::vector<Meetings::Member> members;
  for (int r : local) { // all are constructed: the gathers have passed
    auto *its = reinterpret_cast<ShownRank *>(memory.regions[size_t(r)]);
    sight.positions[size_t(r)] = &its->position;
    sight.flights[size_t(r)] = &its->flight;
    watched.push_back({r, sight.names[size_t(r)], &its->position, &its->flight});
    members.push_back({r, sight.names[size_t(r)], its});
  }
  meetings.know(self, std::move(members), local.size() == size_t(count));
  position = sight.positions[size_t(self)];
  flight = sight.flights[size_t(self)];
  ownName = sight.names[size_t(self)];
  deaths.emplace(self, std::move(watched), /*areAll=*/local.size() == size_t(count));
}

RankView MpiLinks::show(const Rank &) {
  struct Seen {
    std::shared_ptr<void> shown;
    std::vector<RankPosition> remote; ///< of other nodes' ranks, if this process watches them
  };
  auto seen = std::make_shared<Seen>(Seen{shown, {}});
  if (local.size() < size_t(count)) {
    sight.remote = std::make_unique<UdpHeartbeats>(
        self, nodes, [this](const std::string &mine) { return allGather(mine, "endpoints"); });
    if (sight.remote->watches()) {
      seen->remote = std::vector<RankPosition>(size_t(count));
      for (size_t r = 0; r < nodes.size(); ++r)
        if (nodes[r] != nodes[size_t(self)])
          sight.positions[r] = &seen->remote[r];
    }
  }
  Meetings::Scope scope(meetings, "the beginning of the watch", /*isCounted=*/true);
  position->beats = 1; // watched from here on
  MPI_Barrier(node);
  RankView view{position, flight, {}, seen};
  view.positions.assign(sight.positions.begin(), sight.positions.end());
  return view;
}

std::shared_ptr<void> MpiLinks::watch(RankWaits &) {
  auto made = std::make_shared<Watcher>(program.name, std::move(sight), nullptr);
  watcher = made;
  return made;
}

/// Writes the rank's flight recorder, and lets no launcher's signal end it meanwhile.
void MpiLinks::writeOwnFlight(const std::string &reason) const {
  SignalsBlocked blocked;
  writeFlight(*flight, self, ownName.c_str(), reason.c_str());
}

void MpiLinks::fail(const std::string &message) {
  std::shared_ptr<Watcher> watched = watcher.lock();
  if (watched)
    writeOwnFlight(message);
  // Several ranks may see the same error: the lowest prints first, and ends the rest.
  usleep(useconds_t(200'000) * useconds_t(std::min(self, 20)));
  bool speaks = !deaths || deaths->endWithError();
  if (speaks)
    printLastLine(program.name, rankText(program, self) + ": " + message);
  markError(message);
  if (!speaks)
    sleep(kSpeakersPatience);
  if (watched && failureStatus() == kFailedWhileTraining)
    watched->endOthers();
  MPI_Abort(MPI_COMM_WORLD, failureStatus());
  _exit(failureStatus());
}

} // namespace partita_rt
