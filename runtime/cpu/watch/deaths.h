// Says which rank was killed (kill -9, out of memory), where launchers end the others: mpirun says only which
// process it was, and torchrun's signal may come before a rank over TCP has seen the closed connection.

#ifndef PARTITA_RT_CPU_WATCH_DEATHS_H
#define PARTITA_RT_CPU_WATCH_DEATHS_H

#include "common/watch/flight.h"
#include "common/watch/rank_position.h"

#include <string>
#include <vector>

namespace partita_rt {

/// Why the ranks of a node end, in one word (RankPosition::endCause) that is set once: by the first of them that takes
/// a launcher's signal, or fails. Whoever is killed after that is not the reason. A launcher that ends a run kills
/// ranks too: those that have deferred its SIGTERM, or had no processor to take it.
struct EndCause {
  static constexpr uint64_t kNone = 0;
  static constexpr uint64_t kLauncher =
      ~uint64_t(0); ///< it ends them, and none of them had died before
  static constexpr uint64_t kError = kLauncher - 1; ///< a rank prints an error, or has
  /// Else which had died: up to four places in the list of the node's ranks, from 1, of 16 bits each.
  static constexpr int kMostDead = 4, kPlaceBits = 16;
  static uint64_t placeIn(uint64_t cause, int i) {
    return cause >> (kPlaceBits * i) & ((uint64_t(1) << kPlaceBits) - 1);
  }
};

/// If a signal ends this process after another rank of its node has died, the message says which one,
/// where it was, and who waits; one of the node's ranks prints it, and writes the dead one's flight
/// recorder. One object per process, from when the ranks know each other until they part.
class DeathWatch {
public:
  /// A rank of this node, in memory that its processes share. A signal's handler reads it, so names are
  /// written beforehand.
  struct Watched {
    int rank;
    std::string name;
    RankPosition *position;
    FlightRing *flight;
  };
  /// Who reports a death: a signal's handler, or a thread of this process that learns of it by itself, and ends the
  /// process (processes/monitor.h). A handler gives that one kThreadsPatience seconds.
  enum class Reporter : uint8_t { Handler, Thread };
  static constexpr int kThreadsPatience =
      5; ///< less than launchers have after SIGTERM: torchrun and Slurm wait for 30 s
  /// `ranks`: ascending, with this process's own, `self`. `areAll`: the run has no others. If one of others dies, nothing
  /// here shows why the launcher ends this process, so it writes its flight recorder whenever a signal comes.
  DeathWatch(int self, std::vector<Watched> ranks, bool areAll = true,
             Reporter reporter = Reporter::Handler);
  ~DeathWatch() { end(); }
  DeathWatch(const DeathWatch &) = delete;
  DeathWatch &operator=(const DeathWatch &) = delete;
  /// Call it before the rank ends by itself.
  void end();
  /// Call it before the rank prints an error and ends. No rank of the node is called dead from here on. Returns false if
  /// another one prints an error, or has; else this one has to, now.
  bool endWithError();

private:
  friend struct DeathReport;
  const Watched &own() const;
  std::atomic<uint64_t> &endCause() const { return ranks.front().position->endCause; }
  uint64_t decide() const;
  template <typename Visit> void forDead(uint64_t cause, Visit visit) const;
  void writeOwnFlight(const char *reason) const;
  void appendWaiters(uint64_t cause, FixedText &text) const;

  const int self;
  const std::vector<Watched> ranks;
  const bool areAll;
  const Reporter reporter;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_WATCH_DEATHS_H
