//===- StartMarks.h - what the ranks of a start say by files ----------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_STARTMARKS_H
#define PARTITA_TOOLS_RUN_STARTMARKS_H

#include "partita/Support/LockedFolder.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::tool {

/// The marks that the ranks of one start leave on this host (partita_rt/start_marks.h). Processes started
/// while this object exists leave their marks in its folder. Those of
/// supervisors that were killed are removed with the next one.
class StartMarks {
public:
  StartMarks();
  ~StartMarks();
  StartMarks(const StartMarks &) = delete;
  StartMarks &operator=(const StartMarks &) = delete;

  /// Returns why the folder could not be made; or "".
  const std::string &problem() const { return why; }
  bool has(const char *mark) const;
  /// Is there a mark whose name begins so?
  bool hasAny(llvm::StringRef prefix) const;
  /// Returns what its file contains (partita_rt/start_marks.h); "" if there is no such mark, or it cannot be
  /// read.
  std::string textOf(const char *mark) const;

private:
  std::string why;
  LockedFolder folder; ///< if it could not be made, there are no marks
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_STARTMARKS_H
