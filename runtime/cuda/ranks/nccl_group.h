// Collectives over NCCL (partita_rt/cuda/comm.h): one communicator per mesh axis and purpose, each
// with a stream of its own.

#ifndef PARTITA_RT_CUDA_NCCL_GROUP_H
#define PARTITA_RT_CUDA_NCCL_GROUP_H

#include "common/run/request.h"
#include "cuda/memory/memory.h"
#include "cuda/ranks/graph_marks.h"
#include "cuda/ranks/rendezvous.h"
#include "partita_rt/cuda/comm.h"
#include "partita_rt/cuda/device.h"

#include <atomic>
#include <chrono>
#include <cuda_runtime.h>
#include <deque>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <optional>

namespace partita_rt::cuda {

class Watchdog;

/// How blocks travel. NCCL moves contiguous equal counts, so each block is a call of its own; of
/// many small ones several are packed into staging memory, at this many bytes per communicator that
/// meets such (allocated at the first, before anything is captured). A whole that is shorter than
/// its parts together has one call per rank, each with the count that is there: nothing is staged.
constexpr int64_t kStagingBytes = 8 << 20;
/// Blocks of a transfer that are not packed.
constexpr size_t kMostBlocks = 32;

class NcclGroup final : public Communicator {
public:
  /// `key`: what ranks of the group call it in each other's reports. Takes the communicator. The
  /// device's compute stream is read at each call.
  NcclGroup(const char *axis, std::string key, int rank, int size, ncclComm_t comm,
            const Device &device, std::shared_ptr<Watchdog> watchdog);
  ~NcclGroup() override;

  Pending start(Request request) override;
  void finish(uint64_t number) override;
  int64_t poll(int64_t) override { return 0; }
  int outstanding() const override;
  bool isComplete(uint64_t number) const override;
  /// Of the device's memory, taken so far to pack blocks in.
  int64_t stagingBytes() const { return staging ? kStagingBytes : 0; }

  //===-- For the watchdog, from its thread -----------------------------------------------===//

  const std::string &key() const { return name; }
  /// The oldest collective that is under way.
  using UnderWay = GraphMarks::UnderWay;
  std::optional<UnderWay> oldest();
  /// Where this rank is, seen from collective `number` of the graph of `call` (0: of none), which
  /// another one calls `text`; "": in it.
  std::string whereIs(int64_t call, uint64_t number, const std::string &text);
  /// What NCCL says of the communicator's state; "": it is well.
  std::string problem();
  void abort();

private:
  /// A collective that was started and is not known to be complete.
  struct Entry {
    Signature signature;
    std::chrono::steady_clock::time_point since;
    cudaEvent_t reached = nullptr; ///< recorded on the compute stream at the start
    cudaEvent_t done = nullptr;    ///< recorded on the own stream behind the collective
    bool issued = false;           ///< both are recorded
    bool captured = false;         ///< its events are a graph's, and say nothing: marks do
    bool waitedFor = false;
  };
  cudaEvent_t takeEvent();
  bool isUnderWay(const Entry &entry) const;
  std::string textOf(const Signature &signature) const;
  void retire(bool capturing);
  void issue(const Request &request);
  void issueDirect(const Request &request, const Item &item);
  void issuePacked(const Request &request, const Item *items, size_t blocks);
  char *stagingMemory();

  const std::string name;
  ncclComm_t comm;
  const Device &device;
  std::shared_ptr<Watchdog> watchdog;
  cudaStream_t stream = nullptr;
  DeviceMemory word; ///< what a barrier reduces
  std::unique_ptr<DeviceMemory> staging;

  mutable std::mutex mutex;  ///< of what follows; the watchdog looks at it
  std::deque<Entry> entries; ///< the last one is number `started`
  GraphMarks marks;
  std::vector<cudaEvent_t> idle;
  uint64_t started = 0;
  std::string latest; ///< the text of the last one started
  std::atomic<bool> aborted{false};
};

/// A group of one: copies on the compute stream where input and output differ.
class LonelyGroup final : public Communicator {
public:
  LonelyGroup(std::string axis, const Device &device)
      : Communicator(std::move(axis), 0, 1), device(device) {}
  Pending start(Request request) override;
  void finish(uint64_t) override {}
  int64_t poll(int64_t) override { return 0; }
  int outstanding() const override { return 0; }
  bool isComplete(uint64_t) const override { return true; }

private:
  const Device &device;
};

/// Makes the rank's communicators, which are the caller's, and points rank.groups at them. All ranks call it together, on the devices that they will use; the
/// rank is placed on its mesh and has its device. Throws Error where NCCL fails, or the ranks run
/// different programs.
std::vector<std::unique_ptr<Communicator>>
makeCommunicators(Rank &rank, const Program &program, Rendezvous &rendezvous, const Device &device);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_NCCL_GROUP_H
