//===- ResumeWords.h - what a command line says of restarts ------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_RESUMEWORDS_H
#define PARTITA_TOOLS_RUN_RESUMEWORDS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// The words of a program's command line that decide where a restart begins.
struct ResumeWords {
  std::string folder; ///< of --checkpoint
  bool resumes = false;
  std::optional<int64_t> steps;   ///< of the full run
  std::vector<std::string> again; ///< the command line of a restart
};

/// Reads a program's arguments, which the program itself checks.
ResumeWords readWords(llvm::ArrayRef<std::string> arguments);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_RESUMEWORDS_H
