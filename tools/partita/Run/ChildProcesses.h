//===- ChildProcesses.h - starts a program's processes, and ends them together ----*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_CHILDPROCESSES_H
#define PARTITA_TOOLS_RUN_CHILDPROCESSES_H

#include "tools/partita/Run/Verdict.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace partita::tool {

/// The result of a step that has ended training.
struct FailedStep {
  int64_t step = 0; ///< 0: there is none
  std::string kind; ///< a word for the result, "loss-nan"
  std::string text; ///< for people: "the loss of step 7 is nan"

  explicit operator bool() const { return step > 0; }
  bool recurs(const FailedStep &other) const {
    return step > 0 && step == other.step && kind == other.kind;
  }
};

/// How a program's processes have ended.
struct Outcome : EndFacts {
  int signal = 0; ///< by which this process should end too; 0: none
  std::string
      why; ///< the first cause, for a message: "rank 1 was ended by signal 9 (Killed)"; or ""
  std::optional<ino_t> savedIn; ///< the folder in which a checkpoint was completed, on this host
  std::string lostRank;         ///< which rank died or stopped, as another one has reported; or ""
  std::string error;            ///< an error of its own with which a rank has ended; or ""
  FailedStep failedStep;
  bool rankPrintedError = false; ///< a rank exited with an error of its own, and printed it
};

/// Starts this many ranks of a program, with torchrun's variables, and waits for them. `words`: the
/// program's name and arguments; `command` is named in messages.
Outcome runRanks(llvm::StringRef command, const std::string &program,
                 std::vector<std::string> words, int ranks);
/// Starts one process, a program all of whose ranks are its threads or a launcher of it, and waits
/// for it. Ends a launcher that outlives the ranks of this host.
Outcome runProcess(llvm::StringRef command, const std::string &program,
                   std::vector<std::string> words);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_CHILDPROCESSES_H
