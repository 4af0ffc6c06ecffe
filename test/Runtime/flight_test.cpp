// What a rank's flight recorder keeps, and its file.

#include "common/start_marks.h"
#include "common/watch/flight.h"
#include "temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <unistd.h>
#include <vector>

using namespace partita_rt;

namespace {

class FlightRecorder : public InTemporaryFolder {
protected:
  void SetUp() override {
    InTemporaryFolder::SetUp();
    setFlightFolder(folder + "/some/where", MakeParents::Always);
  }
  void TearDown() override {
    setFlightFolder("", MakeParents::Never);
    InTemporaryFolder::TearDown();
  }
  std::vector<std::string> written(int rank) {
    std::vector<std::string> lines;
    std::ifstream file(folder + "/some/where/rank-" + std::to_string(rank) + ".jsonl");
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
    return lines;
  }
  std::unique_ptr<FlightRing> ring = std::make_unique<FlightRing>();
};

/// Returns a line without its times.
std::string withoutTime(const std::string &line) { return line.substr(line.find(", ") + 2); }

TEST_F(FlightRecorder, NothingIsWrittenBeforeAStep) {
  if (failureStatus() != 1)
    GTEST_SKIP() << "another test of this process has made a step";
  ring->note(Flight::Phase, 0, 0, "set-up");
  writeFlight(*ring, 0, "rank 0", "wrong data");
  EXPECT_TRUE(written(0).empty());
}

/// Of more events than the ring has, the first are counted by the second.
TEST_F(FlightRecorder, SecondsAreWrittenOfWhatTheRingHasForgotten) {
  noteStep();
  ring->note(Flight::Step, 3, 0, "");
  for (int i = 0; i < 10; ++i)
    ring->note(Flight::Start, i, 100, "dp");
  usleep(1'100'000);
  for (uint64_t i = 0; i < FlightRing::kEvents; ++i)
    ring->note(Flight::Done, int64_t(i), 0, "dp");
  writeFlight(*ring, 3, "rank 3", "rank 1 died");
  std::vector<std::string> lines = written(3);
  ASSERT_GT(lines.size(), FlightRing::kEvents + 1);
  EXPECT_NE(lines[1].find(R"("event": "second", "number": 3, "steps": )"), std::string::npos)
      << lines[1];
  int64_t collectives = 0, bytes = 0;
  for (const std::string &line : lines) // the ten may lie in two seconds
    if (size_t at = line.find(R"("collectives": )"); at != std::string::npos) {
      long long count = 0, its = 0;
      std::sscanf(line.c_str() + at, R"("collectives": %lld, "messages": 0, "bytes": %lld)", &count,
                  &its);
      collectives += count, bytes += its;
    }
  EXPECT_EQ(collectives, 10);
  EXPECT_EQ(bytes, 1000);
}

TEST_F(FlightRecorder, EventsAreWrittenInTheirOrder) {
  noteStep();
  ring->note(Flight::Step, 3, 0, "");
  ring->note(Flight::Work, 0, 0, "forward");
  ring->note(Flight::Start, 7, 4096, "dp", " ", "the gradients of all parameters of a model");
  ring->note(Flight::Done, 7, 0, "dp");
  writeFlight(*ring, 12, "rank 12 of stage 1", "rank 3: \"a\\b\"\n is too much");
  std::vector<std::string> lines = written(12);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].substr(0, 73),
            R"({"start": 0.000000, "rank": 12, "name": "rank 12 of stage 1", "written": )");
  EXPECT_NE(lines[0].find(R"("reason": "rank 3: \"a\\b\"  is too much"})"), std::string::npos);
  EXPECT_EQ(lines[1].substr(0, 9), R"({"time": )");
  EXPECT_EQ(withoutTime(lines[1]), R"("event": "step", "number": 3})");
  EXPECT_EQ(withoutTime(lines[2]), R"("event": "work", "text": "forward"})");
  EXPECT_EQ(
      withoutTime(lines[3]),
      R"("event": "start", "number": 7, "bytes": 4096, "text": "dp the gradients of all parameters of a"})");
  EXPECT_EQ(withoutTime(lines[4]), R"("event": "done", "number": 7, "text": "dp"})");
}

TEST_F(FlightRecorder, AFileThatCannotBeWrittenIsReported) {
  ASSERT_EQ(mkdir((folder + "/some").c_str(), 0777), 0);
  ASSERT_EQ(mkdir((folder + "/some/where").c_str(), 0777), 0);
  ASSERT_EQ(symlink("/dev/full", (folder + "/some/where/rank-3.jsonl").c_str()), 0);
  noteStep();
  ring->note(Flight::Step, 3, 0, "");
  testing::internal::CaptureStderr();
  writeFlight(*ring, 3, "rank 3", "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: the flight recorder's file " + folder +
                "/some/where/rank-3.jsonl is incomplete or missing: No space left on device\n");
}

TEST_F(FlightRecorder, TheRingKeepsTheLastEvents) {
  noteStep();
  for (int step = 0; step < 10'000; ++step)
    ring->note(Flight::Step, step, 0, "");
  writeFlight(*ring, 0, "rank 0", "");
  std::vector<std::string> lines = written(0);
  size_t first = lines.size() - FlightRing::kEvents; // before them: the rank, and a second or two
  ASSERT_GE(first, 2u);
  for (size_t at = 1; at < first; ++at)
    EXPECT_NE(lines[at].find(R"("event": "second")"), std::string::npos) << lines[at];
  EXPECT_EQ(withoutTime(lines[first]), R"("event": "step", "number": 5904})");
  EXPECT_EQ(withoutTime(lines.back()), R"("event": "step", "number": 9999})");
  writeFlight(*ring, 1, "rank 0", ""); // once is enough
  EXPECT_TRUE(written(1).empty());
}

/// The folder `earlier` may be the user's, or have files of his.
TEST_F(FlightRecorder, NothingElseIsMovedOrRemoved) {
  std::string here = folder + "/some/where", earlier = here + "/earlier";
  std::filesystem::create_directories(earlier + "/mine");
  for (const char *path : {"/rank-0.jsonl", "/notes", "/earlier/rank-7.jsonl", "/earlier/results",
                           "/earlier/mine/rank-7.jsonl"})
    std::ofstream(here + path) << "text";
  setEarlierFlightsAside();
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(here))
    names.insert(entry.path().string().substr(here.size()));
  EXPECT_EQ(names, (std::set<std::string>{"/earlier", "/earlier/mine", "/earlier/mine/rank-7.jsonl",
                                          "/earlier/rank-0.jsonl", "/earlier/results", "/notes"}));
}

/// Rank 0 of an earlier start was killed, and another rank of it ends after the next start has failed.
TEST_F(FlightRecorder, ALateRankOfAnEarlierStartReplacesNothing) {
  constexpr int64_t kEarlier = 1'795'813'590'112'203, kLater = kEarlier + 1;
  noteStep();
  auto write = [](int64_t start, const char *reason) {
    auto own = std::make_unique<FlightRing>();
    setStartOfFlights(start);
    writeFlight(*own, 1, "rank 1", reason);
    setStartOfFlights(0);
  };
  write(kEarlier, "early");
  write(kLater, "in its place");
  write(kEarlier, "late");
  EXPECT_NE(written(1).at(0).find("in its place"), std::string::npos);
  EXPECT_EQ(written(1).at(0).substr(0, 28), R"({"start": 1795813590.112204,)");
  std::ifstream file(folder + "/some/where/earlier/rank-1.jsonl");
  std::string line;
  std::getline(file, line);
  EXPECT_NE(line.find("late"), std::string::npos) << line;
}

TEST_F(FlightRecorder, AForeseenEndIsReplacedOrWithdrawn) {
  noteStep();
  std::string here = folder + "/some/where";
  setFlightFolder(here, MakeParents::UntilNoted);
  foreseeFlight(*ring, 2, "rank 2", "a signal");
  EXPECT_NE(written(2).at(0).find("a signal"), std::string::npos);
  foreseeFlight(*ring, 3, "rank 3", "once is enough");
  EXPECT_TRUE(written(3).empty());
  withdrawFlight(*ring, 2);
  EXPECT_FALSE(std::filesystem::exists(here));
  foreseeFlight(*ring, 2, "rank 2", "a signal");
  writeFlight(*ring, 2, "rank 2", "an error");
  withdrawFlight(*ring, 2);
  EXPECT_NE(written(2).at(0).find("an error"), std::string::npos);
}

TEST_F(FlightRecorder, AFolderThatCannotBeMadeIsNoError) {
  noteStep();
  std::ofstream(folder + "/some") << "a file";
  writeFlight(*ring, 0, "rank 0", "");
  EXPECT_TRUE(written(0).empty());
}

} // namespace
