// The state of the simulated CUDA runtime, for the sources of this folder that implement its API.
//
// A stream is what its next entry has to wait for; entries are tasks that know how many others they
// wait for, and whom they let go. Waiting for an event adds a task to what a stream waits for, and
// launching a graph puts its nodes between a stream and its next entry, so that tasks are all that
// the scheduler (queue.cpp) knows. Everything is guarded by one mutex, which is held while an entry
// runs, unless that is a function of the host's.

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

/// What an entry does; shared by all launches of a graph.
struct Work {
  std::string name;
  std::function<void()> run;
  std::function<bool()> ready; ///< empty: always
  bool ofHost = false;         ///< a host function: device memory is closed, the mutex is free
};

struct Task {
  std::shared_ptr<const Work> work;
  int lane; ///< number of the stream that it was put into
  int missing = 0;
  bool done = false, running = false;
  std::vector<std::shared_ptr<Task>> dependents;
};
using Tasks = std::vector<std::shared_ptr<Task>>;

struct Node {
  std::shared_ptr<const Work> work;
  int lane;
  std::vector<int> dependencies; ///< smaller numbers
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
  int priority = 0;      ///< the smaller the more urgent
  simulated::Tasks tail; ///< what its next entry waits for
  simulated::Capture *capture = nullptr;
  std::vector<int> captured; ///< nodes that its next node depends on
};

struct CUevent_st {
  bool timed;
  std::shared_ptr<simulated::Task> record; ///< null: never, or in a capture
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
  uint64_t capture = 0; ///< the one it was last recorded in
  std::vector<int> captured;
};

struct CUgraph_st {
  std::shared_ptr<const simulated::Nodes> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const simulated::Nodes> nodes;
  std::shared_ptr<simulated::Task> last; ///< launches of one graph follow one another
};

namespace simulated {

struct Runtime {
  std::recursive_mutex mutex;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> executables;
  std::map<uint64_t, std::unique_ptr<Capture>> captures; ///< under way
  uint64_t lastCapture = 0;
  int lastLane = 0;
  std::map<const void *, size_t> dynamicShared; ///< bytes that kernels may have, beyond 48 KiB

  Tasks heads; ///< tasks that wait for no other
  int64_t pending = 0;
  uint64_t random;
  std::vector<uint64_t> urgency; ///< of lanes: the most urgent head that can runs
  double timeout;
  Counters counters{};
  cudaError_t failure = cudaSuccess; ///< the device's, for good
  int boundDevice = -1;              ///< where this process has its memory and streams

  Runtime();
  uint64_t draw();
};
/// Never destroyed: threads may outlive main.
Runtime &runtime();

//===-- Errors (device.cpp) -----------------------------------------------------------------===//

/// Makes an error cudaGetLastError's.
cudaError_t note(cudaError_t error);
/// Why no call can succeed: no device, an old driver, a failed device, a call from an entry.
cudaError_t unable();
/// For calls that make something: this thread's device must be that of all the process has made.
cudaError_t bindDevice();
/// While an entry runs on this thread its name, else null.
extern thread_local const char *runningEntry;

/// The body of an API function.
template <typename Body> cudaError_t call(Body body) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  cudaError_t error = unable();
  return note(error != cudaSuccess ? error : body());
}

//===-- Scheduling (queue.cpp) --------------------------------------------------------------===//

/// A task behind others.
std::shared_ptr<Task> addTask(std::shared_ptr<const Work> work, int lane, const Tasks &after);
/// Puts work into a stream, or a capture's node. On the legacy stream it runs at once.
cudaError_t put(cudaStream_t stream, std::shared_ptr<const Work> work);
/// Runs one head, if any can. Device memory stays open for the next: holdOpen(false) afterwards.
bool step();
/// Runs heads until done() says so. `what` the host waits for.
cudaError_t wait(const std::string &what, const std::function<bool()> &done);
cudaError_t waitForAll(const std::string &what);
/// Before work on the legacy stream: what blocking streams have, and some of what others have.
cudaError_t synchronizeLegacy();
/// What a query may find to have happened meanwhile.
void runSome(int atMost);

bool isLegacy(cudaStream_t stream);
bool allDone(const Tasks &tasks);
/// Also misuse: a handle that is none, or no longer.
cudaError_t checkStream(cudaStream_t stream);

//===-- Captures (graph.cpp) ----------------------------------------------------------------===//

void invalidate(Capture &capture);
/// Of a call that a capture under way forbids; it is the end of that capture.
cudaError_t unsafeInCapture(const char *function);
/// Of a stream that waits for an event, if a capture has to do with either; else leaves `handled`.
cudaError_t waitInCapture(cudaStream_t stream, cudaEvent_t event, bool &handled);
cudaError_t putInCapture(cudaStream_t stream, std::shared_ptr<const Work> work);

//===-- Memory (memory.cpp) -----------------------------------------------------------------===//

/// "kernel x" has written beside an allocation: fails the device.
void checkMargins(const char *entry);
/// Device memory for the scheduler, beside DeviceAccess.
void holdOpen(bool open);
void freeAllMemory();
constexpr uint64_t kDefaultMemory = uint64_t(8) << 30;
/// Of a variable; what is no number ends the process.
uint64_t environmentNumber(const char *name, uint64_t otherwise);

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_RUNTIME_H
