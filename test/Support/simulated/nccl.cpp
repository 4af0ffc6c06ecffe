// Collectives between processes (nccl.h). A communicator's ranks share one anonymous file for their
// progress; the unique id is its owner's process and descriptor. Each rank also has a file with its
// latest contribution. Nothing has a name that could outlive the processes.

#include <nccl.h>

#include "simulated/collective.h"
#include "simulated/queue.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

using simulated::Collective, simulated::nameOf, simulated::received, simulated::widthOf;
using Kind = Collective::Kind;

constexpr int kMostRanks = 64;

/// The state that the ranks of a communicator share.
struct Board {
  struct Rank {
    std::atomic<int> process, file; ///< the location of its contributions
    std::atomic<uint64_t> given;    ///< contributions written to the file so far
    std::atomic<uint64_t> taken;    ///< collectives completed by this rank
    std::atomic<uint64_t> bytes;    ///< of the latest contribution
  };
  std::atomic<int> joined, opened, size, aborted;
  Rank ranks[kMostRanks];
};

thread_local std::string lastFailure;
thread_local int groupDepth = 0;

ncclResult_t wrong(ncclResult_t result, const std::string &text) {
  lastFailure = text;
  std::fprintf(stderr, "simulated NCCL: %s\n", text.c_str());
  return result;
}

} // namespace

struct ncclComm {
  int rank, size;
  Board *board;
  std::vector<int> files; ///< by rank
  uint64_t number = 0;    ///< the pending collective's
  int inGraphs = 0;       ///< captured collectives in existing graphs
  cudaStream_t stream = nullptr;

  ~ncclComm() {
    for (int file : files)
      close(file);
    munmap(board, sizeof(Board));
  }
  template <typename Member> bool allHave(Member member, uint64_t value) const {
    for (int r = 0; r < size; ++r)
      if ((board->ranks[r].*member).load(std::memory_order_acquire) < value)
        return false;
    return true;
  }
};

namespace {

using Comm = std::shared_ptr<ncclComm>;

/// All live communicators; entries hold on to theirs.
std::vector<Comm> &comms() {
  static auto *all = new std::vector<Comm>;
  return *all;
}

std::mutex commsMutex; ///< a watchdog aborts while another thread calls

Comm ownerOf(ncclComm_t comm) {
  std::lock_guard<std::mutex> lock(commsMutex);
  for (const Comm &each : comms())
    if (each.get() == comm)
      return each;
  return nullptr;
}

//===-- Contributions -------------------------------------------------------------------------===//

void give(ncclComm &comm, const std::vector<Collective> &operations) {
  std::string text = simulated::contribution(operations, comm.rank, comm.size);
  int file = comm.files[size_t(comm.rank)];
  for (size_t at = 0; at < text.size();) {
    ssize_t n = pwrite(file, text.data() + at, text.size() - at, off_t(at));
    if (n <= 0)
      throw std::runtime_error("NCCL: no memory for a contribution");
    at += size_t(n);
  }
  Board::Rank &own = comm.board->ranks[comm.rank];
  own.bytes.store(text.size(), std::memory_order_relaxed);
  own.given.store(++comm.number, std::memory_order_release);
}

std::string readContribution(const ncclComm &comm, int rank) {
  std::string text(comm.board->ranks[rank].bytes.load(), 0);
  for (size_t at = 0; at < text.size();) {
    ssize_t n = pread(comm.files[size_t(rank)], &text[at], text.size() - at, off_t(at));
    if (n <= 0)
      throw std::runtime_error("NCCL: a contribution cannot be read");
    at += size_t(n);
  }
  return text;
}

void take(ncclComm &comm, const std::vector<Collective> &operations) {
  std::vector<std::string> texts;
  for (int r = 0; r < comm.size; ++r)
    texts.push_back(readContribution(comm, r));
  simulated::compute(operations, comm.rank, texts);
  comm.board->ranks[comm.rank].taken.store(comm.number, std::memory_order_release);
}

//===-- Groups ------------------------------------------------------------------------------===//

struct Queued {
  Comm comm;
  cudaStream_t stream;
  std::vector<Collective> operations;
  bool captured = false;
  ~Queued() {
    if (captured)
      --comm->inGraphs;
  }
};
thread_local std::vector<Queued> queued; ///< in the open group

ncclResult_t submit(Queued all) {
  ncclComm &comm = *all.comm;
  if (comm.stream && comm.stream != all.stream)
    return wrong(ncclInvalidUsage, "the runtime uses a communicator on one stream");
  comm.stream = all.stream;
  std::string name = std::string(nameOf(all.operations[0].kind)) + " of " +
                     std::to_string(all.operations.size()) + " parts, rank " +
                     std::to_string(comm.rank) + " of " + std::to_string(comm.size);
  auto state = std::make_shared<Queued>(std::move(all));
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(state->stream, &capture);
  state->captured = capture != cudaStreamCaptureStatusNone;
  state->comm->inGraphs += state->captured;
  cudaError_t error = simulated::enqueue(
      state->stream, "hand over " + name, [state] { give(*state->comm, state->operations); },
      // The previous contribution may be overwritten once all ranks are done with it.
      [state] { return state->comm->allHave(&Board::Rank::taken, state->comm->number); });
  if (error == cudaSuccess)
    error = simulated::enqueue(
        state->stream, name, [state] { take(*state->comm, state->operations); },
        [state] { return state->comm->allHave(&Board::Rank::given, state->comm->number); });
  return error == cudaSuccess ? ncclSuccess : wrong(ncclUnhandledCudaError, "a CUDA call failed");
}

bool overlap(const char *a, size_t n, const char *b, size_t m) { return a < b + m && b < a + n; }

ncclResult_t call(ncclComm_t handle, cudaStream_t stream, Collective operation) {
  Comm comm = ownerOf(handle);
  if (!comm)
    return wrong(ncclInvalidArgument, "no communicator");
  const char *what = nameOf(operation.kind);
  size_t width = widthOf(operation.type);
  if (width == 0)
    return wrong(ncclInvalidArgument,
                 std::string(what) + ": no type has number " + std::to_string(operation.type));
  size_t in = given(operation, comm->rank, comm->size) * width;
  size_t out = received(operation, comm->rank, comm->size) * width;
  if (operation.root < 0 || operation.root >= comm->size)
    return wrong(ncclInvalidArgument, std::string(what) + ": no such root");
  if ((in && !simulated::reachable(operation.from, in)) ||
      (out && !simulated::reachable(operation.to, out)))
    return wrong(ncclInvalidArgument, std::string(what) + " of " + std::to_string(in) +
                                          " bytes, from " + simulated::describe(operation.from) +
                                          " to " + simulated::describe(operation.to));
  // A call is in place if the shard is the rank's shard of the full buffer.
  const char *place = operation.from;
  size_t part = operation.count * width * size_t(comm->rank);
  if (operation.kind == Kind::ReduceScatter)
    place += part;
  if (operation.kind == Kind::AllGather)
    place -= part;
  if (in && out && place != operation.to && overlap(operation.from, in, operation.to, out))
    return wrong(ncclInvalidArgument, std::string(what) + ": operands overlap");
  auto it = std::find_if(queued.begin(), queued.end(),
                         [&](const Queued &each) { return each.comm == comm; });
  if (it == queued.end())
    it = queued.insert(it, {comm, stream, {}});
  if (it->stream != stream)
    return wrong(ncclInvalidUsage, "a group on several streams");
  it->operations.push_back(operation);
  if (groupDepth > 0)
    return ncclSuccess;
  Queued all = std::move(*it);
  queued.clear();
  return submit(std::move(all));
}

Collective collectiveOf(Kind kind, const void *from, void *to, size_t count, int type, int op,
                        int root) {
  Collective result{};
  result.kind = kind;
  result.from = static_cast<const char *>(from);
  result.to = static_cast<char *>(to);
  result.count = count;
  result.type = type;
  result.op = op;
  result.root = root;
  return result;
}

bool waitFor(const std::function<bool()> &done) {
  for (int i = 0; i < 60'000 && !done(); ++i)
    usleep(1000);
  return done();
}

int openFile(int process, int file) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, file);
  return open(path, O_RDWR | O_CLOEXEC);
}

} // namespace

//===-- NCCL's functions --------------------------------------------------------------------===//

ncclResult_t ncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (groupDepth == 0)
    return wrong(ncclInvalidUsage, "ncclGroupEnd without a group");
  if (--groupDepth > 0)
    return ncclSuccess;
  std::vector<Queued> all = std::move(queued);
  queued.clear();
  for (Queued &each : all)
    if (ncclResult_t result = submit(std::move(each)); result != ncclSuccess)
      return result;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, collectiveOf(Kind::AllReduce, from, to, count, type, op, 0));
}
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, collectiveOf(Kind::Reduce, from, to, count, type, op, root));
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, collectiveOf(Kind::Broadcast, from, to, count, type, 0, root));
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, collectiveOf(Kind::ReduceScatter, from, to, count, type, op, 0));
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, collectiveOf(Kind::AllGather, from, to, count, type, 0, 0));
}

/// A rank's message to itself needs its receive in the same group.
static ncclResult_t callMessage(Kind kind, const void *from, void *to, size_t count,
                                ncclDataType_t type, int peer, ncclComm_t comm,
                                cudaStream_t stream) {
  if ((comm->size != 2 || peer == comm->rank) && groupDepth == 0)
    return wrong(ncclInvalidArgument,
                 "outside a group, messages are between the ranks of a communicator of two");
  return call(comm, stream, collectiveOf(kind, from, to, count, type, 0, peer));
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return callMessage(Kind::Send, from, nullptr, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return callMessage(Kind::Receive, nullptr, to, count, type, peer, comm, stream);
}

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  int file = memfd_create("simulated NCCL", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0)
    return wrong(ncclSystemError, "no memory to share");
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "%d %d", int(getpid()), file);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *result, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *) {
  int process = 0, file = -1;
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size ||
      std::sscanf(id.internal, "%d %d", &process, &file) != 2)
    return wrong(ncclInvalidArgument, "no rank, or no unique id");
  int shared = openFile(process, file);
  void *memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  int own = memfd_create("simulated NCCL", MFD_CLOEXEC);
  if (shared < 0 || memory == MAP_FAILED || own < 0)
    return wrong(ncclSystemError, "the other ranks cannot be found");
  close(shared);
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->size = size;
  comm->board = static_cast<Board *>(memory); // zeros, as in any new file
  Board &board = *comm->board;
  board.size.store(size);
  board.ranks[rank].file.store(own);
  board.ranks[rank].process.store(int(getpid()));
  ++board.joined;
  if (!waitFor([&] { return board.joined.load() >= size; }))
    return wrong(ncclSystemError, "not all ranks have come");
  if (board.size.load() != size)
    return wrong(ncclInvalidUsage, "ranks were made for different numbers of ranks");
  for (int r = 0; r < size; ++r)
    comm->files.push_back(r == rank ? own : openFile(board.ranks[r].process, board.ranks[r].file));
  ++board.opened;
  if (!waitFor([&] { return board.opened.load() >= size; }))
    return wrong(ncclSystemError, "not all ranks have come");
  if (process == getpid())
    close(file);
  *result = comm.get();
  std::lock_guard<std::mutex> lock(commsMutex);
  comms().push_back(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Comm owner = ownerOf(comm);
  if (!owner)
    return wrong(ncclInvalidArgument, "no communicator");
  if (owner->inGraphs > 0 && !comm->board->aborted.load()) {
    wrong(ncclInvalidUsage, "ncclCommDestroy would never return: graphs have " +
                                std::to_string(owner->inGraphs) +
                                " collectives of the communicator");
    std::abort();
  }
  std::lock_guard<std::mutex> lock(commsMutex);
  comms().erase(std::find(comms().begin(), comms().end(), owner));
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->board->aborted.store(comm->rank + 1);
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  *error = comm->board->aborted.load() ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  const char *const texts[] = {"no error",
                               "unhandled cuda error",
                               "unhandled system error",
                               "internal error",
                               "invalid argument",
                               "invalid usage",
                               "remote process exited or there was a network error",
                               "NCCL operation in progress"};
  return size_t(result) < 8 ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return lastFailure.c_str(); }
