// The thread that reads a process's connections to the other ranks (rendezvous.h), and ends the
// process when they end.

#ifndef PARTITA_RT_PROCESSES_MONITOR_H
#define PARTITA_RT_PROCESSES_MONITOR_H

#include "processes/joining.h"
#include "processes/succession.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace partita_rt::processes {

/// What a process does when it exits because of a failure.
struct FailureExit {
  std::string name;                                ///< the beginning of the message
  std::function<void()> abort;                     ///< limited to a few seconds
  std::function<void(const std::string &)> record; ///< writes what the rank did last
};
/// Prints "NAME: error: MESSAGE" if `speaks`, aborts, and exits with failureStatus() (common/start_marks.h).
[[noreturn]] void endProcess(const FailureExit &ending, const std::string &message, bool speaks);

class Monitor {
public:
  /// Waits this many seconds for other ranks. `run`: the start's name, which no other start has. Ranks that have lost rank 0 reach
  /// this process through `listener`.
  Monitor(int rank, Joined joined, double timeout, std::string run, Socket listener,
          FailureExit ending);
  /// Says goodbye, and waits until all ranks have.
  ~Monitor();

  const std::vector<Peer> &peers() const { return known; }
  // The process's own thread calls these, one at a time; none of them throws.
  /// Returns all ranks' texts, by rank. If one does not come within the time-out, the process ends here, and so do all.
  std::vector<std::string> gather(const std::string &what, const std::string &text);
  /// Reports why the run ends and never returns: the monitor's thread ends the process, within two seconds if rank 0 answers
  /// and five if not. One rank prints the message, this one or the first of several that report.
  /// `question`: asked of all other ranks, whose answers (setAnswer) are appended; "": none. Blocks the calling thread's signals.
  [[noreturn]] void report(Cause cause, const std::string &message, const std::string &question);

  /// What the process's rank publishes of itself, in memory that stays until the monitor is destroyed. Rank 0 gets it twice a
  /// second from here on, and only then finds out that the rank has stopped or is stuck.
  void setPosition(RankPosition &position);
  /// Another rank's, in memory that this process shares with it, likewise; it replaces what that rank sends.
  void see(int rank, const RankPosition &position);
  /// What another rank has sent, on rank 0; null on others.
  const RankPosition *positionOf(int rank) const { return hub ? &hub->positionOf(rank) : nullptr; }
  /// In seconds; from the next look on.
  void setTimeout(double seconds) { timeout = seconds; }
  /// The program's name, which begins messages; until then, the constructor's.
  void setName(const std::string &name);
  /// The monitor's thread calls these functions, at the end of the run, while the process's own thread may be anywhere: for
  /// what the rank waits, when another one asks ("": for nothing); what ends its device's work, within three seconds; what
  /// writes its flight recorder, with the reason.
  void setAnswer(std::function<std::string(const std::string &)> value);
  void setAbort(std::function<void()> value);
  void setRecord(std::function<void(const std::string &)> value);

private:
  void send(Frame frame); ///< to rank 0, through the thread
  void wake();
  void loop();
  void waitForNews();
  void exchange();
  void sendHeartbeat();
  void received(const Frame &frame);
  void checkSilence();
  const RankPosition &positionOfRankZero() const;
  std::string deathOfRankZero() const;
  std::string ownWaitText() const;
  std::string lostRankText(const std::string &mine, double seconds) const;
  void takeOver(const std::string &message);
  [[noreturn]] void end(const std::string &message, bool speaks);

  const int rank;
  std::atomic<double> timeout;
  const std::string run;
  std::vector<Peer> known;
  std::vector<std::unique_ptr<Connection>> connections; ///< on rank 0 by rank; else one
  std::unique_ptr<Hub> hub;                             ///< on rank 0
  std::deque<Frame> toSelf;                             ///< from the hub
  OwnPort port;
  OwnClock clock;
  Clock::time_point now;   ///< by that clock
  Clock::time_point heard; ///< the last heartbeat of rank 0
  Clock::time_point nextHeartbeat;
  std::atomic<bool> heartbeatIsDue{false};
  std::atomic<RankPosition *> own{nullptr};        ///< what the process's rank publishes
  RankPosition ofRankZero;                         ///< what rank 0 has published
  std::atomic<const RankPosition *> near{nullptr}; ///< the same, in memory that both share
  bool succeeding = false;
  Socket wakeRead, wakeWrite;

  std::mutex mutex;
  std::condition_variable news;
  std::deque<Frame> outgoing;
  uint32_t gathers = 0; ///< started
  std::map<uint32_t, std::vector<std::string>> gathered;
  std::string reported; ///< the process's last words, unless rank 0 says otherwise
  std::atomic<bool> farewell{false};
  FailureExit ending;
  std::function<std::string(const std::string &)> answer;

  std::thread successor; ///< started by `thread` if rank 0 is lost
  std::thread thread;    ///< the last member: it uses all others
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_MONITOR_H
