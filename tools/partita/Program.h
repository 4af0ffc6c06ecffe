//===- Program.h - a compiled program's folder -------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_PROGRAM_H
#define PARTITA_TOOLS_PROGRAM_H

#include "tools/partita/Options.h"
#include "llvm/Support/JSON.h"

namespace partita::tool {

/// The manifest that lies in a compiled program's folder; null, and `problem` set, when the folder is
/// no compiled program's.
std::optional<llvm::json::Object> readManifest(llvm::StringRef folder, std::string &problem);

/// The executable in a compiled program's folder; "", and `problem` set, when there is none.
std::string findProgram(llvm::StringRef folder, std::string &problem);

} // namespace partita::tool

#endif // PARTITA_TOOLS_PROGRAM_H
