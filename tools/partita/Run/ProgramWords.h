//===- ProgramWords.h - what a program's command line says to its supervisor -------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_PROGRAMWORDS_H
#define PARTITA_TOOLS_RUN_PROGRAMWORDS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// The words of a program's command line that decide where a restart begins.
struct ProgramWords {
  std::string folder; ///< of --checkpoint
  std::string log;    ///< of --log
  bool resumes = false;
  std::optional<int64_t> steps;   ///< of the full run
  std::vector<std::string> again; ///< the command line of a restart
};

/// Reads a program's arguments, which the program itself checks.
ProgramWords readWords(llvm::ArrayRef<std::string> arguments);
/// Returns the program's time-out in seconds: --timeout, else PARTITA_RT_TIMEOUT, else the default. `arguments` may
/// end with null, as execv takes them.
double timeoutOf(llvm::ArrayRef<char *> arguments);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_PROGRAMWORDS_H
