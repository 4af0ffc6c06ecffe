// The thread that detects collectives that hang.
//
// NCCL waits forever for a rank that does not arrive. Every half second this thread asks NCCL for
// errors, and checks how long the oldest collective of each communicator has been pending; beyond
// the time-out all ranks are asked where they are (Rendezvous::report), and end.
// Collectives inside a CUDA graph leave marks (graph_marks.h); if none is pending, the call of the
// program's function is what hangs. The rendezvous notices a process that has died at once.

#ifndef PARTITA_RT_CUDA_RANKS_WATCHDOG_H
#define PARTITA_RT_CUDA_RANKS_WATCHDOG_H

#include "partita_rt/cuda/device.h"
#include "processes/rendezvous.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace partita_rt::cuda {

class NcclQueue;

class Watchdog : public std::enable_shared_from_this<Watchdog> {
public:
  /// Watches until the last reference is dropped. The rendezvous must live longer, the device as
  /// long as there are queues. Call it on the thread that has chosen the GPU.
  static std::shared_ptr<Watchdog> start(processes::Rendezvous &rendezvous, const Device &device,
                                         double seconds);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  void add(NcclQueue &queue);
  void remove(NcclQueue &queue);
  /// Names what the process waits for from here on outside collectives; "": nothing.
  void expect(const std::string &what);

private:
  using Time = std::chrono::steady_clock::time_point;
  Watchdog(processes::Rendezvous &rendezvous, const Device &device, double seconds)
      : rendezvous(rendezvous), device(device), seconds(seconds) {}
  void run(int gpu);
  void look();
  std::string answer(const std::string &question);
  std::string waitText();
  void abort();
  bool isLate(Time since) const;
  std::string lateText() const;

  processes::Rendezvous &rendezvous;
  const Device &device;
  const double seconds;
  std::mutex mutex; ///< guards the queues and what is expected
  std::condition_variable changed;
  std::vector<NcclQueue *> queues;
  std::string expected;
  Time expectedSince;
  bool ends = false;
  int64_t seenCall = 0; ///< used by the thread only
  Time seenSince;
  Time now;     ///< of the thread's last look
  Time resumed; ///< after a time in which the process was stopped
  std::thread thread;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_RANKS_WATCHDOG_H
