// Collectives over NCCL (partita_rt/cuda/comm.h): one communicator per mesh axis and purpose, each
// with its own stream.

#ifndef PARTITA_RT_CUDA_RANKS_NCCL_GROUP_H
#define PARTITA_RT_CUDA_RANKS_NCCL_GROUP_H

#include "common/mesh/immediate_group.h"
#include "common/mesh/request.h"
#include "cuda/memory/memory.h"
#include "cuda/ranks/nccl_queue.h"
#include "partita_rt/channel.h"
#include "partita_rt/cuda/comm.h"
#include "processes/rendezvous.h"

#include <memory>
#include <vector>

namespace partita_rt::cuda {

/// Bytes of staging memory per communicator that needs it (allocated on first use, before anything
/// is captured). NCCL moves contiguous equal counts, so each block of a transfer is a call of its
/// own; many small blocks are packed into staging memory. A full tensor that is shorter than its
/// shards together takes one call per rank, each with that rank's count: nothing is staged.
constexpr int64_t kStagingBytes = 8 << 20;
/// Max blocks of a transfer that are not packed.
constexpr size_t kMostBlocks = 32;

class NcclGroup final : public Communicator, public NcclQueue {
public:
  /// `key`: the name of the group that its ranks use in each other's reports. Takes ownership of
  /// the communicator.
  NcclGroup(const char *axis, std::string key, int rank, int size, ncclComm_t comm, Device &device,
            std::shared_ptr<Watchdog> watchdog);
  ~NcclGroup() override { settle(); }

  Pending start(Request request) override;
  void finish(uint64_t number) override { await(number); }
  int64_t poll(int64_t) override { return 0; }
  int outstanding() const override { return notAwaited(); }
  bool isComplete(uint64_t number) const override { return isDone(number); }
  /// Returns the bytes of device memory taken so far for packing blocks.
  int64_t stagingBytes() const { return staging ? kStagingBytes : 0; }

private:
  void issue(const Request &request);
  void issueDirect(const Request &request, const Item &item);
  void issuePacked(const Request &request, const Item *items, size_t blocks);
  char *stagingMemory();

  DeviceMemory word; ///< a barrier reduces this
  std::unique_ptr<DeviceMemory> staging;
  uint64_t started = 0;
};

/// A group of one: copies on the compute stream where input and output differ.
class LonelyGroup final : public ImmediateGroup {
public:
  LonelyGroup(std::string axis, const Device &device)
      : ImmediateGroup(std::move(axis), 0, 1), device(device) {}
  Pending start(Request request) override;

private:
  const Device &device;
};

/// A rank's communicators and ends of channels, which it points at.
struct Communicators {
  std::vector<std::unique_ptr<Communicator>> groups;
  std::vector<std::unique_ptr<ChannelEnd>> channels;
  std::vector<ChannelEnd *> channelsByRow;
};

/// Makes the rank's communicators, and gives the rank its groups and channels. All ranks call it
/// together, on the devices that they will use; the rank is already on its mesh and has its device.
/// Throws Error if NCCL fails, or the ranks run different programs.
Communicators makeCommunicators(Rank &rank, const Program &program,
                                processes::Rendezvous &rendezvous, Device &device);

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_RANKS_NCCL_GROUP_H
