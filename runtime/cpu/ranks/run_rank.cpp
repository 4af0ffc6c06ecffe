// Runs a rank (run_rank.h).

#include "cpu/ranks/run_rank.h"
#include "common/mesh/launch.h"
#include "common/mesh/message.h"
#include "common/run_options.h"
#include "cpu/kernels/between_tiles.h"
#include "cpu/kernels/blas_buffers.h"
#include "cpu/process.h"
#include "cpu/ranks/transfer.h"
#include "partita_rt/work.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <vector>

extern "C" void openblas_set_num_threads(int);

namespace partita_rt {

void prepareMatmuls(int ranks, const RunOptions *options) {
  int threads = options ? int(options->threads) : 1;
  takeBlasBuffers(ranks, threads);
  openblas_set_num_threads(threads);
}

std::string failureText(const std::exception &error) {
  return dynamic_cast<const std::bad_alloc *>(&error) ? "out of memory" + addressSpaceText()
                                                      : error.what();
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

} // namespace

//===-- The run -----------------------------------------------------------------------------===//

namespace {

/// Moves on what the rank has started and not waited for.
void moveOn(Rank &rank) {
  constexpr int64_t kBytes = 512 << 10; // a tile takes far longer
  WorkScope scope(rank.clock, Work::Collectives);
  pollMessages(rank);
  rank.forGroups([](Communicator &group) { group.poll(kBytes); });
}

} // namespace

void runRank(Rank &rank, std::shared_ptr<void> &owner, const std::function<void(Rank &)> &body) {
  const Program &program = *rank.program;
  auto memory = std::make_shared<RankMemory>(rank);
  owner = memory;
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
  {
    BetweenTiles beside([&] { moveOn(rank); });
    body(rank);
  }
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

} // namespace partita_rt
