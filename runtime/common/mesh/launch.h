// Starting ranks: as threads of this process, or as the processes that a launcher started.

#ifndef PARTITA_RT_COMMON_LAUNCH_H
#define PARTITA_RT_COMMON_LAUNCH_H

#include "partita_rt/comm.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

/// The process's place in the launch. One object per process, made before anything is printed.
class World {
public:
  /// Joins the other processes when the environment shows that a launcher started this one. If their
  /// number is not the program's, check() reports it.
  explicit World(const Program &program);
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  int process() const { return processRank; }
  int processes() const { return processCount; }
  /// Is this process its launcher's first, by the environment? For what is printed before the
  /// processes have joined.
  static bool isFirstStarted();
  /// How a run of the program is started, for its help: "mpirun -np RANKS NAME ...".
  static std::string usage(const Program &program);
  /// Throws Error if the processes that were started cannot be the program's ranks.
  void check(const Program &program) const;
  /// Does this process print? One does, once they have joined. Processes that cannot be the program's
  /// ranks have not joined: each prints, because the first one may be missing, or the launcher may end
  /// it before it has printed.
  bool speaks() const { return processRank == 0 || !launch; }

  /// Set-up errors: the message of the lowest process that has one ("" when none), on all
  /// processes.
  std::string agree(const std::string &error);

  /// Runs `body` once per rank of the program's mesh, with communicators and memory ready, and
  /// returns the message of the first failure ("" when none). Where ranks are processes, a failure
  /// after this point is printed as "<name>: error: rank R: ..." and ends all processes with exit
  /// code 1.
  std::string run(const Program &program, const RunOptions *options,
                  const std::function<void(Rank &)> &body);

private:
  struct Launch; ///< the target's own
  std::unique_ptr<Launch> launch;
  int processRank = 0;
  int processCount = 1;
};

/// Bytes of input buffers of one rank: all micro-batches of a step, each input 64-byte aligned.
int64_t inputBytes(const Program &program);
/// Where each input begins in them; their end.
std::vector<int64_t> inputOffsets(const Program &program);

/// Bytes of a rank's arena in this run; `options` may be null.
int64_t arenaBytes(const Stage &stage, const RunOptions *options);

/// PARTITA_RT_TRANSPORT=messages: do processes of one node communicate as if they were on several?
/// Throws Error if PARTITA_RT_TRANSPORT is neither that nor the default, `window`.
bool asksForMessages();

/// PARTITA_RT_TIMEOUT: how many seconds a rank waits for another (1800).
/// Throws Error if PARTITA_RT_TIMEOUT is not such a number.
double timeoutSeconds();

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_LAUNCH_H
