// The collectives or messages started on one NCCL communicator: on a stream of its own, between
// events of the compute stream, watched for hangs.

#ifndef PARTITA_RT_CUDA_RANKS_NCCL_QUEUE_H
#define PARTITA_RT_CUDA_RANKS_NCCL_QUEUE_H

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

/// The name of a queue in reports.
struct QueueName {
  std::string key;  ///< the same on all of its ranks, and unique
  const char *kind; ///< "axis", "channel"
  std::string name; ///< "dp"
  const char *of;   ///< "collective", "message"
  std::string where() const { return std::string(kind) + " " + name; }
};

class NcclQueue {
public:
  /// Takes ownership of the communicator. The device's compute stream is read at each call.
  NcclQueue(QueueName name, ncclComm_t comm, Device &device, std::shared_ptr<Watchdog> watchdog);
  ~NcclQueue();
  NcclQueue(const NcclQueue &) = delete;
  NcclQueue &operator=(const NcclQueue &) = delete;

  /// Starts an entry. `issue` puts its work on `stream`, after all work queued on the compute
  /// stream. `text` is its name in reports; `alike`, equal on all ranks, is what they compare.
  /// Returns its number.
  uint64_t begin(const std::string &text, const std::string &alike,
                 const std::function<void()> &issue);
  /// Makes the compute stream wait for the entry. Throws Error the second time.
  void await(uint64_t number);
  /// Returns the number of entries started and not awaited.
  int notAwaited() const;
  bool isDone(uint64_t number) const;

  //===-- For the watchdog, from its thread -----------------------------------------------===//

  const std::string &key() const { return name.key; }
  /// The oldest pending entry.
  using UnderWay = GraphMarks::UnderWay;
  std::optional<UnderWay> oldest();
  /// Describes this rank's position relative to number `number` of the graph of `call` (0: not in a
  /// graph), which another rank calls `alike`; "": in it.
  std::string whereIs(int64_t call, uint64_t number, const std::string &alike);
  /// Returns NCCL's report on the communicator's state; "" if it is healthy.
  std::string problem();
  void abort();

protected:
  /// Waits for all that was started, before its memory is freed; not after a failure.
  void settle() const;

  ncclComm_t comm;
  const Device &device;
  cudaStream_t stream = nullptr;

private:
  /// An entry that was started and is not known to be complete.
  struct Entry {
    uint64_t number;
    std::string text, alike;
    std::chrono::steady_clock::time_point since;
    cudaEvent_t reached = nullptr; ///< recorded on the compute stream at the start
    cudaEvent_t done = nullptr;    ///< recorded on the own stream after it
    bool issued = false;           ///< both are recorded
    bool captured = false;         ///< its events belong to a graph and tell nothing; marks do
    bool waitedFor = false;
  };
  cudaEvent_t takeEvent();
  bool isUnderWay(const Entry &entry) const;
  void retire(bool capturing);

  const QueueName name;
  std::shared_ptr<Watchdog> watchdog;
  mutable std::mutex mutex;  ///< guards the members below; the watchdog reads them
  std::deque<Entry> entries; ///< the last one has number `started`
  GraphMarks marks;
  std::vector<cudaEvent_t> idle;
  uint64_t started = 0;
  std::string latest; ///< text of the last one started
  std::atomic<bool> aborted{false};
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_RANKS_NCCL_QUEUE_H
