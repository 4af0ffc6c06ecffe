// Connects the processes of a run before they have communicators, and tells them of each other's
// end.
//
// Rank 0 listens; every other rank keeps a TCP connection to it. A thread of each process reads the
// connections, whatever the process itself is doing. If a rank fails, dies (its connection ends
// without a goodbye), hangs or was started for another number of ranks, all ranks end: each exits
// with failureStatus() (common/start_marks.h), and the lowest that is alive prints the reason. None
// waits for ranks that are gone.
//
//     Rendezvous rendezvous(readEnvironment(), program.name);    // "gpt2: error: rank 2 ... died"
//     std::vector<std::string> ids = rendezvous.allGather(id, "NCCL ids");
//     ...
//     rendezvous.fail("cudaMalloc: out of memory");              // all ranks end here
//
// Contract: all ranks call allGather, broadcast, agree and barrier in the same order with the same
// `what`. Otherwise, or after the time-out (--timeout, else PARTITA_RT_TIMEOUT), all ranks fail, and the
// error says where each is. Rank 0 sends a heartbeat twice a second; if it is silent for that time-out (a
// stopped process, a host that is gone), the surviving ranks report so on their own (succession.h).
//
// Before they have met, ranks know only of rank 0. If it is missing, or their environment is wrong,
// one process of each host prints so (host_speaker.h).

#ifndef PARTITA_RT_PROCESSES_RENDEZVOUS_H
#define PARTITA_RT_PROCESSES_RENDEZVOUS_H

#include "common/mesh/launch.h"
#include "processes/launch_environment.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt {
struct RankPosition;
}

namespace partita_rt::processes {

/// A process of the run, by its rank on the mesh (common/mesh/node_order.h), which may be another one
/// than the launcher's number.
struct Peer {
  std::string host;
  int process = 0;
  int localRank = 0; ///< among the ranks of its host
  std::string address;
  int port = 0;           ///< where ranks that have lost rank 0 can reach it
  int launcherNumber = 0; ///< the launcher's number for it
  /// Does it run on rank 0's host? Its connection with rank 0 then comes from an address of that host: hosts may share a name, and
  /// even show each other's processes.
  bool isBesideRankZero = false;
  std::string name = {}; ///< "rank 2 of stage 1"
};

/// Why all ranks end. Among failures reported at about the same time, the first kind wins; within a
/// kind, the lowest rank's.
enum class Cause : uint8_t {
  Error,   ///< a rank's own error
  Death,   ///< a connection ended
  Stall,   ///< a rank has stopped, or makes no progress
  Timeout, ///< a rank waited in vain
  Sequel,  ///< an error caused by another rank's end, such as NCCL's
};

/// What `answer` gets when all ranks are asked for what they wait, because one is lost.
constexpr char kWhereAreYou[] = "where are you";

class Monitor;
struct FailureExit;

class Rendezvous {
public:
  /// Meets the other ranks. Ends the process with a message, as fail does, if they do not arrive
  /// within `timeout` (at most 300) seconds or contradict each other. `name`: the beginning of
  /// messages; `rankName`: the name of a rank in messages, if not "rank 2".
  explicit Rendezvous(const LaunchEnvironment &environment, const std::string &name = "",
                      double timeout = timeoutSeconds(),
                      const std::function<std::string(int rank)> &rankName = {});
  /// Says goodbye, and waits until all ranks have.
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  int rank() const { return self; }
  int ranks() const { return environment.ranks; }
  int localRank() const { return peers()[size_t(rank())].localRank; }
  /// Returns all ranks' processes, by rank.
  const std::vector<Peer> &peers() const;
  /// Returns the launcher's numbers, by rank.
  std::vector<int> launcherNumbers() const;

  /// Returns every rank's text, by rank. `what` names the occasion. Waits for all ranks; one thread of the
  /// process calls it at a time. The texts have less than 256 MiB together (Connection::kMostBytes), since
  /// rank 0 sends them all to each: for any number of ranks of which each gives 256 bytes, that is a
  /// million. More is an error that ends all ranks, and names the occasion.
  std::vector<std::string> allGather(const std::string &mine, const std::string &what);
  /// Returns rank `root`'s text.
  std::string broadcast(const std::string &text, const std::string &what, int root = 0);
  /// Returns, on all ranks, the first non-empty text by rank: an error that some ranks see.
  std::string agree(const std::string &error);
  void barrier(const std::string &what) { allGather("", what); }

  /// Ends all ranks with the status of an error (common/start_marks.h) and this message,
  /// "rank R: MESSAGE".
  [[noreturn]] void fail(const std::string &message);
  /// Does the same for a watchdog, but leaves no mark of a refusal. `question` is passed to every rank's `answer`; the answers are
  /// appended to the message.
  [[noreturn]] void report(Cause cause, const std::string &message, const std::string &question);

  /// Publishes the position of the process's rank, which must live as long as this: from now on all
  /// ranks end if it stops, or makes no progress. Called again, it tells the others at once where the
  /// rank is.
  void setPosition(RankPosition &position);
  /// From now on reads another rank's position from memory that this process shares with it, instead of
  /// its beats, once the beats carry that position. It must live as long as this.
  void see(int rank, const RankPosition &position);
  /// Returns what rank 0 has heard of another rank; null on other ranks.
  const RankPosition *positionOf(int rank) const;
  void setTimeout(double seconds);
  /// Sets the beginning of messages.
  void setName(const std::string &name);
  /// Sets the function that answers questions of other ranks' reports, on a thread of the
  /// rendezvous; it returns "" if it has nothing to add.
  void setAnswer(std::function<std::string(const std::string &question)> answer);
  /// Sets a function that is called before the process ends because of a failure, on a thread of
  /// its own that is limited to a few seconds.
  void setAbort(std::function<void()> abort);

  /// Sets a function that is called with the reason before that, on any thread.
  void setRecord(std::function<void(const std::string &reason)> record);

private:
  LaunchEnvironment environment;
  int self;                            ///< the process's rank
  std::vector<Peer> alone;             ///< if the run has one rank
  std::unique_ptr<FailureExit> ending; ///< likewise
  std::unique_ptr<Monitor> monitor;    ///< if it has several
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_RENDEZVOUS_H
