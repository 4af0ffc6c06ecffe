// Where the processes of a run meet before they have communicators, and learn of each other's end.
//
// Rank 0 listens; every other rank keeps a TCP connection to it. A thread of each process reads the
// connections, whatever the process itself does meanwhile: a rank that fails, dies (its connection
// ends without a goodbye), hangs or was started for another number of ranks ends all of them: each
// exits with code 1, and one, the lowest that lives, says why. Nobody waits for those that are
// gone.
//
//     Rendezvous rendezvous(readEnvironment(), program.name);    // "gpt2: error: rank 2 ... died"
//     std::vector<std::string> ids = rendezvous.allGather(id, "NCCL ids");
//     ...
//     rendezvous.fail("cudaMalloc: out of memory");              // all ranks end here
//
// Contract: all ranks call allGather, broadcast, agree and barrier in one order with the same
// `what`; else, and when PARTITA_RT_TIMEOUT seconds pass, all ranks fail with who is where. That
// rank 0 lives the others hear about every second; of one that is silent for as long (a process
// that is stopped, a host that is gone) those that live say so by themselves (succession.h).
//
// Before they have met ranks know of rank 0 alone. If that is not there, or their environment is
// wrong, one of each machine says so (first_here.h).

#ifndef PARTITA_RT_PROCESSES_RENDEZVOUS_H
#define PARTITA_RT_PROCESSES_RENDEZVOUS_H

#include "common/mesh/launch.h"
#include "processes/launch_environment.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt::processes {

/// A process of the run.
struct Peer {
  std::string host;
  int process = 0;
  int localRank = 0; ///< among the ranks of its host
  std::string address;
  int port = 0;          ///< where it can be seen to live, by ranks that have lost rank 0
  std::string name = {}; ///< "rank 2 of stage 1"
};

/// Why all ranks end. Of failures that are reported at about the same time the first kind counts,
/// and of one kind the lowest rank's.
enum class Cause : uint8_t {
  Error,   ///< what a rank says itself
  Death,   ///< a connection that ended
  Timeout, ///< what a rank waits for in vain
  Sequel,  ///< an error that another rank's end leads to: those of NCCL
};

class Monitor;
struct Ending;

class Rendezvous {
public:
  /// Meets the other ranks. Ends the process with a message, as fail does, when they do not come
  /// within `timeout` (at most 300) seconds or contradict each other. `name`: what messages begin
  /// with; `rankName`: what they call a rank, if not "rank 2".
  explicit Rendezvous(const LaunchEnvironment &environment, const std::string &name = "",
                      double timeout = timeoutSeconds(),
                      const std::function<std::string(int rank)> &rankName = {});
  /// Says goodbye, and waits until all have.
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  int rank() const { return environment.rank; }
  int ranks() const { return environment.ranks; }
  int localRank() const { return peers()[size_t(rank())].localRank; }
  const std::string &launcher() const { return environment.launcher; }
  /// By rank.
  const std::vector<Peer> &peers() const;

  /// What every rank gives, by rank. At most 1 MiB each. `what` names the occasion.
  std::vector<std::string> allGather(const std::string &mine, const std::string &what);
  /// Rank `root`'s text.
  std::string broadcast(const std::string &text, const std::string &what, int root = 0);
  /// The first rank's text that is not empty: of an error that some ranks see, on all of them.
  std::string agree(const std::string &error);
  void barrier(const std::string &what) { allGather("", what); }

  /// Ends all ranks with exit code 1 and this message, "rank R: MESSAGE".
  [[noreturn]] void fail(const std::string &message) { report(Cause::Error, message, ""); }
  /// Likewise of a watchdog. `question`: given to every rank's `answer`; what they say stands
  /// behind the message.
  [[noreturn]] void report(Cause cause, const std::string &message, const std::string &question);

  /// What messages begin with.
  void setName(const std::string &name);
  /// Answers questions of other ranks' reports, on a thread of the rendezvous; "" where it has
  /// nothing to say.
  void setAnswer(std::function<std::string(const std::string &question)> answer);
  /// Called before the process ends because of a failure, on a thread of its own that is given a
  /// few seconds.
  void setAbort(std::function<void()> abort);

private:
  LaunchEnvironment environment;
  std::vector<Peer> alone;          ///< of a run of one rank
  std::unique_ptr<Ending> ending;   ///< likewise
  std::unique_ptr<Monitor> monitor; ///< of several
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_RENDEZVOUS_H
