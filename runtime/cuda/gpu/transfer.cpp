// Copies on streams of their own (transfer.h).

#include "cuda/gpu/transfer.h"

#include "cuda/cuda.h"
#include "partita_rt/cuda/host_update.h"
#include "partita_rt/work.h"

namespace partita_rt {

using cuda::checkCuda;

TransferEngine::TransferEngine(cudaStream_t compute, int64_t updates)
    : compute(compute), scalars(updates * cuda::kHostScalars * 8, "scalars of updates"),
      scalarSlots(updates) {
  for (cudaStream_t *stream : {&hostward, &deviceward, &working})
    checkCuda(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreate");
  begun = event();
}

TransferEngine::~TransferEngine() {
  for (cudaStream_t stream : {hostward, working, deviceward}) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  cudaEventDestroy(begun);
  for (const Copy &copy : underWay)
    cudaEventDestroy(copy.done);
  for (const std::vector<cudaEvent_t> *events : {&idle, &ofTiles})
    for (cudaEvent_t each : *events)
      cudaEventDestroy(each);
}

cudaEvent_t TransferEngine::event() {
  cudaEvent_t made = nullptr;
  if (idle.empty()) {
    checkCuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate");
    return made;
  }
  made = idle.back();
  idle.pop_back();
  return made;
}

cudaEvent_t TransferEngine::record(cudaStream_t stream) {
  cudaEvent_t made = event();
  checkCuda(cudaEventRecord(made, stream), "cudaEventRecord");
  return made;
}

HostCopy TransferEngine::start(cudaStream_t stream, void *to, const void *from, int64_t bytes) {
  checkCuda(cudaEventRecord(begun, compute), "cudaEventRecord");
  checkCuda(cudaStreamWaitEvent(stream, begun, 0), "cudaStreamWaitEvent");
  checkCuda(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, stream),
            "a copy between device and host");
  underWay.push_back({++started, stream, record(stream)});
  return {started};
}

HostCopy TransferEngine::toHost(void *host, const void *device, int64_t bytes) {
  count.toHost += bytes;
  return start(hostward, host, device, bytes);
}

HostCopy TransferEngine::toDevice(void *device, const void *host, int64_t bytes) {
  count.toDevice += bytes;
  return start(deviceward, device, host, bytes);
}

/// Waits, per stream, for the last copy up to this one, which implies those before it.
void TransferEngine::wait(HostCopy copy) {
  cudaEvent_t last[2] = {};
  while (!underWay.empty() && underWay.front().number <= copy.number) {
    last[underWay.front().stream == deviceward] = underWay.front().done;
    idle.push_back(underWay.front().done);
    underWay.pop_front();
  }
  for (cudaEvent_t each : last)
    if (each)
      checkCuda(cudaStreamWaitEvent(compute, each, 0), "cudaStreamWaitEvent");
}

//===-- Updates by the host -----------------------------------------------------------------===//

double *TransferEngine::nextScalars() {
  if (nextSlot == scalarSlots)
    fail("a step makes more than %lld updates on the host", (long long)scalarSlots);
  return reinterpret_cast<double *>(scalars.base) + cuda::kHostScalars * nextSlot++;
}

void TransferEngine::hostwardAfterCompute() {
  checkCuda(cudaEventRecord(begun, compute), "cudaEventRecord");
  waitHostward(begun);
}

void TransferEngine::waitHostward(cudaEvent_t event) {
  checkCuda(cudaStreamWaitEvent(hostward, event, 0), "cudaStreamWaitEvent");
}

void TransferEngine::waitCompute(cudaEvent_t event) {
  checkCuda(cudaStreamWaitEvent(compute, event, 0), "cudaStreamWaitEvent");
}

void TransferEngine::copyHostward(void *host, const void *device, int64_t bytes) {
  count.toHost += bytes;
  checkCuda(cudaMemcpyAsync(host, device, size_t(bytes), cudaMemcpyDeviceToHost, hostward),
            "a copy to the host");
}

void TransferEngine::copyDeviceward(void *device, const void *host, int64_t bytes) {
  count.toDevice += bytes;
  // Wait here, not in work(): a stream that waits in a capture and then does nothing is not joined.
  checkCuda(cudaStreamWaitEvent(deviceward, worked, 0), "cudaStreamWaitEvent");
  checkCuda(cudaMemcpyAsync(device, host, size_t(bytes), cudaMemcpyHostToDevice, deviceward),
            "a copy to the device");
}

void TransferEngine::work(std::function<void()> work) {
  works.push_back(std::move(work));
  ofTiles.push_back(record(hostward));
  checkCuda(cudaStreamWaitEvent(working, ofTiles.back(), 0), "cudaStreamWaitEvent");
  auto run = [](void *given) { (*static_cast<std::function<void()> *>(given))(); };
  checkCuda(cudaLaunchHostFunc(working, run, &works.back()), "cudaLaunchHostFunc");
  worked = record(working);
  ofTiles.push_back(worked);
}

cudaEvent_t TransferEngine::endTile(bool copiesDeviceward) {
  ofTiles.push_back(record(copiesDeviceward ? deviceward : working));
  return ofTiles.back();
}

size_t TransferEngine::begin() {
  nextSlot = 0;
  return works.size();
}

void TransferEngine::end(size_t mark) {
  works.erase(works.begin() + std::ptrdiff_t(mark), works.end());
  idle.insert(idle.end(), ofTiles.begin(), ofTiles.end());
  ofTiles.clear();
}

//===-- Calls of emitted code ---------------------------------------------------------------===//

HostCopy toHostStart(Rank &rank, void *host, const void *device, int64_t bytes) {
  return rank.transfers->toHost(host, device, bytes);
}

HostCopy toDeviceStart(Rank &rank, void *device, const void *host, int64_t bytes) {
  return rank.transfers->toDevice(device, host, bytes);
}

TransferBytes transferred(const Rank &rank) { return rank.transfers->count; }

int64_t transfersUnderWay(const Rank &rank) { return rank.transfers->outstanding(); }

void wait(Rank &rank, HostCopy copy) {
  WorkScope scope(rank.clock, Work::Transfers);
  rank.transfers->wait(copy);
}

} // namespace partita_rt
