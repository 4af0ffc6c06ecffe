// Captures and graphs. A stream in a capture relates to nodes as it otherwise does to tasks: it
// holds those that its next entry waits for.

#include "simulated/record.h"
#include "simulated/runtime.h"

#include <algorithm>

using namespace simulated;

namespace simulated {

namespace {

thread_local cudaStreamCaptureMode threadMode = cudaStreamCaptureModeGlobal;

Capture *find(uint64_t id) {
  auto at = runtime().captures.find(id);
  return at == runtime().captures.end() ? nullptr : at->second.get();
}

/// Does the capture forbid this thread a potentially unsafe call?
bool forbids(const Capture &capture) {
  if (threadMode == cudaStreamCaptureModeRelaxed)
    return false;
  bool here = capture.thread == std::this_thread::get_id();
  return (here && capture.mode != cudaStreamCaptureModeRelaxed) ||
         (threadMode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal);
}

/// Does the stream that began the capture now wait for everything that other streams did in it?
bool joined(const Capture &capture) {
  std::vector<bool> awaited(capture.nodes.size());
  for (int node : capture.origin->captured)
    awaited[size_t(node)] = true;
  for (size_t i = capture.nodes.size(); i-- > 0;)
    if (awaited[i])
      for (int dependency : capture.nodes[i].dependencies)
        awaited[size_t(dependency)] = true;
  return std::find(awaited.begin(), awaited.end(), false) == awaited.end();
}

void release(const Capture &capture) {
  for (cudaStream_t stream : runtime().streams)
    if (stream->capture == &capture) {
      stream->capture = nullptr;
      stream->captured.clear();
    }
  runtime().captures.erase(capture.id);
}

} // namespace

void invalidate(Capture &capture) { capture.invalid = true; }

cudaError_t unsafeInCapture(const char *function) {
  bool forbidden = false;
  for (auto &[id, capture] : runtime().captures)
    if (forbids(*capture)) {
      invalidate(*capture);
      forbidden = true;
    }
  if (!forbidden)
    return cudaSuccess;
  return misuse(cudaErrorStreamCaptureUnsupported, "%s during a capture", function);
}

cudaError_t waitInCapture(cudaStream_t stream, cudaEvent_t event, bool &handled) {
  handled = stream->capture || event->capture;
  if (!handled)
    return cudaSuccess;
  if (stream->capture && stream->capture->invalid)
    return cudaErrorStreamCaptureInvalidated;
  if (!event->capture) {
    if (!event->record)
      return cudaSuccess;
    invalidate(*stream->capture);
    return misuse(cudaErrorStreamCaptureIsolation,
                  "a captured stream waits for an event that was recorded before the capture");
  }
  Capture *capture = find(event->capture);
  if (!capture) {
    if (stream->capture)
      invalidate(*stream->capture);
    return misuse(cudaErrorCapturedEvent,
                  "a stream waits for an event that was recorded in a capture that has ended");
  }
  if (capture->invalid)
    return cudaErrorStreamCaptureInvalidated;
  if (stream->capture && stream->capture != capture) {
    invalidate(*stream->capture);
    invalidate(*capture);
    return misuse(cudaErrorStreamCaptureMerge, "a stream of one capture waits for another");
  }
  stream->capture = capture;
  for (int node : event->captured)
    if (std::find(stream->captured.begin(), stream->captured.end(), node) == stream->captured.end())
      stream->captured.push_back(node);
  return cudaSuccess;
}

cudaError_t putInCapture(cudaStream_t stream, std::shared_ptr<const Work> work) {
  Capture &capture = *stream->capture;
  if (capture.invalid)
    return cudaErrorStreamCaptureInvalidated;
  capture.nodes.push_back({std::move(work), stream->lane, stream->captured, stream->priority});
  stream->captured = {int(capture.nodes.size()) - 1};
  return cudaSuccess;
}

} // namespace simulated

//===-- Captures ----------------------------------------------------------------------------===//

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&] {
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    if (isLegacy(stream))
      return misuse(cudaErrorStreamCaptureUnsupported, "a capture of the legacy stream");
    if (stream->capture)
      return misuse(cudaErrorIllegalState, "a capture of a stream that is captured");
    auto capture = std::make_unique<Capture>();
    capture->id = ++runtime().lastCapture;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    stream->capture = capture.get();
    runtime().captures[capture->id] = std::move(capture);
    if (recording())
      record("{\"capture\": true}");
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph) {
  return call([&] {
    *pGraph = nullptr;
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    Capture *capture = isLegacy(stream) ? nullptr : stream->capture;
    if (!capture)
      return misuse(cudaErrorIllegalState, "the end of a capture of a stream that is not captured");
    if (capture->origin != stream) {
      invalidate(*capture);
      return misuse(cudaErrorStreamCaptureUnmatched,
                    "the end of a capture that began on another stream");
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->thread != std::this_thread::get_id())
      return misuse(cudaErrorStreamCaptureWrongThread,
                    "the end of a capture that began on another thread");
    bool invalid = capture->invalid, complete = !invalid && joined(*capture);
    auto nodes = std::make_shared<const Nodes>(std::move(capture->nodes));
    release(*capture);
    if (invalid)
      return cudaErrorStreamCaptureInvalidated;
    if (!complete)
      return misuse(cudaErrorStreamCaptureUnjoined,
                    "the end of a capture while other streams have entries in it that its stream "
                    "does not wait for");
    if (recording())
      record("{\"capture\": false}");
    *pGraph = new CUgraph_st{std::move(nodes)};
    runtime().graphs.insert(*pGraph);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *pCaptureStatus) {
  return call([&] {
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    const Capture *capture = isLegacy(stream) ? nullptr : stream->capture;
    *pCaptureStatus = !capture           ? cudaStreamCaptureStatusNone
                      : capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  return call([&] {
    std::swap(*mode, threadMode);
    return cudaSuccess;
  });
}

//===-- Graphs ------------------------------------------------------------------------------===//

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return call([&] {
    if (!runtime().graphs.count(graph) ||
        (flags & ~uint64_t(cudaGraphInstantiateFlagUseNodePriority)))
      return cudaErrorInvalidValue;
    for (const Node &node : *graph->nodes)
      if (flags == 0 && node.priority != graph->nodes->front().priority)
        return misuse(
            cudaErrorInvalidValue,
            "a graph whose nodes have the priorities %d and %d is instantiated without "
            "cudaGraphInstantiateFlagUseNodePriority, so that they would get the priority "
            "of the stream it is launched in",
            graph->nodes->front().priority, node.priority);
    *pGraphExec = new CUgraphExec_st{graph->nodes, nullptr};
    runtime().executables.insert(*pGraphExec);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return call([&] {
    return runtime().executables.count(graphExec) ? checkStream(stream) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return call([&] {
    if (!runtime().executables.count(graphExec))
      return cudaErrorInvalidValue;
    if (cudaError_t error = checkStream(stream); error != cudaSuccess)
      return error;
    if (isLegacy(stream) || stream->capture)
      return misuse(cudaErrorNotSupported, "a graph's launch on %s",
                    isLegacy(stream) ? "the legacy stream" : "a stream that is captured");
    Tasks before = stream->tail;
    if (graphExec->last)
      before.push_back(graphExec->last);
    static const auto begin = std::make_shared<const Work>(Work{"begin of a graph", {}, {}, false});
    static const auto end = std::make_shared<const Work>(Work{"end of a graph", {}, {}, false});
    Tasks tasks, all{addTask(begin, stream->lane, before)};
    for (const Node &node : *graphExec->nodes) {
      Tasks after{all.front()};
      for (int dependency : node.dependencies)
        after.push_back(tasks[size_t(dependency)]);
      tasks.push_back(addTask(node.work, node.lane, after));
    }
    all.insert(all.end(), tasks.begin(), tasks.end());
    graphExec->last = addTask(end, stream->lane, all);
    stream->tail = {graphExec->last};
    ++runtime().counters.graphLaunches;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return call([&] {
    if (!runtime().executables.erase(graphExec))
      return cudaErrorInvalidValue;
    delete graphExec;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] {
    if (!runtime().graphs.erase(graph))
      return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes) {
  return call([&] {
    if (!runtime().graphs.count(graph))
      return cudaErrorInvalidValue;
    if (!nodes)
      *numNodes = graph->nodes->size();
    *numNodes = std::min(*numNodes, graph->nodes->size());
    for (size_t i = 0; nodes && i < *numNodes; ++i)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(const_cast<Node *>(&(*graph->nodes)[i]));
    return cudaSuccess;
  });
}
