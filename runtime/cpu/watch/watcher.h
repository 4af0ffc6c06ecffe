// The thread by which a process sends heartbeats, and watches those of others, whatever its ranks
// are doing (common/watch/watch.h). It sleeps; it computes and moves nothing for the ranks.

#ifndef PARTITA_RT_CPU_WATCH_WATCHER_H
#define PARTITA_RT_CPU_WATCH_WATCHER_H

#include "common/watch/flight.h"
#include "common/watch/watch.h"
#include "cpu/watch/udp_heartbeats.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace partita_rt {

/// What a process sees of the ranks.
struct RanksInSight {
  std::vector<RankPosition *> positions; ///< by rank; null: nothing
  std::vector<FlightRing *> flights;     ///< likewise, of this node
  std::vector<std::string> names;        ///< of all ranks, in reports
  std::vector<int> own, local; ///< the ranks of this process; of processes that share memory
  std::unique_ptr<UdpHeartbeats> remote; ///< null: there are no others
};

class Watcher {
public:
  /// Watches until it is destroyed; then the process's ranks are watched no more. If a rank makes
  /// no progress, one process prints so, "NAME: error: rank 2 ... is stuck: ...", and all end.
  /// `isFailing`: the run ends anyway, by an error that is reported elsewhere; may be null.
  Watcher(std::string name, RanksInSight sight, std::function<bool()> isFailing);
  ~Watcher();
  /// Call it when a rank of this process has printed an error for which the run ends, before it does. Lets the node's
  /// other ranks write their flight recorders, which takes a second at most, and tells those of other nodes to.
  void endOthers();
  Watcher(const Watcher &) = delete;
  Watcher &operator=(const Watcher &) = delete;

private:
  void stop();
  void loop();
  void sendHeartbeats();
  void warnOfUnheardNodes() const;
  void expectReport(const std::vector<int> &ranks, bool isDue) const;
  void sleep();
  bool runEnds() const;
  void tellNode() const;
  bool claimReport() const;
  void report(const std::string &text, int subject);
  void awaitTurn();
  void tellOtherNodes() const;
  void awaitFlights() const;
  [[noreturn]] void end() const;
  void writeFlights(const std::vector<int> &ranks, const std::string &reason) const;

  const std::string name;
  const RanksInSight sight;
  const std::function<bool()> isFailing;
  const double timeout;
  std::mutex mutex;
  std::condition_variable changed;
  bool ends = false;
  std::thread thread; ///< the last member: it uses all others
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_WATCH_WATCHER_H
