// The state of the simulated CUDA runtime, for the sources of this folder that implement its API.
//
// A stream is the set of tasks that its next entry must wait for; entries are tasks that know how
// many others they wait for, and which ones they release. Waiting for an event adds a task to that
// set, and launching a graph inserts its nodes between a stream and its next entry, so the
// scheduler (queue.cpp) handles only tasks. Everything is guarded by one mutex, which is held while
// an entry runs, unless it is a host function.

#ifndef PARTITA_TEST_SIMULATED_RUNTIME_H
#define PARTITA_TEST_SIMULATED_RUNTIME_H

#include "simulated/queue.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace simulated {

constexpr int kGreatestPriority = -5; ///< of streams; 0 is the least

/// The work of an entry; shared by all launches of a graph.
struct Work {
  std::string name;
  std::function<void()> run;
  std::function<bool()> ready; ///< empty: always
  bool ofHost = false;         ///< a host function: device memory is closed, the mutex free
};

struct Task {
  std::shared_ptr<const Work> work;
  int lane; ///< number of its stream
  int missing = 0;
  bool done = false, running = false;
  std::vector<std::shared_ptr<Task>> dependents;
};
using Tasks = std::vector<std::shared_ptr<Task>>;

struct Node {
  std::shared_ptr<const Work> work;
  int lane;
  std::vector<int> dependencies; ///< always smaller numbers
  int priority = 0;              ///< that of the stream it was captured from
};
using Nodes = std::vector<Node>;

struct Capture {
  uint64_t id;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  Nodes nodes;
  bool invalid = false;
};

} // namespace simulated

struct CUstream_st {
  int lane; ///< from 1
  bool blocking;
  int priority = 0;      ///< smaller is more urgent
  simulated::Tasks tail; ///< the tasks that its next entry waits for
  simulated::Capture *capture = nullptr;
  std::vector<int> captured; ///< nodes that its next node depends on
};

struct CUevent_st {
  bool timed;
  std::shared_ptr<simulated::Task> record; ///< null: none, or in a capture
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
  uint64_t capture = 0; ///< id of the last one it was recorded in
  std::vector<int> captured;
};

struct CUgraph_st {
  std::shared_ptr<const simulated::Nodes> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const simulated::Nodes> nodes;
  std::shared_ptr<simulated::Task> last; ///< makes launches of one graph follow one another
};

namespace simulated {

struct Runtime {
  std::recursive_mutex mutex;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> executables;
  std::map<uint64_t, std::unique_ptr<Capture>> captures; ///< pending
  uint64_t lastCapture = 0;
  int lastLane = 0;
  std::map<const void *, size_t> dynamicShared; ///< bytes that kernels may have, beyond 48 KiB

  Tasks heads; ///< tasks that wait for none
  int64_t pending = 0;
  uint64_t random;
  std::vector<uint64_t> urgency; ///< per lane: the most urgent head that can run is next
  double timeout;
  Counters counters{};
  cudaError_t failure = cudaSuccess; ///< the device's, permanent
  int boundDevice = -1;              ///< where this process has its memory and streams

  Runtime();
  uint64_t draw();
};
/// Returns the runtime, which is never destroyed: threads may outlive main.
Runtime &runtime();

//===-- Errors (device.cpp) -----------------------------------------------------------------===//

/// Sets cudaGetLastError's error.
cudaError_t note(cudaError_t error);
/// Returns why no call can succeed: no device, an old driver, a failed device, a call from an
/// entry.
cudaError_t unable();
/// Checks, for calls that create something, that this thread's device is that of all earlier
/// objects.
cudaError_t bindDevice();
/// The name of the entry that runs on this thread, or null.
extern thread_local const char *runningEntry;

/// The body of an API function.
template <typename Body> cudaError_t call(Body body) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  cudaError_t error = unable();
  return note(error != cudaSuccess ? error : body());
}

//===-- Scheduling (queue.cpp) --------------------------------------------------------------===//

/// Adds a task after others.
std::shared_ptr<Task> addTask(std::shared_ptr<const Work> work, int lane, const Tasks &after);
/// Appends work to a stream, or a node to a capture. On the legacy stream it runs at once.
cudaError_t put(cudaStream_t stream, std::shared_ptr<const Work> work);
/// Runs one head, if any can run. Device memory stays accessible for the next: call holdOpen(false)
/// afterwards.
bool step();
/// Runs heads until done() returns true. `what`: the subject of the host's wait.
cudaError_t wait(const std::string &what, const std::function<bool()> &done);
cudaError_t waitForAll(const std::string &what);
/// Runs, before work on the legacy stream, all work of blocking streams and some of the others'.
cudaError_t synchronizeLegacy();
/// Runs some heads, which a query may then find complete.
void runSome(int atMost);

bool isLegacy(cudaStream_t stream);
bool allDone(const Tasks &tasks);
/// Checks a stream's handle; reports misuse of an invalid one.
cudaError_t checkStream(cudaStream_t stream);

//===-- Captures (graph.cpp) ----------------------------------------------------------------===//

void invalidate(Capture &capture);
/// Reports a call that a pending capture forbids; this invalidates the capture.
cudaError_t unsafeInCapture(const char *function);
/// Lets a stream wait for an event if a capture involves either; else leaves `handled` unset.
cudaError_t waitInCapture(cudaStream_t stream, cudaEvent_t event, bool &handled);
cudaError_t putInCapture(cudaStream_t stream, std::shared_ptr<const Work> work);

//===-- Memory (memory.cpp) -----------------------------------------------------------------===//

/// Fails the device if "kernel x" has written outside an allocation.
void checkMargins(const char *entry);
/// Keeps device memory accessible for the scheduler, independently of DeviceAccess.
void holdOpen(bool open);
void freeAllMemory();
constexpr uint64_t kDefaultMemory = uint64_t(8) << 30;
/// Returns a variable's number; ends the process if it is not one.
uint64_t environmentNumber(const char *name, uint64_t otherwise);

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_RUNTIME_H
