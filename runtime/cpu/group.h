// What every transport has in common: collectives are numbered, remembered from start to wait, and
// completed strictly in the order of their numbers, whatever order they are waited for in. As all
// ranks of a group issue the same sequence, completing in order cannot deadlock.
//
// A transport is a state machine: advance() does a bounded piece of what needs no waiting. A poll
// calls it a few times between two kernels, a wait until the collective is complete: one code for
// both, so the bits cannot depend on where the work is done.

#ifndef PARTITA_RT_CPU_GROUP_H
#define PARTITA_RT_CPU_GROUP_H

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
  /// The rank's messages move while it waits here, and its waits are noted. `ranks`: of the group,
  /// in its order.
  void setWaits(RankWaits *own, std::vector<int> ranks) {
    waits = own;
    ranksHere = std::move(ranks);
  }
  /// Calls visit(address, bytes) for the memory that data pass through on their way.
  using Visit = std::function<void(const void *, int64_t)>;
  virtual void forStaging(const Visit &) const {}

protected:
  /// More may be under way; the oldest is then completed early.
  static constexpr uint64_t kRing = 64;
  /// A piece of work is about this large: short beside a kernel, long beside its bookkeeping.
  static constexpr int64_t kPieceBytes = 512 << 10;

  /// Makes collective `number` known to the other ranks. Does not block.
  virtual void publish(uint64_t number) = 0;
  /// Does the next piece of work that needs no waiting, adds its size to `worked`, and complete()s
  /// what is; false: all that is left waits for other ranks. Never blocks.
  virtual bool advance() = 0;
  /// What the oldest collective waits for.
  virtual std::string awaited() const = 0;
  /// The rank, by its number in the group, that it waits for: one of those without which it cannot
  /// go on. -1: not known.
  virtual int awaitedRank() const = 0;
  /// "rank 5 (rank 1 of axis dp)"; of the world "rank 1".
  std::string memberText(int member) const;
  /// Raised when another rank has failed; null where failures travel in other ways.
  virtual const FailureFlag *failureFlag() const { return nullptr; }

  const Request &request(uint64_t number) const { return ring[number % kRing]; }
  const Signature &signature(uint64_t number) const { return signatures[number % kRing]; }
  /// `bytes` of sums were made.
  void noteReduced(int64_t bytes) { (polling ? sums.inPolls : sums.inWaits) += bytes; }

  uint64_t started = 0; ///< number of the latest collective started (they count from 1)
  uint64_t completed = 0;
  int64_t worked = 0; ///< bytes that advance() has read or written, for the budget of polls

private:
  void completeThrough(uint64_t number);
  std::array<Request, kRing> ring;
  std::array<Signature, kRing> signatures;
  std::vector<uint64_t> open; ///< started, not waited for
  bool polling = false;
  RankWaits *waits = nullptr;
  std::vector<int> ranksHere; ///< the members' numbers in the world, where there are waits
};

/// A group of one: nothing to communicate.
class LonelyGroup final : public ImmediateGroup {
public:
  explicit LonelyGroup(std::string axis) : ImmediateGroup(std::move(axis), 0, 1) {}
  Pending start(Request request) override;
};

/// How a rank learns that another one has failed; shared by all ranks that are threads.
class FailureFlag {
public:
  /// The first failure's rank and message are kept.
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

/// Waits until `ready`: spins briefly, then yields, then sleeps in growing steps, so that more
/// ranks than cores work. Throws StoppedByOther when `failure` is raised, and Error with
/// `describe()` after PARTITA_RT_TIMEOUT seconds (default 1800). `waits`: the rank's, or null; a
/// wait that becomes long is kept there, as one for the rank `peer()` (-1: for no one rank), whose
/// own waits the error then names.
void waitUntil(const std::function<bool()> &ready, const FailureFlag *failure,
               const std::function<std::string()> &describe, RankWaits *waits = nullptr,
               const std::function<int()> &peer = {});

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUP_H
