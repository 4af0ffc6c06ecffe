// Accounts for the time of a training step, for runs with --breakdown.
//
// Emitted steps announce changes of the kind of computation (beginWork); waits for collectives and
// copies, and the data loader, announce theirs. So a rank's clock assigns every moment of the step
// to one kind, and the kinds add up to it. Without --breakdown a rank has no clock, and all of this
// is one branch.

#ifndef PARTITA_RT_WORK_H
#define PARTITA_RT_WORK_H

#include "partita_rt/program.h"

#include <chrono>
#include <functional>

namespace partita_rt {

enum class Work : uint8_t {
  Data,        ///< filling the inputs
  Forward,     ///< and work that belongs to neither pass
  Backward,    ///< including recomputation
  Update,      ///< parameters and optimizer states
  Collectives, ///< starting, polling and waiting for them
  Transfers    ///< waiting for copies between device and host
};
constexpr int kWorkKinds = 6;
/// "data", "forward", ...
const char *nameOf(Work work);

/// Seconds by kind, of one rank.
class WorkClock {
public:
  /// Starts a step, with its data.
  void start() {
    for (double &each : spent)
      each = 0;
    now = Work::Data;
    since = std::chrono::steady_clock::now();
  }
  /// Assigns the time from here on to this kind. Returns the previous kind.
  Work begin(Work work) {
    if (settle)
      settle();
    auto time = std::chrono::steady_clock::now();
    spent[int(now)] += std::chrono::duration<double>(time - since).count();
    since = time;
    Work before = now;
    now = work;
    return before;
  }
  /// Ends the step.
  void stop() { begin(now); }
  double seconds(Work work) const { return spent[int(work)]; }
  /// Sets a function that waits for the work started so far, called before the clock is read: for
  /// GPUs.
  void settleBy(std::function<void()> wait) { settle = std::move(wait); }

private:
  double spent[kWorkKinds] = {};
  Work now = Work::Data;
  std::chrono::steady_clock::time_point since;
  std::function<void()> settle;
};

/// Publishes what the rank is doing, for reports of ranks that make no progress.
void noteWork(const Rank &rank, Work work);

/// Emitted code calls this where its computation changes kind.
inline void beginWork(Rank &rank, Work work) {
  noteWork(rank, work);
  if (rank.clock)
    rank.clock->begin(work);
}

/// A scope whose time is of this kind; afterwards the previous kind continues. The clock may be
/// null.
class WorkScope {
public:
  WorkScope(WorkClock *clock, Work work)
      : clock(clock), before(clock ? clock->begin(work) : work) {}
  ~WorkScope() {
    if (clock)
      clock->begin(before);
  }
  WorkScope(const WorkScope &) = delete;
  WorkScope &operator=(const WorkScope &) = delete;

private:
  WorkClock *clock;
  Work before;
};

} // namespace partita_rt

#endif // PARTITA_RT_WORK_H
