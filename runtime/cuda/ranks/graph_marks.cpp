// Orders the marks of a graph's collectives, and reads them (graph_marks.h).

#include "cuda/ranks/graph_marks.h"
#include "cuda/cuda.h"

#include <algorithm>
#include <atomic>

namespace partita_rt::cuda {

GraphMarks::GraphMarks(Device &device, std::string of)
    : device(device), of(std::move(of)), shared(2 * sizeof(GraphMark), "collectives' marks") {
  checkCuda(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "cudaStreamCreate");
  checkCuda(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), "cudaEventCreate");
  device.sideStreams.push_back(side);
}

GraphMarks::~GraphMarks() {
  auto &all = device.sideStreams;
  all.erase(std::remove(all.begin(), all.end(), side), all.end());
  cudaEventDestroy(fork);
  cudaStreamDestroy(side);
}

void GraphMarks::write(Which which, cudaStream_t stream, uint64_t number) {
  checkCuda(cudaEventRecord(fork, stream), "cudaEventRecord");
  checkCuda(cudaStreamWaitEvent(side, fork, 0), "cudaStreamWaitEvent");
  Stream branch;
  branch.handle = side;
  writeMark(branch, at(which), device.control, number);
}

void GraphMarks::before(cudaStream_t stream, uint64_t number, Names names) {
  captured[number] = std::move(names);
  write(Reached, stream, number);
}

void GraphMarks::behind(cudaStream_t stream, uint64_t number) { write(Done, stream, number); }

GraphMark GraphMarks::read(Which which) const {
  const volatile GraphMark *mark = at(which);
  GraphMark read{};
  read.number = mark->number;
  std::atomic_thread_fence(std::memory_order_acquire);
  read.call = mark->call;
  return read;
}

const GraphMarks::Names &GraphMarks::namesOf(uint64_t number) const {
  static const Names unknown{"one that is not known", ""};
  auto found = captured.find(number);
  return found == captured.end() ? unknown : found->second;
}

std::optional<GraphMarks::UnderWay> GraphMarks::underWay() {
  GraphMark done = read(Done), reached = read(Reached);
  bool isIn = reached.call == device.progress.begun && reached.call > device.progress.complete &&
              (reached.call != done.call || reached.number != done.number);
  if (!isIn) {
    seen = {};
    return std::nullopt;
  }
  if (reached.call != seen.call || reached.number != seen.number)
    seenSince = std::chrono::steady_clock::now();
  seen = reached;
  return UnderWay{reached.call, reached.number, namesOf(reached.number), seenSince};
}

std::string GraphMarks::whereIs(int64_t call, uint64_t number, const std::string &alike) const {
  if (device.progress.begun < call)
    return "has not begun it: its last is step " + std::to_string(device.progress.step.load());
  GraphMark done = read(Done), reached = read(Reached);
  if (reached.call < call)
    return "has come to none of the step's " + of;
  if (reached.call > call)
    return "has completed it";
  auto own = captured.find(number);
  if (own != captured.end() && own->second.alike != alike)
    return "is at " + own->second.text;
  if (reached.number < number)
    return "has not come to it: its last over this " + of.substr(of.rfind(' ') + 1) + " is " +
           namesOf(reached.number).text;
  bool isIn = reached.number == number && (done.call != call || done.number != number);
  return isIn ? "" : "has completed it";
}

} // namespace partita_rt::cuda
