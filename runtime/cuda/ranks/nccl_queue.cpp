// Starts, waits and events (nccl_queue.h).

#include "cuda/ranks/nccl_queue.h"
#include "cuda/cuda.h"
#include "cuda/ranks/nccl_check.h"
#include "cuda/ranks/watchdog.h"

#include <algorithm>
#include <exception>

namespace partita_rt::cuda {

/// Queries an event, and clears "not ready" so that it is not mistaken for an error of a kernel's
/// launch.
static cudaError_t query(cudaEvent_t event) {
  cudaError_t answer = cudaEventQuery(event);
  if (answer == cudaErrorNotReady)
    (void)cudaGetLastError();
  return answer;
}

NcclQueue::NcclQueue(QueueName itsName, ncclComm_t comm, Device &device,
                     std::shared_ptr<Watchdog> itsWatchdog)
    : comm(comm), device(device), name(std::move(itsName)), watchdog(std::move(itsWatchdog)),
      marks(device, std::string(name.of) + "s over this " + name.kind) {
  // Give it priority over the compute stream's kernels: work that waits for it would idle
  // meanwhile.
  int least = 0, greatest = 0;
  checkCuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
  checkCuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
            "cudaStreamCreate");
  watchdog->add(*this);
}

void NcclQueue::settle() const {
  if (std::uncaught_exceptions() == 0)
    cudaStreamSynchronize(stream);
}

/// After a failure the rendezvous ends the process, and pending work may never complete.
NcclQueue::~NcclQueue() {
  watchdog->remove(*this);
  if (std::uncaught_exceptions() > 0)
    return;
  cudaStreamSynchronize(stream);
  for (const Entry &entry : entries)
    for (cudaEvent_t event : {entry.reached, entry.done})
      cudaEventDestroy(event);
  for (cudaEvent_t event : idle)
    cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  if (!aborted)
    ncclCommDestroy(comm);
}

cudaEvent_t NcclQueue::takeEvent() {
  cudaEvent_t event = nullptr;
  if (idle.empty()) {
    checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  } else {
    event = idle.back();
    idle.pop_back();
  }
  return event;
}

/// Removes entries that are complete and were waited for, oldest first. An event may be reused once
/// nothing queries its last record: for a graph's, after its wait is captured. Other events cannot
/// be queried during a capture.
void NcclQueue::retire(bool capturing) {
  while (!entries.empty() && entries.front().waitedFor) {
    Entry &entry = entries.front();
    if (!entry.captured && (capturing || query(entry.done) != cudaSuccess))
      break;
    idle.push_back(entry.reached);
    idle.push_back(entry.done);
    entries.pop_front();
  }
}

uint64_t NcclQueue::begin(const std::string &text, const std::string &alike,
                          const std::function<void()> &issue) {
  cudaStream_t compute = device.stream.handle;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  checkCuda(cudaStreamIsCapturing(compute, &capture), "cudaStreamIsCapturing");
  bool captured = capture != cudaStreamCaptureStatusNone;

  // NCCL waits for other ranks inside its calls, and CUDA for room in a full launch queue: release
  // the mutex meanwhile, so that the watchdog can look.
  std::unique_lock<std::mutex> lock(mutex);
  retire(captured);
  Entry &entry = entries.emplace_back();
  uint64_t number = entry.number = ++started;
  entry.text = text + " over " + name.where();
  entry.alike = alike;
  entry.since = std::chrono::steady_clock::now();
  entry.captured = captured;
  entry.reached = takeEvent();
  entry.done = takeEvent();
  latest = text;
  lock.unlock();
  checkCuda(cudaEventRecord(entry.reached, compute), "cudaEventRecord");
  checkCuda(cudaStreamWaitEvent(stream, entry.reached, 0), "cudaStreamWaitEvent");
  if (captured) {
    lock.lock();
    marks.before(stream, number, {entry.text, alike});
    lock.unlock();
  }
  issue();
  if (captured)
    marks.behind(stream, number);
  checkCuda(cudaEventRecord(entry.done, stream), "cudaEventRecord");
  lock.lock();
  entry.issued = true;
  return number;
}

/// For the watchdog. Queries only events that are recorded, and not in a capture.
bool NcclQueue::isUnderWay(const Entry &entry) const {
  return !entry.issued || (!entry.captured && query(entry.done) == cudaErrorNotReady);
}

void NcclQueue::await(uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex);
  auto entry = std::find_if(entries.begin(), entries.end(),
                            [&](const Entry &each) { return each.number == number; });
  if (entry == entries.end() || entry->waitedFor)
    fail("%s #%llu of %s is waited for twice", name.of, (unsigned long long)number,
         name.where().c_str());
  entry->waitedFor = true;
  cudaEvent_t done = entry->done;
  lock.unlock(); // as in begin()
  checkCuda(cudaStreamWaitEvent(device.stream.handle, done, 0), "cudaStreamWaitEvent");
}

int NcclQueue::notAwaited() const {
  std::lock_guard<std::mutex> lock(mutex);
  return int(std::count_if(entries.begin(), entries.end(),
                           [](const Entry &entry) { return !entry.waitedFor; }));
}

bool NcclQueue::isDone(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Entry &entry : entries)
    if (entry.number == number)
      return !entry.captured && query(entry.done) == cudaSuccess;
  return number <= started;
}

//===-- For the watchdog --------------------------------------------------------------------===//

std::optional<NcclQueue::UnderWay> NcclQueue::oldest() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Entry &entry : entries)
    if (isUnderWay(entry))
      return UnderWay{0, entry.number, {entry.text, entry.alike}, entry.since};
  return marks.underWay();
}

std::string NcclQueue::whereIs(int64_t call, uint64_t number, const std::string &alike) {
  std::lock_guard<std::mutex> lock(mutex);
  if (call > 0)
    return marks.whereIs(call, number, alike);
  if (number > started)
    return std::string("has not come to it: its last over this ") + name.kind + " is " +
           (started == 0 ? "none" : latest);
  for (const Entry &entry : entries) {
    if (entry.number != number)
      continue;
    if (entry.alike != alike)
      return "is at " + entry.text;
    if (entry.issued && !entry.captured && query(entry.reached) == cudaErrorNotReady)
      return "has not reached it: its GPU is at what comes before";
    if (isUnderWay(entry))
      return "";
  }
  return "has completed it";
}

std::string NcclQueue::problem() {
  std::lock_guard<std::mutex> lock(mutex);
  ncclResult_t state = ncclSuccess;
  if (aborted)
    return "";
  ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  if (asked != ncclSuccess)
    state = asked;
  if (state == ncclSuccess || state == ncclInProgress)
    return "";
  std::string text = "NCCL over " + name.where() + ": " + ncclGetErrorString(state);
  if (const char *last = ncclGetLastError(comm); last && *last)
    text += std::string(", ") + last;
  for (const Entry &entry : entries)
    if (isUnderWay(entry))
      return text + ", in " + entry.text;
  if (auto underWay = marks.underWay())
    return text + ", in " + underWay->names.text;
  return text;
}

/// Takes no lock, so that no holder can delay it: other threads wait inside NCCL and CUDA, and only
/// this makes them return.
void NcclQueue::abort() {
  if (!aborted)
    ncclCommAbort(comm);
  aborted = true;
}

} // namespace partita_rt::cuda
