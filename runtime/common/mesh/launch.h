// Starts ranks: as threads of this process, or as the processes that a launcher started.

#ifndef PARTITA_RT_COMMON_MESH_LAUNCH_H
#define PARTITA_RT_COMMON_MESH_LAUNCH_H

#include "partita_rt/comm.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace partita_rt {

/// The process's position in the launch. There is one object per process, made before anything is
/// printed.
class World {
public:
  /// Joins the other processes if the environment shows that a launcher started this one. check()
  /// reports it if their number is not the program's.
  explicit World(const Program &program);
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  int process() const { return processRank; }
  int processes() const { return processCount; }
  /// Is this process its launcher's first, according to the environment? For text that is printed
  /// before the processes have joined.
  static bool isFirstStarted(const Program &program);
  /// Returns the help text for starting the program: "mpirun -np RANKS NAME ...".
  static std::string usage(const Program &program);
  /// Throws Error if the processes that were started cannot be the program's ranks.
  void check(const Program &program) const;
  /// Does this process print? Once they have joined, one does. Processes that cannot be the
  /// program's ranks have not joined: each prints, because the first one may be missing, or the
  /// launcher may end it before it has printed.
  bool speaks() const { return processRank == 0 || !launch; }
  /// Says which of the launcher's processes the ranks are (node_order.h); "" if they have its numbers.
  const std::string &renumbered() const { return renumberedLine; }

  /// Returns every process's text, once they have joined; else this one's alone. `what` names the
  /// occasion.
  std::vector<std::string> gather(const std::string &mine, const char *what);
  /// Returns, on all processes, the set-up error of the lowest process that has one; "" if there is
  /// none.
  std::string agree(const std::string &error);

  /// Runs `body` once per rank of the program's mesh, with communicators and memory ready, and
  /// returns the message of the first failure ("" if there is none). If ranks are processes, a
  /// failure after this point is printed as "<name>: error: rank R: ..." and ends all processes
  /// with failureStatus().
  std::string run(const Program &program, const RunOptions *options,
                  const std::function<void(Rank &)> &body);

private:
  struct Launch; ///< the target's own
  std::unique_ptr<Launch> launch;
  int processRank = 0;
  int processCount = 1;
  std::string renumberedLine;
};

/// Returns the first error by rank; "" if no rank has one.
std::string firstError(const std::vector<std::string> &errors);

/// Returns the bytes of one rank's input buffers: all micro-batches of a step, each input 64-byte
/// aligned.
int64_t inputBytes(const Program &program);
/// Returns the offset of each input in them, and their end.
std::vector<int64_t> inputOffsets(const Program &program);

/// Returns the bytes of a rank's arena in this run; `options` may be null.
int64_t arenaBytes(const Stage &stage, const RunOptions *options);

/// PARTITA_RT_TRANSPORT: as if a process, by its launcher's number, were on this node: each on one of
/// its own for `messages`, N after the other on each for `nodes:N`, dealt in turn to N for `dealt:N`.
/// Nothing for the default, `window`: nodes are what they are.
std::optional<int> pretendedNode(int launched);
/// Throws Error for other values, which pretendedNode ignores: processes meet before one reports them.
void checkTransport();

/// The number of seconds after which a rank that waits, or does not move, is reported: --timeout's,
/// else PARTITA_RT_TIMEOUT's, else kTimeoutSeconds. Throws Error if PARTITA_RT_TIMEOUT is not such a number.
double timeoutSeconds();
/// Sets it for this process.
void setTimeoutSeconds(double seconds);
/// Reads such a number of seconds. Throws Error that begins with `what` if it is none.
double secondsFrom(const std::string &what, const std::string &text);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_LAUNCH_H
