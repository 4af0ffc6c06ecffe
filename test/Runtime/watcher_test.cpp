// How a process ends on whose behalf another one has reported.

#include "common/mesh/launch.h"
#include "common/start_marks.h"
#include "common/temporary_file.h"
#include "cpu/watch/watcher.h"
#include "temporary_folder.h"

#include <chrono>
#include <future>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>

using namespace partita_rt;

namespace {

/// Two ranks of one node, in memory that their processes share.
struct SharedRank {
  RankPosition position;
  FlightRing flight;
};

class WatcherEnd : public Files {
protected:
  void SetUp() override {
    Files::SetUp();
    void *memory = mmap(nullptr, 2 * sizeof(SharedRank), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared = static_cast<SharedRank *>(memory);
    for (int r = 0; r < 2; ++r)
      new (&shared[r]) SharedRank();
  }
  void TearDown() override {
    munmap(shared, 2 * sizeof(SharedRank));
    Files::TearDown();
  }
  RanksInSight sightOf(int self) const {
    RanksInSight sight;
    for (int r = 0; r < 2; ++r) {
      sight.positions.push_back(&shared[r].position);
      sight.flights.push_back(&shared[r].flight);
      sight.names.push_back("rank " + std::to_string(r));
    }
    sight.own = {self};
    sight.local = {0, 1};
    return sight;
  }
  /// Starts the process of rank 0, which trains until its watcher ends it.
  pid_t startRank() const {
    pid_t process = fork();
    if (process != 0)
      return process;
    setTimeoutSeconds(1);
    setFlightFolder(folder + "/flight", MakeParents::Always);
    noteStep();
    shared[0].flight.note(Flight::Step, 7, 0, "");
    TemporaryFile half(folder + "/half");
    Watcher watcher("program", sightOf(0), nullptr);
    for (;;)
      pause();
  }
  std::string textOf(const char *name) const {
    std::ifstream file(folder + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  SharedRank *shared = nullptr;
};

TEST_F(WatcherEnd, RecordsTellsAndLetsTheReporterEndFirst) {
  pid_t process = startRank();
  while (shared[0].position.beats.load() < 3)
    usleep(1000);
  EXPECT_EQ(filesInFolder(), 1); // it is half written
  EXPECT_FALSE(shared[0].position.reportIsDue);
  auto begin = std::chrono::steady_clock::now();
  shared[1].position.runEnds = true; // what a rank sets that has printed why
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_GE(seconds.count(), 0.5);
  EXPECT_TRUE(shared[0].position.runEnds);     // for the handler of a signal
  EXPECT_TRUE(shared[0].position.reportIsDue); // its rank, which may wait, says nothing
  EXPECT_NE(textOf("flight/rank-0.jsonl").find("another rank has reported why the run ends"),
            std::string::npos);
  EXPECT_NE(textOf("flight/rank-0.jsonl").find("\"event\": \"step\", \"number\": 7"),
            std::string::npos);
  EXPECT_EQ(shared[1].flight.file.load(), FlightRing::File::None); // its own process writes that
  EXPECT_EQ(textOf("half"), "");
  EXPECT_EQ(filesInFolder(), 1); // the folder of flight recorders
}

TEST_F(WatcherEnd, ReportsWhatOneThatWasKilledHasNot) {
  pid_t killed = fork();
  if (killed == 0)
    _exit(0);
  siginfo_t info;
  waitid(P_PID, id_t(killed), &info, WEXITED | WNOWAIT);
  shared[0].position.reporter = killed;
  shared[1].position.beats = 1; // and no more
  pid_t process = startRank();
  int status = 0;
  for (int i = 0; i < 1000 && waitpid(process, &status, WNOHANG) == 0; ++i)
    usleep(10'000);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  EXPECT_NE(textOf("flight/rank-1.jsonl").find("rank 1 has stopped"), std::string::npos);
  kill(process, SIGKILL);
  waitpid(killed, nullptr, 0);
}

/// A rank's error lets the others write what they did, before all end.
TEST_F(WatcherEnd, LetsTheOthersWriteTheirFlights) {
  pid_t process = startRank();
  while (shared[0].position.beats.load() < 3)
    usleep(1000);
  setTimeoutSeconds(1);
  setFlightFolder(folder + "/flight", MakeParents::Always);
  noteStep();
  shared[1].flight.file = FlightRing::File::Written; // by its own process, this one
  {
    Watcher watcher("program", sightOf(1), nullptr);
    watcher.endOthers();
  }
  setFlightFolder("", MakeParents::Never);
  EXPECT_NE(textOf("flight/rank-0.jsonl").find("another rank has reported why the run ends"),
            std::string::npos);
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

/// Two processes, each a node of its own.
TEST(UdpHeartbeats, SayWhichNodesHaveNeverBeenHeard) {
  std::promise<std::string> said[2];
  std::shared_future<std::string> heard[2] = {said[0].get_future(), said[1].get_future()};
  auto join = [&](int self) {
    return std::make_unique<UdpHeartbeats>(
        self, std::vector<int>{0, 1}, [&, self](const std::string &mine) {
          said[self].set_value(mine);
          return std::vector<std::string>{heard[0].get(), heard[1].get()};
        });
  };
  auto other = std::async(std::launch::async, join, 1);
  std::unique_ptr<UdpHeartbeats> first = join(0), second = other.get();
  EXPECT_EQ(first->unheardNodes(), std::vector<int>{1});
  RankPosition position, seen;
  second->send(position);
  for (int i = 0; i < 100 && !first->unheardNodes().empty(); ++i) {
    first->wait(0.1);
    first->receive({nullptr, &seen});
  }
  EXPECT_TRUE(first->unheardNodes().empty());
  EXPECT_EQ(second->unheardNodes(), std::vector<int>{0});
}

} // namespace
