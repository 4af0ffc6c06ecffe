// What is begun on one communicator of NCCL, collectives or messages: on a stream of its own,
// between events of the compute stream, watched for those that do not end.

#ifndef PARTITA_RT_CUDA_NCCL_QUEUE_H
#define PARTITA_RT_CUDA_NCCL_QUEUE_H

#include "cuda/ranks/graph_marks.h"

#include <atomic>
#include <chrono>
#include <cuda_runtime.h>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <optional>
#include <string>
#include <vector>

namespace partita_rt::cuda {

class Watchdog;

/// How reports name a queue.
struct QueueName {
  std::string key;  ///< the same on all of its ranks, and on no other queue
  const char *kind; ///< "axis", "channel"
  std::string name; ///< "dp"
  const char *of;   ///< "collective", "message"
  std::string where() const { return std::string(kind) + " " + name; }
};

class NcclQueue {
public:
  /// Takes the communicator. The device's compute stream is read at each call.
  NcclQueue(QueueName name, ncclComm_t comm, const Device &device,
            std::shared_ptr<Watchdog> watchdog);
  ~NcclQueue();
  NcclQueue(const NcclQueue &) = delete;
  NcclQueue &operator=(const NcclQueue &) = delete;

  /// `issue` puts its work on `stream`, behind all that the compute stream has been given. `text`
  /// is what reports call it; `alike`, equal on all ranks, what they compare. Returns its number.
  uint64_t begin(const std::string &text, const std::string &alike,
                 const std::function<void()> &issue);
  /// Lets the compute stream go on behind it. Throws Error at the second time.
  void await(uint64_t number);
  /// Begun and not awaited.
  int notAwaited() const;
  bool isDone(uint64_t number) const;

  //===-- For the watchdog, from its thread -----------------------------------------------===//

  const std::string &key() const { return name.key; }
  /// The oldest one that is under way.
  using UnderWay = GraphMarks::UnderWay;
  std::optional<UnderWay> oldest();
  /// Where this rank is, seen from number `number` of the graph of `call` (0: of none), which
  /// another one calls `alike`; "": in it.
  std::string whereIs(int64_t call, uint64_t number, const std::string &alike);
  /// What NCCL says of the communicator's state; "": it is well.
  std::string problem();
  void abort();

protected:
  /// Waits for all that was begun, before its memory is given back; not after a failure.
  void settle() const;

  ncclComm_t comm;
  const Device &device;
  cudaStream_t stream = nullptr;

private:
  /// What was begun and is not known to be complete.
  struct Entry {
    uint64_t number;
    std::string text, alike;
    std::chrono::steady_clock::time_point since;
    cudaEvent_t reached = nullptr; ///< recorded on the compute stream at the start
    cudaEvent_t done = nullptr;    ///< recorded on the own stream behind it
    bool issued = false;           ///< both are recorded
    bool captured = false;         ///< its events are a graph's, and say nothing: marks do
    bool waitedFor = false;
  };
  cudaEvent_t takeEvent();
  bool isUnderWay(const Entry &entry) const;
  void retire(bool capturing);

  const QueueName name;
  std::shared_ptr<Watchdog> watchdog;
  mutable std::mutex mutex;  ///< of what follows; the watchdog looks at it
  std::deque<Entry> entries; ///< the last one is number `started`
  GraphMarks marks;
  std::vector<cudaEvent_t> idle;
  uint64_t started = 0;
  std::string latest; ///< the text of the last one started
  std::atomic<bool> aborted{false};
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_NCCL_QUEUE_H
