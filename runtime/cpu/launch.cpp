// Launches ranks on CPUs (common/mesh/launch.h).

#include "common/mesh/launch.h"
#include "common/exit_status.h"
#include "common/mesh/mesh.h"
#include "common/run_options.h"
#include "common/temporary_file.h"
#include "cpu/blas_buffers.h"
#include "cpu/channel.h"
#include "cpu/message_group.h"
#include "cpu/process.h"
#include "cpu/shared_window.h"
#include "cpu/thread_group.h"
#include "cpu/transfer.h"
#include "cpu/window_group.h"
#include "partita_rt/launchers.h"
#include "partita_rt/printable.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>

extern "C" void openblas_set_num_threads(int);

namespace partita_rt {

/// Prepares matmuls for the ranks of this process.
static void prepareMatmuls(int ranks, const RunOptions *options) {
  int threads = options ? int(options->threads) : 1;
  takeBlasBuffers(ranks, threads);
  openblas_set_num_threads(threads);
}

//===-- Memory ------------------------------------------------------------------------------===//

namespace {

/// Zeroed pages, huge if the system has them (attention and GEMM walk over many rows at once).
class Pages {
public:
  Pages(int64_t bytes, const char *what) : bytes(bytes) {
    if (bytes == 0)
      return;
    void *memory =
        mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::string why = std::strerror(errno);
      why += addressSpaceText();
      fail("cannot allocate %lld bytes for the %s: %s", (long long)bytes, what, why.c_str());
    }
    madvise(memory, size_t(bytes), MADV_HUGEPAGE);
    base = static_cast<char *>(memory);
  }
  ~Pages() {
    if (base)
      munmap(base, size_t(bytes));
  }
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;
  char *base = nullptr;

private:
  int64_t bytes;
};

/// The memory of a rank.
struct RankMemory {
  explicit RankMemory(const Rank &rank)
      : persistent(rank.stage->persistentBytes, "persistent memory"),
        arena(arenaBytes(*rank.stage, rank.options), "arena"),
        host(rank.stage->hostBytes, "host's memory"),
        pinned(rank.stage->pinnedBytes, "pinned memory"),
        inputs(inputBytes(*rank.program), "inputs") {}
  Pages persistent, arena, host, pinned, inputs;
  TransferEngine transfers;
  std::vector<void *> inputAt; ///< start of each input
};

/// Gives the rank its memory, runs the body, and checks that nothing is left pending. The caller
/// keeps the memory until no other rank can be accessing it.
void runRank(Rank &rank, std::unique_ptr<RankMemory> &memory,
             const std::function<void(Rank &)> &body) {
  const Program &program = *rank.program;
  memory = std::make_unique<RankMemory>(rank);
  rank.persistentBase = memory->persistent.base;
  rank.arenaBase = memory->arena.base;
  rank.hostBase = memory->host.base;
  rank.pinnedBase = memory->pinned.base;
  rank.transfers = &memory->transfers;
  for (int64_t offset : inputOffsets(program))
    memory->inputAt.push_back(memory->inputs.base + offset);
  rank.inputs = rank.hostInputs = memory->inputAt.data();
  rank.hyper = program.hyper;
  rank.learningRate = program.hyper.learningRate;
  body(rank);
  // End with one more collective per group and a mark after the last message of every channel. All
  // are started before any is waited for, so a rank that waits in a surplus collective or message
  // learns of it.
  std::vector<Pending> ends;
  std::vector<PendingMessage> messages;
  rank.forChannels(
      [&](ChannelEnd &end) { messages.push_back(markEnd(end, "the end of the program")); });
  rank.forGroups(
      [&](Communicator &group) { ends.push_back(barrierStart(group, "the end of the program")); });
  ends.push_back(barrierStart(*rank.world, "the end of the program"));
  for (Pending end : ends)
    wait(end);
  for (PendingMessage end : messages)
    wait(end);
}

} // namespace

//===-- Threads -----------------------------------------------------------------------------===//

static std::string textOf(const std::exception &error) {
  return dynamic_cast<const std::bad_alloc *>(&error) ? "out of memory" + addressSpaceText()
                                                      : error.what();
}

namespace {

/// The end of ranks that are threads. A rank that fails waits here for the others, which stop at
/// their next wait. A rank that never arrives, for example because its read of a file hangs, must
/// not hold the message back: the process then ends without it.
class Ending {
public:
  Ending(const Program &program, const FailureFlag &failure, int ranks,
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
      writeFlight(channels[size_t(r)].waits->flight(), r, rankText(program, r).c_str(),
                  failure.message().c_str());
  }

private:
  [[noreturn]] void end() const {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: error: %s: %s\n", program.name,
                 rankText(program, failure.rank()).c_str(), printable(failure.message()).c_str());
    record();
    removeTemporaryFiles();
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

static std::string runThreads(const Program &program, const RunOptions *options,
                              const std::function<void(Rank &)> &body) {
  int ranks = rankCount(program);
  FailureFlag failure;
  // Keyed by the groups' row and first rank.
  std::map<std::pair<int, int>, std::shared_ptr<ThreadGroup::Shared>> shared;
  std::vector<std::unique_ptr<Communicator>> groups;
  std::vector<Rank> all(static_cast<size_t>(ranks));
  std::vector<std::unique_ptr<RankMemory>> memories(static_cast<size_t>(ranks));

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
    placeOnMesh(rank, program, r);
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
  Ending ending(program, failure, ranks, channels);
  auto guarded = [&](Rank &rank) {
    bool failed = false;
    try {
      runRank(rank, memories[size_t(rank.rank)], body);
    } catch (const StoppedByOther &) {
    } catch (const std::exception &error) {
      failure.raise(rank.rank, atSlot(rank) + textOf(error));
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

//===-- MPI processes -----------------------------------------------------------------------===//

namespace {

/// Makes the group of the processes of `comm`, which it takes over: a shared window if they are on
/// one node, else messages. PARTITA_RT_TRANSPORT=messages forces messages.
std::unique_ptr<Communicator> joinProcesses(const char *name, int rank, int size, MPI_Comm comm,
                                            int64_t placeBytes) {
  if (size == 1)
    return std::make_unique<LonelyGroup>(name);
  MPI_Comm node;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int nodeSize = 0;
  MPI_Comm_size(node, &nodeSize);
  // Ranks of one node may disagree with those of another: use messages if any needs them.
  int needed = asksForMessages() || nodeSize != size, any = 0;
  MPI_Allreduce(&needed, &any, 1, MPI_INT, MPI_MAX, comm);
  if (any)
    return std::make_unique<MessageGroup>(name, rank, size, comm);

  int64_t slotBytes = (sizeof(BoardSlot) + 4095) / 4096 * 4096;
  int64_t stagingBytes = placeBytes * int64_t(WindowGroup::kPlaces);
  SharedWindow window = shareMemory(node, slotBytes + stagingBytes);
  std::vector<BoardSlot *> slots;
  std::vector<char *> staging;
  for (char *place : window.places) {
    slots.push_back(reinterpret_cast<BoardSlot *>(place));
    staging.push_back(place + slotBytes);
  }
  new (slots[size_t(rank)]) BoardSlot();
  MPI_Barrier(node); // every slot is constructed before others look at it
  return std::make_unique<WindowGroup>(name, rank, size, slots.data(), staging.data(), placeBytes,
                                       std::move(window.owner));
}

} // namespace

static void runProcess(int number, const Program &program, const RunOptions *options,
                       const std::function<void(Rank &)> &body) {
  std::vector<std::unique_ptr<Communicator>> groups;
  std::unique_ptr<RankMemory> memory;
  RankChannels channels;
  std::unique_ptr<Watcher> watcher;
  Rank rank;
  placeOnMesh(rank, program, number);
  rank.options = options;
  try {
    for (const Membership &own : membershipsOf(rank)) {
      MPI_Comm comm;
      bool member = own.size() > 0;
      MPI_Comm_split(MPI_COMM_WORLD, member ? own.ranks.front() : MPI_UNDEFINED, own.position,
                     &comm);
      if (!member)
        continue;
      groups.push_back(joinProcesses(own.name, own.position, own.size(), comm, 512 << 10));
      rank.groups[own.row] = groups.back().get();
    }
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    groups.push_back(joinProcesses("world", rank.rank, rank.ranks, comm, 64 << 10));
    rank.world = groups.back().get();
    channels = makeProcessChannels(rank);
    if (channels.waits)
      watcher = std::make_unique<Watcher>(program.name, std::move(channels.sight), nullptr);
    prepareMatmuls(1, options);
    runRank(rank, memory, body);
  } catch (const std::exception &error) {
    // Several ranks may see the same error: the lowest prints first, and its abort silences the
    // rest.
    usleep(useconds_t(200'000) * useconds_t(std::min(number, 20)));
    std::fflush(stdout);
    std::fprintf(stderr, "%s: error: %s: %s\n", program.name, rankText(program, number).c_str(),
                 printable(atSlot(rank) + textOf(error)).c_str());
    std::fflush(stderr);
    if (channels.waits) {
      channels.waits->endWatch();
      writeFlight(channels.waits->flight(), number, rankText(program, number).c_str(),
                  error.what());
    }
    MPI_Abort(MPI_COMM_WORLD, failureStatus());
  }
}

//===-- World -------------------------------------------------------------------------------===//

/// Empty; exists for processes that mpirun started. Without it the program's ranks are threads.
struct World::Launch {};

namespace {

/// Returns the launcher that started the process as one of several without joining them by MPI, so
/// that each would train the full model; null if none did. Processes started by Open MPI's mpirun
/// are joined, whatever is around mpirun.
const Launcher *foreignLauncher() {
  if (std::getenv(kOpenMpi.ranks))
    return nullptr;
  for (const Launcher *launcher : {&kTorchrun, &kPmi, &kSlurm})
    if (std::getenv(launcher->rank) && launchNumber(launcher->ranks) > 1)
      return launcher;
  return nullptr;
}

/// Was the process started by a launcher that MPI can ask for its place?
bool isMpiProcess() {
  if (std::getenv(kOpenMpi.ranks))
    return true;
  // Slurm offers PMI to steps of one task as well, in which all ranks should be threads.
  return !isOnlyProcess() && (std::getenv(kPmi.ranks) || std::getenv(kPmix.rank));
}

/// Returns this process's arguments, quoted for a shell: " ./gpt2 --data 'my tokens.bin' ...".
std::string ownCommand() {
  std::string text;
  for (const std::string &word : commandLine()) {
    bool plain = !word.empty();
    for (char c : word)
      plain =
          plain && (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("-_./:=,+@%", c));
    text += " ";
    if (plain) {
      text += word;
      continue;
    }
    text += "'";
    for (char c : word)
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

} // namespace

World::World(const Program &) {
  startWithoutBlasThreads();
  if (!isMpiProcess()) {
    if (const Launcher *launcher = foreignLauncher())
      processRank = launchNumber(launcher->rank); // for messages about itself
    return;
  }
  launch = std::make_unique<Launch>();
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &processRank);
  MPI_Comm_size(MPI_COMM_WORLD, &processCount);
}

World::~World() {
  if (launch)
    MPI_Finalize();
}

bool World::isFirstStarted() {
  if (const Launcher *launcher = foreignLauncher())
    return launchNumber(launcher->rank) == 0;
  // The number that MPI itself uses; 0 if there is none.
  return launchNumber(std::getenv(kOpenMpi.ranks) ? kOpenMpi.rank : kPmix.rank) == 0;
}

std::string World::usage(const Program &program) {
  return std::string("mpirun -np RANKS ") + program.name + " ...";
}

void World::check(const Program &program) const {
  int ranks = rankCount(program);
  const Launcher *launcher = processCount == 1 ? foreignLauncher() : nullptr;
  if (launcher)
    fail("%s started %d processes (%s, %s), each of which would train the full model; the ranks of "
         "a CPU program are threads of one process, or processes of Open MPI's mpirun. Use: mpirun "
         "-np %d%s",
         launcher->name, launchNumber(launcher->ranks), launcher->rank, launcher->ranks, ranks,
         ownCommand().c_str());
  if (launch && processCount != ranks)
    fail("the program was compiled for %d ranks (%s), mpirun started %d process%s; start %d, or "
         "compile it with another --mesh",
         ranks, meshText(program).c_str(), processCount, processCount == 1 ? "" : "es", ranks);
}

std::string World::agree(const std::string &error) {
  if (!launch)
    return error;
  int mine = error.empty() ? processCount : processRank, lowest = processCount;
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == processCount)
    return "";
  int length = int(error.size());
  MPI_Bcast(&length, 1, MPI_INT, lowest, MPI_COMM_WORLD);
  std::string text = error;
  text.resize(size_t(length));
  MPI_Bcast(&text[0], length, MPI_CHAR, lowest, MPI_COMM_WORLD);
  return text;
}

std::string World::run(const Program &program, const RunOptions *options,
                       const std::function<void(Rank &)> &body) {
  if (launch) {
    runProcess(processRank, program, options, body);
    return "";
  }
  try {
    prepareMatmuls(rankCount(program), options);
  } catch (const std::exception &error) {
    return error.what();
  }
  return runThreads(program, options, body);
}

} // namespace partita_rt
