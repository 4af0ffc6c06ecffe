// What every transport has in common: collectives are numbered, remembered from start to wait, and
// executed strictly in the order of their numbers, whatever order they are waited for in. As all
// ranks of a group issue the same sequence, executing in order cannot deadlock.

#ifndef PARTITA_RT_CPU_GROUP_H
#define PARTITA_RT_CPU_GROUP_H

#include "cpu/request.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace partita_rt {

class OrderedGroup : public Communicator {
public:
  using Communicator::Communicator;

  Pending start(Request request) override;
  void finish(uint64_t number) override;
  int outstanding() const override { return int(open.size()); }

  /// Number of the latest collective started (they count from 1).
  uint64_t latest() const { return started; }

protected:
  /// More may be under way; the oldest is then completed early.
  static constexpr uint64_t kRing = 64;

  /// Makes collective `number` known to the other ranks. Does not block.
  virtual void publish(uint64_t number) = 0;
  /// Completes collective `number`; the ones before it are complete.
  virtual void execute(uint64_t number) = 0;
  /// Does whatever needs no waiting for collectives after `executed`.
  virtual void progress() {}

  const Request &request(uint64_t number) const { return ring[number % kRing]; }
  const Signature &signature(uint64_t number) const { return signatures[number % kRing]; }

  uint64_t started = 0;
  uint64_t executed = 0;

private:
  void executeThrough(uint64_t number);
  std::array<Request, kRing> ring;
  std::array<Signature, kRing> signatures;
  std::vector<uint64_t> open; ///< started, not waited for
};

/// A group of one: nothing to communicate.
class LonelyGroup final : public Communicator {
public:
  explicit LonelyGroup(std::string axis) : Communicator(std::move(axis), 0, 1) {}
  Pending start(Request request) override;
  void finish(uint64_t) override {}
  int outstanding() const override { return 0; }
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
/// `describe()` after PARTITA_RT_TIMEOUT seconds (default 1800).
void waitUntil(const std::function<bool()> &ready, const FailureFlag *failure,
               const std::function<std::string()> &describe);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUP_H
