// Finds the rank that no longer makes progress, by what all ranks publish (rank_position.h). No
// thread, no socket: whoever has a view of the ranks' positions calls it every few tenths of a second.
//
//   stopped  its process sends no heartbeat
//   stuck    its process does, but the rank stays at one position
//   slow     its process sends no heartbeat, but is known to run; or the rank moves, but others have waited for it in vain
//
// A rank that waits is none of these: the one for which it waits, and so on, is.

#ifndef PARTITA_RT_COMMON_WATCH_WATCH_H
#define PARTITA_RT_COMMON_WATCH_WATCH_H

#include "common/watch/rank_position.h"
#include "partita_rt/own_clock.h"

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace partita_rt {

/// How often ranks send a heartbeat, and look at those of others, in seconds.
inline double heartbeatSeconds(double timeout) { return timeout < 4 ? timeout / 8 : 0.5; }
/// Ranks that wait report by themselves only this much later than the watch, which knows more.
inline double patienceSeconds(double timeout) { return timeout < 4 ? timeout / 3 : 1.25; }
/// How long a rank may be at one position in a phase that takes long.
inline double longSeconds(double timeout) { return timeout < 1800 ? 1800 : timeout; }

/// "; it is in step 3 (forward), and waits in ...": what is known of a rank.
std::string positionText(const RankPosition &position);
/// The same of one that is gone: "; it was in step 3 (forward)", or "; it was last seen in step 3 (forward)".
std::string lastPositionText(const RankPosition &position);
/// "rank 2 (...) has stopped: no heartbeat from its process for 12 s; it was in step 3 (forward)".
std::string stoppedText(const std::string &name, double seconds, const RankPosition &position);
/// The same of one that may run: "rank 2 (...) is slow: its process runs, but it has sent no heartbeat for 12 s, ...".
std::string silentText(const std::string &name, bool runs, double seconds,
                       const RankPosition &position);

class Watch {
public:
  /// `names`: of the ranks, in reports. `self` is never found to have stopped; -1: nobody's view.
  Watch(std::vector<std::string> names, int self) : names(std::move(names)), self(self) {
    ranks.resize(this->names.size());
  }
  /// `runs`: does the process of a rank run, as far as its host says? If it is silent, it is then slow, not stopped: the machine may
  /// have more to do than the time-out allows for. False if that is not known.
  void setRuns(std::function<bool(int rank)> value) { runs = std::move(value); }
  /// Looks at the positions, by rank; null, or without a heartbeat so far: unknown. `now`: seconds
  /// by an OwnClock. Returns the report on the rank that is the cause; "" if there is none.
  std::string look(const std::vector<const RankPosition *> &positions, double now, double timeout);
  /// "rank 2 (...) has stopped: no heartbeat ...", or "is slow: ...", if it sends none for longer than these are
  /// apart; "" if it does, or has never sent one.
  std::string silenceOf(int rank, const RankPosition *position, double now, double timeout) const;
  /// The rank of the last report, and those that it names because they wait.
  int subject() const { return found; }
  const std::set<int> &namedWaiters() const { return named; }

private:
  struct Seen {
    bool known = false;
    uint64_t beats = 0, moves = 0;
    int32_t waitsFor = RankPosition::kNoWait;
    double beatAt = 0, moveAt = 0; ///< when they were seen to change
  };
  /// Has it sent no heartbeat for longer than these are apart? Then it may have stopped.
  static bool isSilent(const Seen &seen, double now, double timeout) {
    return now - seen.beatAt > 3 * heartbeatSeconds(timeout);
  }
  void see(const RankPosition *position, Seen &seen, double now) const;
  int rootOf(int rank, const std::vector<const RankPosition *> &positions) const;
  std::string slowText(const std::vector<const RankPosition *> &positions, double now,
                       double timeout);
  std::string silentText(int rank, double seconds, const RankPosition &position) const {
    return partita_rt::silentText(names[size_t(rank)], runs && runs(rank), seconds, position);
  }
  std::string waitersOf(int rank, const std::vector<const RankPosition *> &positions);

  std::vector<std::string> names;
  std::function<bool(int)> runs; ///< may be null
  std::vector<Seen> ranks;
  int self, found = -1;
  std::set<int> named;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_WATCH_WATCH_H
