// Questions and answers about hanging collectives (watchdog.h).

#include "cuda/ranks/watchdog.h"
#include "common/watch/watch.h"
#include "cuda/ranks/nccl_queue.h"
#include "processes/wire.h"

#include <algorithm>
#include <cuda_runtime.h>

namespace partita_rt::cuda {

using processes::Cause, processes::pack, processes::unpack;

std::shared_ptr<Watchdog> Watchdog::start(processes::Rendezvous &rendezvous, const Device &device,
                                          double seconds) {
  std::shared_ptr<Watchdog> watchdog(new Watchdog(rendezvous, device, seconds));
  std::weak_ptr<Watchdog> weak = watchdog;
  rendezvous.setAnswer([weak](const std::string &question) {
    std::shared_ptr<Watchdog> its = weak.lock();
    return its ? its->answer(question) : "has ended its collectives";
  });
  rendezvous.setAbort([weak] {
    if (std::shared_ptr<Watchdog> its = weak.lock())
      its->abort();
  });
  int gpu = 0;
  cudaGetDevice(&gpu);
  watchdog->thread = std::thread([its = watchdog.get(), gpu] { its->run(gpu); });
  return watchdog;
}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  changed.notify_all();
  thread.join();
}

void Watchdog::add(NcclQueue &queue) {
  std::lock_guard<std::mutex> lock(mutex);
  queues.push_back(&queue);
}

void Watchdog::remove(NcclQueue &queue) {
  std::lock_guard<std::mutex> lock(mutex);
  queues.erase(std::find(queues.begin(), queues.end(), &queue));
}

void Watchdog::expect(const std::string &what) {
  std::lock_guard<std::mutex> lock(mutex);
  expected = what;
  expectedSince = std::chrono::steady_clock::now();
}

/// By the time of the last look: if the process is stopped and goes on during one, nothing is late.
bool Watchdog::isLate(Time since) const {
  return std::chrono::duration<double>(now - std::max(since, resumed)).count() > seconds;
}

std::string Watchdog::lateText() const {
  return " is not complete " + std::to_string(int64_t(seconds)) + " s after it was begun";
}

void Watchdog::run(int gpu) {
  // Otherwise this thread would create a context on the first GPU, and break other threads'
  // captures.
  cudaSetDevice(gpu);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  auto pause = std::chrono::milliseconds(std::clamp<int64_t>(int64_t(seconds * 100), 10, 500));
  std::unique_lock<std::mutex> lock(mutex);
  now = std::chrono::steady_clock::now();
  while (!ends) {
    changed.wait_for(lock, pause);
    if (ends)
      break;
    Time before = now;
    now = std::chrono::steady_clock::now();
    if (now - before > 2 * pause + std::chrono::duration<double>(OwnClock::longest(seconds)))
      resumed = now; // what happened while this process was stopped is no rank's fault
    lock.unlock();
    look();
    lock.lock();
  }
}

/// Reports without holding the mutex, which the answers need.
void Watchdog::look() {
  std::string problem, late, question;
  bool anyUnderWay = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (NcclQueue *queue : queues) {
      if (problem.empty())
        problem = queue->problem();
      std::optional<NcclQueue::UnderWay> oldest = queue->oldest();
      anyUnderWay = anyUnderWay || oldest;
      if (oldest && isLate(oldest->since) && late.empty()) {
        std::string inStep =
            oldest->call > 0 ? " in step " + std::to_string(device.progress.step.load()) : "";
        late = oldest->names.text + inStep + lateText();
        question = pack({queue->key(), std::to_string(oldest->number), oldest->names.alike,
                         std::to_string(oldest->call)});
      }
    }
    if (late.empty() && !expected.empty() && isLate(expectedSince))
      late = expected + lateText();
  }
  int64_t begun = device.progress.begun, complete = device.progress.complete;
  if (begun != seenCall) {
    seenCall = begun;
    seenSince = now;
  } else if (late.empty() && !anyUnderWay && begun > complete && isLate(seenSince)) {
    late = "the GPU's work of step " + std::to_string(device.progress.step.load()) + lateText();
    question = pack({"", std::to_string(begun), "", ""});
  }
  if (!late.empty())
    rendezvous.report(Cause::Timeout, late, question);
  if (!problem.empty())
    rendezvous.report(Cause::Sequel, problem, "");
}

/// Names the collective or message that this rank waits for; "": none.
std::string Watchdog::waitText() {
  std::lock_guard<std::mutex> lock(mutex);
  for (NcclQueue *queue : queues)
    if (std::optional<NcclQueue::UnderWay> oldest = queue->oldest())
      return "waits in " + oldest->names.text;
  return "";
}

std::string Watchdog::answer(const std::string &question) {
  if (question == processes::kWhereAreYou)
    return waitText();
  std::vector<std::string> fields = unpack(question, 4);
  uint64_t number = std::strtoull(fields[1].c_str(), nullptr, 10);
  if (fields[0].empty()) {
    uint64_t begun = uint64_t(device.progress.begun), complete = uint64_t(device.progress.complete);
    if (begun < number)
      return "has not begun it: its last is step " + std::to_string(device.progress.step.load());
    return complete >= number ? "has completed it" : "";
  }
  std::lock_guard<std::mutex> lock(mutex);
  for (NcclQueue *queue : queues)
    if (queue->key() == fields[0])
      return queue->whereIs(std::strtoll(fields[3].c_str(), nullptr, 10), number, fields[2]);
  return "";
}

void Watchdog::abort() {
  std::lock_guard<std::mutex> lock(mutex);
  for (NcclQueue *queue : queues)
    queue->abort();
}

} // namespace partita_rt::cuda
