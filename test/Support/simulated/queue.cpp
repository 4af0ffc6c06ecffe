// The scheduler: chooses the stream whose head runs next.
//
// Every stream has a random urgency, and the head of the most urgent one runs repeatedly until that
// stream is empty or its urgency is drawn again (once in four entries, on average). So one stream
// gets far ahead of another, as it does on a GPU, but almost never would with a fair draw at every
// entry: work that a forgotten event should have delayed then runs too early, or too late.

#include "simulated/record.h"
#include "simulated/runtime.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace simulated {

thread_local const char *runningEntry = nullptr;

Runtime::Runtime()
    : random(environmentNumber("PARTITA_SIMULATED_SEED", 1)),
      timeout(double(environmentNumber("PARTITA_SIMULATED_TIMEOUT", 120))) {}

uint64_t Runtime::draw() { // splitmix64
  random += 0x9E3779B97F4A7C15ull;
  uint64_t z = (random ^ (random >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

Runtime &runtime() {
  static Runtime *runtime = new Runtime;
  return *runtime;
}

namespace {

/// The entry that runs on this thread.
class Running {
public:
  explicit Running(const Work &work) { runningEntry = work.name.c_str(); }
  ~Running() { runningEntry = nullptr; }
};

bool isReady(const Work &work) {
  Running here(work);
  return !work.ready || work.ready();
}

/// Returns the most urgent head that can run now, asking those that may not be ready.
std::shared_ptr<Task> nextHead() {
  Runtime &r = runtime();
  while (int(r.urgency.size()) <= r.lastLane)
    r.urgency.push_back(r.draw());
  Tasks candidates;
  for (const std::shared_ptr<Task> &head : r.heads)
    if (!head->running)
      candidates.push_back(head);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const std::shared_ptr<Task> &a, const std::shared_ptr<Task> &b) {
                     return r.urgency[size_t(a->lane)] > r.urgency[size_t(b->lane)];
                   });
  for (const std::shared_ptr<Task> &head : candidates)
    if (isReady(*head->work))
      return head;
  return nullptr;
}

void complete(Task &task) {
  Runtime &r = runtime();
  task.done = true;
  --r.pending;
  ++r.counters.ran;
  r.heads.erase(
      std::find_if(r.heads.begin(), r.heads.end(),
                   [&](const std::shared_ptr<Task> &head) { return head.get() == &task; }));
  for (std::shared_ptr<Task> &dependent : task.dependents)
    if (--dependent->missing == 0)
      r.heads.push_back(dependent);
  task.dependents.clear();
}

void run(const Work &work) {
  if (!work.run || (recording() && !work.ofHost))
    return;
  Running here(work);
  try {
    work.run();
  } catch (const std::exception &error) {
    failDevice(cudaErrorLaunchFailure, work.name + ": " + error.what());
  }
}

/// "allReduce of wte", "copy".
std::string blockedHeads() {
  std::string names;
  for (const std::shared_ptr<Task> &head : runtime().heads)
    names += (names.empty() ? "\"" : ", \"") + head->work->name + "\" of stream " +
             std::to_string(head->lane);
  return names;
}

} // namespace

std::shared_ptr<Task> addTask(std::shared_ptr<const Work> work, int lane, const Tasks &after) {
  Runtime &r = runtime();
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  task->lane = lane;
  for (const std::shared_ptr<Task> &other : after)
    if (!other->done) {
      other->dependents.push_back(task);
      ++task->missing;
    }
  if (task->missing == 0)
    r.heads.push_back(task);
  ++r.pending;
  ++r.counters.enqueued;
  return task;
}

bool step() {
  Runtime &r = runtime();
  std::shared_ptr<Task> head = nextHead();
  if (!head)
    return false;
  head->running = true;
  holdOpen(!head->work->ofHost);
  if (head->work->ofHost) {
    r.mutex.unlock();
    run(*head->work);
    r.mutex.lock();
  } else {
    run(*head->work);
  }
  checkMargins(head->work->name.c_str());
  complete(*head);
  if (r.draw() % 4 == 0)
    r.urgency[size_t(head->lane)] = r.draw();
  return true;
}

cudaError_t wait(const std::string &what, const std::function<bool()> &done) {
  Runtime &r = runtime();
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  if (!done())
    ++r.counters.hostWaits;
  Clock::time_point moved = Clock::now();
  for (microseconds pause(20); r.failure == cudaSuccess && !done();) {
    if (step()) {
      moved = Clock::now();
      pause = microseconds(20);
      continue;
    }
    bool elsewhere = std::any_of(r.heads.begin(), r.heads.end(),
                                 [](const std::shared_ptr<Task> &head) { return head->running; });
    std::chrono::duration<double> idle = Clock::now() - moved;
    if (idle.count() > r.timeout && !elsewhere) {
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", r.timeout);
      failDevice(cudaErrorLaunchTimeout, what + " waits, and nothing could run for " + seconds +
                                             " seconds: " + blockedHeads());
      break;
    }
    holdOpen(false);
    r.mutex.unlock();
    std::this_thread::sleep_for(pause);
    r.mutex.lock();
    pause = std::min(pause * 2, microseconds(1000));
  }
  holdOpen(false);
  return r.failure;
}

bool allDone(const Tasks &tasks) {
  return std::all_of(tasks.begin(), tasks.end(),
                     [](const std::shared_ptr<Task> &task) { return task->done; });
}

cudaError_t waitForAll(const std::string &what) {
  return wait(what, [] { return runtime().pending == 0; });
}

void runSome(int atMost) {
  for (uint64_t steps = runtime().draw() % uint64_t(atMost + 1); steps > 0; --steps)
    if (!step())
      break;
  holdOpen(false);
}

cudaError_t synchronizeLegacy() {
  for (const auto &[id, capture] : runtime().captures)
    return invalidate(*capture),
           misuse(cudaErrorStreamCaptureImplicit, "the legacy stream is used during a capture");
  Tasks tails;
  for (cudaStream_t stream : runtime().streams)
    if (stream->blocking)
      tails.insert(tails.end(), stream->tail.begin(), stream->tail.end());
  cudaError_t error = wait("the legacy stream", [&] { return allDone(tails); });
  if (error == cudaSuccess)
    runSome(3);
  return error != cudaSuccess ? error : runtime().failure;
}

cudaError_t put(cudaStream_t stream, std::shared_ptr<const Work> work) {
  if (isLegacy(stream)) {
    if (cudaError_t error = synchronizeLegacy(); error != cudaSuccess)
      return error;
    if (cudaError_t error = wait(work->name, [&] { return isReady(*work); }); error != cudaSuccess)
      return error;
    if (recording() && !work->ofHost)
      return cudaSuccess;
    DeviceAccess open;
    Running here(*work);
    work->run();
    return cudaSuccess;
  }
  if (cudaError_t error = checkStream(stream); error != cudaSuccess)
    return error;
  if (stream->capture)
    return putInCapture(stream, std::move(work));
  stream->tail = {addTask(std::move(work), stream->lane, stream->tail)};
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, std::string name, std::function<void()> run,
                    std::function<bool()> ready) {
  return call([&] {
    return put(stream, std::make_shared<const Work>(
                           Work{std::move(name), std::move(run), std::move(ready), false}));
  });
}

void failDevice(cudaError_t error, const std::string &message) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  std::fprintf(stderr, "simulated CUDA: %s\n", message.c_str());
  if (runtime().failure == cudaSuccess)
    runtime().failure = error;
}

void setSeed(uint64_t seed) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  runtime().random = seed;
  runtime().urgency.clear();
}

void setTimeout(double seconds) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  runtime().timeout = seconds;
}

Counters counters() {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  return runtime().counters;
}

} // namespace simulated
