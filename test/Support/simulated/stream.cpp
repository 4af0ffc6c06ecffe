// Streams and events.

#include "simulated/launch.h"
#include "simulated/runtime.h"

#include <algorithm>

using namespace simulated;
using Clock = std::chrono::steady_clock;

namespace simulated {

bool isLegacy(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy; }

cudaError_t checkStream(cudaStream_t stream) {
  if (isLegacy(stream) || runtime().streams.count(stream))
    return cudaSuccess;
  return misuse(cudaErrorInvalidResourceHandle, "%p is no stream", static_cast<void *>(stream));
}

cudaError_t checkPointer(const char *kernel, int i, const void *pointer) {
  if (!pointer || reachable(pointer, 0))
    return cudaSuccess;
  return misuse(cudaErrorIllegalAddress, "%s: argument %d is %p, %s", kernel, i, pointer,
                describe(pointer).c_str());
}

} // namespace simulated

namespace {

cudaError_t checkEvent(cudaEvent_t event) {
  if (runtime().events.count(event))
    return cudaSuccess;
  return misuse(cudaErrorInvalidResourceHandle, "%p is no event", static_cast<void *>(event));
}

/// Checks whether a wait for the stream or a query of it is valid.
cudaError_t checkWait(cudaStream_t stream, const char *function) {
  if (cudaError_t error = checkStream(stream); error != cudaSuccess)
    return error;
  if (!isLegacy(stream) && stream->capture) {
    invalidate(*stream->capture);
    return misuse(cudaErrorStreamCaptureUnsupported, "%s of a stream that is captured", function);
  }
  return unsafeInCapture(function);
}

cudaError_t checkWait(cudaEvent_t event, const char *function) {
  if (cudaError_t error = checkEvent(event); error != cudaSuccess)
    return error;
  if (event->capture) {
    if (auto capture = runtime().captures.find(event->capture); capture != runtime().captures.end())
      invalidate(*capture->second);
    return misuse(cudaErrorCapturedEvent, "%s of an event that was recorded in a capture",
                  function);
  }
  return unsafeInCapture(function);
}

bool complete(cudaEvent_t event) { return !event->record || event->record->done; }

} // namespace

//===-- Streams -----------------------------------------------------------------------------===//

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned flags) {
  return call([&] {
    if (!pStream || flags > cudaStreamNonBlocking)
      return cudaErrorInvalidValue;
    if (cudaError_t error = bindDevice(); error != cudaSuccess)
      return error;
    *pStream = new CUstream_st;
    (*pStream)->lane = ++runtime().lastLane;
    (*pStream)->blocking = flags == cudaStreamDefault;
    runtime().streams.insert(*pStream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreate(cudaStream_t *pStream) {
  return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned flags, int priority) {
  cudaError_t error = cudaStreamCreateWithFlags(pStream, flags);
  if (error == cudaSuccess)
    (*pStream)->priority = std::max(kGreatestPriority, std::min(priority, 0));
  return error;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    if (isLegacy(stream))
      return cudaErrorInvalidResourceHandle;
    if (stream->capture)
      invalidate(*stream->capture);
    runtime().streams.erase(stream); // its entries still run
    for (auto &[id, capture] : runtime().captures)
      if (capture->origin == stream)
        capture->origin = nullptr;
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] {
    if (cudaError_t error = checkWait(stream, "cudaStreamSynchronize"); error != cudaSuccess)
      return error;
    if (isLegacy(stream))
      return synchronizeLegacy();
    Tasks tail = stream->tail;
    return wait("cudaStreamSynchronize of stream " + std::to_string(stream->lane),
                [&] { return allDone(tail); });
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&] {
    if (cudaError_t error = checkWait(stream, "cudaStreamQuery"); error != cudaSuccess)
      return error;
    runSome(1);
    return isLegacy(stream) || allDone(stream->tail) ? runtime().failure : cudaErrorNotReady;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call([&] {
    if (!runtime().captures.empty()) {
      for (auto &[id, capture] : runtime().captures)
        invalidate(*capture);
      return misuse(cudaErrorStreamCaptureUnsupported, "cudaDeviceSynchronize during a capture");
    }
    return waitForAll("cudaDeviceSynchronize");
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    if (cudaError_t error = checkEvent(event); error != cudaSuccess)
      return error;
    if (isLegacy(stream))
      return wait("the legacy stream", [&] { return complete(event); });
    bool handled = false;
    if (cudaError_t error = waitInCapture(stream, event, handled); handled)
      return error;
    if (!complete(event))
      stream->tail.push_back(event->record);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData) {
  return call([&] {
    if (!fn)
      return cudaErrorInvalidValue;
    if (isLegacy(stream))
      return misuse(cudaErrorNotSupported, "a host function on the legacy stream");
    return put(stream, std::make_shared<const Work>(
                           Work{"host function", [=] { fn(userData); }, {}, true}));
  });
}

//===-- Events ------------------------------------------------------------------------------===//

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return call([&] {
    if (!event || flags & ~unsigned(cudaEventBlockingSync | cudaEventDisableTiming))
      return cudaErrorInvalidValue;
    if (cudaError_t error = bindDevice(); error != cudaSuccess)
      return error;
    *event = new CUevent_st;
    (*event)->timed = !(flags & cudaEventDisableTiming);
    runtime().events.insert(*event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] {
    if (cudaError_t error = checkEvent(event); error != cudaSuccess)
      return error;
    runtime().events.erase(event);
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&] {
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    if (cudaError_t error = checkEvent(event); error != cudaSuccess)
      return error;
    if (!isLegacy(stream) && stream->capture) {
      if (stream->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
      event->capture = stream->capture->id;
      event->captured = stream->captured;
      event->record = nullptr;
      return cudaSuccess;
    }
    event->capture = 0;
    auto time = std::make_shared<Clock::time_point>();
    event->time = time;
    auto work = std::make_shared<const Work>(
        Work{"record of an event", [time] { *time = Clock::now(); }, {}, false});
    if (cudaError_t error = put(stream, work); error != cudaSuccess)
      return error;
    event->record = isLegacy(stream) ? std::make_shared<Task>() : stream->tail.front();
    event->record->done |= isLegacy(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&] {
    if (cudaError_t error = checkWait(event, "cudaEventSynchronize"); error != cudaSuccess)
      return error;
    Tasks record;
    if (event->record)
      record.push_back(event->record);
    return wait("cudaEventSynchronize", [&] { return allDone(record); });
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&] {
    if (cudaError_t error = checkWait(event, "cudaEventQuery"); error != cudaSuccess)
      return error;
    std::shared_ptr<Task> record = event->record;
    runSome(1);
    return !record || record->done ? runtime().failure : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  return call([&] {
    for (cudaEvent_t event : {start, end}) {
      if (cudaError_t error = checkEvent(event); error != cudaSuccess)
        return error;
      if (!event->timed || !event->record)
        return misuse(cudaErrorInvalidResourceHandle, "the time of an event that has none");
      if (!event->record->done)
        return cudaErrorNotReady;
    }
    *ms = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
    return cudaSuccess;
  });
}
