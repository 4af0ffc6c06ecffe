// Ranks that are threads of this process (thread_ranks.h).

#include "cpu/ranks/thread_ranks.h"
#include "common/last_line.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/run_options.h"
#include "common/start_marks.h"
#include "common/temporary_file.h"
#include "cpu/groups/channel.h"
#include "cpu/groups/thread_group.h"
#include "cpu/process.h"
#include "cpu/ranks/run_rank.h"
#include "partita_rt/machine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace partita_rt {

namespace {

/// The end of ranks that are threads. A rank that fails waits here for the others, which stop at
/// their next wait. A rank that never arrives, for example because its read of a file hangs, must
/// not hold the message back: the process then ends without it.
class ThreadsEnd {
public:
  ThreadsEnd(const Program &program, const FailureFlag &failure, int ranks,
             const std::vector<RankChannels> &channels)
      : program(program), failure(failure), channels(channels), running(ranks) {}

  void arrive(bool failed) {
    std::unique_lock<std::mutex> lock(mutex);
    --running;
    all.notify_all();
    std::chrono::duration<double> patience(std::min(timeoutSeconds(), 10.0));
    if (failed && !all.wait_for(lock, patience, [this] { return running <= 0; }))
      end();
  }
  /// Excludes ranks whose threads could not be started.
  void leaveOut(int ranks) {
    std::unique_lock<std::mutex> lock(mutex);
    running -= ranks;
    all.notify_all();
  }
  /// Writes what the ranks did last.
  void record() const {
    for (int r = 0; r < int(channels.size()); ++r)
      writeFlight(channels[size_t(r)].waits->flight(), r,
                  processText(rankText(program, r), hostName(), getpid()).c_str(),
                  failure.message().c_str());
  }

private:
  [[noreturn]] void end() const {
    printLastLine(program.name, rankText(program, failure.rank()) + ": " + failure.message());
    record();
    removeTemporaryFiles();
    markError(failure.message());
    _exit(failureStatus());
  }

  const Program &program;
  const FailureFlag &failure;
  const std::vector<RankChannels> &channels;
  std::mutex mutex;
  std::condition_variable all;
  int running;
};

} // namespace

std::string runThreads(const Program &program, const RunOptions *options,
                       const std::function<void(Rank &)> &body) {
  int ranks = rankCount(program);
  FailureFlag failure;
  // Keyed by the groups' row and first rank.
  std::map<std::pair<int, int>, std::shared_ptr<ThreadGroup::Shared>> shared;
  std::vector<std::unique_ptr<Communicator>> groups;
  std::vector<Rank> all(static_cast<size_t>(ranks));
  std::vector<std::shared_ptr<void>> memories(static_cast<size_t>(ranks));

  auto join = [&](std::pair<int, int> key, const char *name, int rank, int size) -> Communicator * {
    if (size == 1) {
      groups.push_back(std::make_unique<LonelyGroup>(name));
      return groups.back().get();
    }
    auto &state = shared[key];
    if (!state)
      state = std::make_shared<ThreadGroup::Shared>(size);
    groups.push_back(std::make_unique<ThreadGroup>(name, rank, state, &failure));
    return groups.back().get();
  };
  for (int r = 0; r < ranks; ++r) {
    Rank &rank = all[size_t(r)];
    setCoordinates(rank, program, r);
    rank.options = options;
    for (const Membership &own : membershipsOf(rank))
      if (own.size() > 0)
        rank.groups[own.row] =
            join({own.row, own.ranks.front()}, own.name, own.position, own.size());
    rank.world = join({-1, 0}, "world", r, ranks);
  }

  std::vector<RankChannels> channels = makeThreadChannels(all, failure);

  std::unique_ptr<Watcher> watcher;
  if (ranks > 1)
    try {
      watcher = std::make_unique<Watcher>(program.name, sightOfThreads(program, channels),
                                          [&] { return failure.raised(); });
    } catch (const std::system_error &error) {
      return std::string("rank 0: the thread that watches the ranks cannot be started: ") +
             error.what() + addressSpaceText();
    }
  ThreadsEnd ending(program, failure, ranks, channels);
  auto guarded = [&](Rank &rank) {
    bool failed = false;
    try {
      runRank(rank, memories[size_t(rank.rank)], body);
    } catch (const StoppedByOther &) {
    } catch (const std::exception &error) {
      failure.raise(rank.rank, atSlot(rank) + failureText(error));
      failed = true;
    }
    enterPhase(rank, Phase::Ended);
    ending.arrive(failed);
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 1; r < ranks; ++r)
      threads.emplace_back(guarded, std::ref(all[size_t(r)]));
    guarded(all[0]);
  } catch (const std::system_error &error) {
    failure.raise(int(threads.size()) + 1, std::string("its thread cannot be started: ") +
                                               error.what() + addressSpaceText());
    ending.leaveOut(ranks - int(threads.size()));
  }
  for (std::thread &thread : threads)
    thread.join();
  if (!failure.raised())
    return "";
  ending.record();
  return ranks == 1 ? failure.message()
                    : rankText(program, failure.rank()) + ": " + failure.message();
}

} // namespace partita_rt
