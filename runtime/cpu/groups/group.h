// Common to all transports: collectives are numbered, remembered from start to wait, and completed
// strictly in the order of their numbers, whatever the order of waits. As all ranks of a group
// issue the same sequence, completing in order cannot deadlock.
//
// A transport is a state machine: advance() does a bounded step of the work that needs no waiting.
// A poll calls it a few times between two kernels, a wait until the collective is complete. Both
// run the same code, so the bits cannot depend on where the work is done.

#ifndef PARTITA_RT_CPU_GROUPS_GROUP_H
#define PARTITA_RT_CPU_GROUPS_GROUP_H

#include "common/mesh/immediate_group.h"
#include "common/mesh/request.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace partita_rt {

class FailureFlag;
class RankWaits;

class OrderedGroup : public Communicator {
public:
  using Communicator::Communicator;

  Pending start(Request request) override;
  void finish(uint64_t number) override;
  int64_t poll(int64_t bytes) override;
  bool isComplete(uint64_t number) const override { return number <= completed; }
  int outstanding() const override { return int(open.size()); }
  /// Moves the rank's messages during its waits here, and notes those waits. `ranks`: those of the
  /// group, in its order.
  void setWaits(RankWaits *own, std::vector<int> ranks) {
    waits = own;
    ranksHere = std::move(ranks);
  }
  /// Calls visit(address, bytes) for memory that data pass through in transit.
  using Visit = std::function<void(const void *, int64_t)>;
  virtual void forStaging(const Visit &) const {}

protected:
  /// Max pending collectives; beyond it, the oldest is completed early.
  static constexpr uint64_t kRing = 64;
  /// The size of a step of work: short compared with a kernel, long compared with its bookkeeping.
  static constexpr int64_t kChunkBytes = 512 << 10;

  /// Makes collective `number` known to the other ranks. Does not block.
  virtual void publish(uint64_t number) = 0;
  /// Does the next step of work that needs no waiting, adds its size to `worked`, and complete()s
  /// finished collectives. Returns false if all remaining work waits for other ranks. Never blocks.
  virtual bool advance() = 0;
  /// Describes what the oldest collective waits for.
  virtual std::string awaited() const = 0;
  /// Returns, by its number in the group, one of the ranks that block this one; -1 if unknown.
  virtual int awaitedRank() const = 0;
  /// Returns "rank 5 (rank 1 of axis dp)", or "rank 1" in the world's group.
  std::string memberText(int member) const;
  /// Raised when another rank has failed; null if failures are signaled in other ways.
  virtual const FailureFlag *failureFlag() const { return nullptr; }

  const Request &request(uint64_t number) const { return ring[number % kRing]; }
  const Signature &signature(uint64_t number) const { return signatures[number % kRing]; }
  /// Counts `bytes` of computed sums.
  void noteReduced(int64_t bytes) { (polling ? sums.inPolls : sums.inWaits) += bytes; }

  uint64_t started = 0; ///< number of the latest collective started (they count from 1)
  uint64_t completed = 0;
  int64_t worked = 0; ///< bytes that advance() has read or written, for polls' budgets

private:
  void completeThrough(uint64_t number);
  std::array<Request, kRing> ring;
  std::array<Signature, kRing> signatures;
  std::vector<uint64_t> open; ///< started, not waited for
  bool polling = false;
  RankWaits *waits = nullptr;
  std::vector<int> ranksHere; ///< the members' numbers in the world, if there are waits
};

/// A group of one: nothing to communicate.
class LonelyGroup final : public ImmediateGroup {
public:
  explicit LonelyGroup(std::string axis) : ImmediateGroup(std::move(axis), 0, 1) {}
  Pending start(Request request) override;
};

/// A flag for the failure of another rank; shared by all ranks that are threads.
class FailureFlag {
public:
  /// Keeps the rank and message of the first failure.
  void raise(int rank, const std::string &message);
  bool raised() const { return flag.load(std::memory_order_acquire); }
  int rank() const { return failedRank; }
  std::string message() const;

private:
  std::atomic<bool> flag{false};
  mutable std::mutex mutex;
  int failedRank = -1;
  std::string text;
};

/// Thrown in ranks that stop because another one failed.
class StoppedByOther : public Error {
public:
  using Error::Error;
};

/// Waits until `ready`: spins briefly, then yields, then sleeps for growing times, so that more
/// ranks than cores make progress. Throws StoppedByOther if `failure` is raised, and Error with
/// `describe()` after the time-out (timeoutSeconds()). `waits`: the rank's, or null. A
/// long wait is noted there as one for the rank `peer()` (-1: for no particular rank), whose own
/// waits the error then names.
void waitUntil(const std::function<bool()> &ready, const FailureFlag *failure,
               const std::function<std::string()> &describe, RankWaits *waits = nullptr,
               const std::function<int()> &peer = {});

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_GROUP_H
