// Starts, waits and events (nccl_group.h).

#include "cuda/ranks/nccl_group.h"
#include "cuda/cuda.h"
#include "cuda/ranks/nccl_check.h"
#include "cuda/ranks/watchdog.h"

#include <algorithm>
#include <exception>

namespace partita_rt::cuda {

/// cudaEventQuery, after which "not ready" is no error that a kernel's launch would find.
static cudaError_t query(cudaEvent_t event) {
  cudaError_t answer = cudaEventQuery(event);
  if (answer == cudaErrorNotReady)
    (void)cudaGetLastError();
  return answer;
}

NcclGroup::NcclGroup(const char *axis, std::string key, int rank, int size, ncclComm_t comm,
                     const Device &device, std::shared_ptr<Watchdog> itsWatchdog)
    : Communicator(axis, rank, size), name(std::move(key)), comm(comm), device(device),
      watchdog(std::move(itsWatchdog)), word(4, "barriers"), marks(device) {
  checkCuda(cudaMemset(word.base, 0, 4), "cudaMemset");
  // Before the compute stream's kernels: what waits for a collective is idle meanwhile.
  int least = 0, greatest = 0;
  checkCuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
  checkCuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
            "cudaStreamCreate");
  watchdog->add(*this);
}

/// A rank that fails ends by its rendezvous; what is under way may never be complete.
NcclGroup::~NcclGroup() {
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

cudaEvent_t NcclGroup::takeEvent() {
  cudaEvent_t event = nullptr;
  if (idle.empty()) {
    checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  } else {
    event = idle.back();
    idle.pop_back();
  }
  return event;
}

/// Forgets what is complete and was waited for, oldest first. An event may be recorded anew when
/// nobody asks for its last record: of a graph's, after its wait is captured. Events of others
/// cannot be asked while a capture is under way.
void NcclGroup::retire(bool capturing) {
  while (!entries.empty() && entries.front().waitedFor) {
    Entry &entry = entries.front();
    if (!entry.captured && (capturing || query(entry.done) != cudaSuccess))
      break;
    idle.push_back(entry.reached);
    idle.push_back(entry.done);
    entries.pop_front();
  }
}

Pending NcclGroup::start(Request request) {
  cudaStream_t compute = device.stream.handle;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  checkCuda(cudaStreamIsCapturing(compute, &capture), "cudaStreamIsCapturing");
  CollectiveCount &count = counts[int(request.kind)];
  ++count.calls;
  count.bytes += request.bytes(groupSize);

  bool captured = capture != cudaStreamCaptureStatusNone;

  // NCCL may wait for other ranks inside its calls: the mutex is free meanwhile, so that the
  // watchdog sees it.
  std::unique_lock<std::mutex> lock(mutex);
  retire(captured);
  Entry &entry = entries.emplace_back();
  entry.signature = signatureOf(request, ++started, groupSize);
  entry.since = std::chrono::steady_clock::now();
  entry.captured = captured;
  entry.reached = takeEvent();
  entry.done = takeEvent();
  latest = entry.signature.text();
  uint64_t number = entry.signature.number;
  checkCuda(cudaEventRecord(entry.reached, compute), "cudaEventRecord");
  checkCuda(cudaStreamWaitEvent(stream, entry.reached, 0), "cudaStreamWaitEvent");
  if (captured)
    marks.before(stream, number, textOf(entry.signature));
  lock.unlock();
  issue(request);
  if (captured)
    marks.behind(stream, number);
  checkCuda(cudaEventRecord(entry.done, stream), "cudaEventRecord");
  lock.lock();
  entry.issued = true;
  return {this, entry.signature.number};
}

/// The watchdog's questions: of events that are recorded, and not in a capture.
bool NcclGroup::isUnderWay(const Entry &entry) const {
  return !entry.issued || (!entry.captured && query(entry.done) == cudaErrorNotReady);
}

void NcclGroup::finish(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  auto entry = std::find_if(entries.begin(), entries.end(),
                            [&](const Entry &each) { return each.signature.number == number; });
  if (entry == entries.end() || entry->waitedFor)
    fail("collective #%llu of axis %s is waited for twice", (unsigned long long)number, axis());
  entry->waitedFor = true;
  checkCuda(cudaStreamWaitEvent(device.stream.handle, entry->done, 0), "cudaStreamWaitEvent");
}

int NcclGroup::outstanding() const {
  std::lock_guard<std::mutex> lock(mutex);
  return int(std::count_if(entries.begin(), entries.end(),
                           [](const Entry &entry) { return !entry.waitedFor; }));
}

bool NcclGroup::isComplete(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Entry &entry : entries)
    if (entry.signature.number == number)
      return !entry.captured && query(entry.done) == cudaSuccess;
  return number <= started;
}

//===-- For the watchdog --------------------------------------------------------------------===//

std::string NcclGroup::textOf(const Signature &signature) const {
  return signature.text() + " over axis " + axis();
}

std::optional<NcclGroup::UnderWay> NcclGroup::oldest() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Entry &entry : entries)
    if (isUnderWay(entry))
      return UnderWay{0, entry.signature.number, textOf(entry.signature), entry.since};
  return marks.underWay();
}

std::string NcclGroup::whereIs(int64_t call, uint64_t number, const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (call > 0)
    return marks.whereIs(call, number, text);
  if (number > started)
    return "has not come to it: its last over this axis is " + (started == 0 ? "none" : latest);
  for (const Entry &entry : entries) {
    if (entry.signature.number != number)
      continue;
    std::string own = textOf(entry.signature);
    if (own != text)
      return "is at " + own;
    if (entry.issued && !entry.captured && query(entry.reached) == cudaErrorNotReady)
      return "has not reached it: its GPU is at what comes before";
    if (isUnderWay(entry))
      return "";
  }
  return "has completed it";
}

std::string NcclGroup::problem() {
  std::lock_guard<std::mutex> lock(mutex);
  ncclResult_t state = ncclSuccess;
  if (aborted)
    return "";
  ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  if (asked != ncclSuccess)
    state = asked;
  if (state == ncclSuccess || state == ncclInProgress)
    return "";
  std::string text = std::string("NCCL over axis ") + axis() + ": " + ncclGetErrorString(state);
  if (const char *last = ncclGetLastError(comm); last && *last)
    text += std::string(", ") + last;
  for (const Entry &entry : entries)
    if (isUnderWay(entry))
      return text + ", in " + entry.signature.text();
  if (auto underWay = marks.underWay())
    return text + ", in " + underWay->text;
  return text;
}

/// The main thread may hold the mutex inside NCCL: this is what lets it go.
void NcclGroup::abort() {
  if (!aborted)
    ncclCommAbort(comm);
  aborted = true;
}

//===-- A group of one ----------------------------------------------------------------------===//

Pending LonelyGroup::start(Request request) {
  int64_t width = sizeOf(request.dtype);
  for (const Item &item : request.items)
    if (item.from != item.to && item.count > 0)
      checkCuda(cudaMemcpyAsync(item.to, item.from, size_t(item.count * width),
                                cudaMemcpyDeviceToDevice, device.stream.handle),
                "a copy in a group of one");
  return {};
}

} // namespace partita_rt::cuda
