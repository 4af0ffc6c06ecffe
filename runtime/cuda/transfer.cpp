// Copies on streams of their own (transfer.h).

#include "cuda/transfer.h"

#include "cuda/cuda.h"
#include "partita_rt/work.h"

namespace partita_rt {

using cuda::checkCuda;

TransferEngine::TransferEngine(cudaStream_t compute) : compute(compute) {
  for (cudaStream_t *stream : {&hostward, &deviceward})
    checkCuda(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreate");
  begun = event();
}

TransferEngine::~TransferEngine() {
  for (cudaStream_t stream : {hostward, deviceward}) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  cudaEventDestroy(begun);
  for (const Copy &copy : underWay)
    cudaEventDestroy(copy.done);
  for (cudaEvent_t each : idle)
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

HostCopy TransferEngine::start(cudaStream_t stream, void *to, const void *from, int64_t bytes) {
  checkCuda(cudaEventRecord(begun, compute), "cudaEventRecord");
  checkCuda(cudaStreamWaitEvent(stream, begun, 0), "cudaStreamWaitEvent");
  checkCuda(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDefault, stream),
            "a copy between device and host");
  underWay.push_back({++started, stream, event()});
  checkCuda(cudaEventRecord(underWay.back().done, stream), "cudaEventRecord");
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

/// Of each stream the last copy up to this one tells for those before it.
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
