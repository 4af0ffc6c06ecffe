//===- WriteFile.h - files that appear whole or not at all --------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_WRITEFILE_H
#define PARTITA_SUPPORT_WRITEFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace partita {

/// What to do where the path is a device or a pipe, which can never be replaced.
enum class Devices { Write, Refuse };

/// Writes a file that has no name yet in the same folder (O_TMPFILE), brings it to the disk and names
/// it; through a symbolic link to the file itself. `write` returns what went wrong, or nothing, and
/// so does the call, with the path before it where the file system is to blame; then nothing
/// half-written stays behind, nor where the process is killed. On file systems that have no unnamed
/// files it has a temporary name, which SIGKILL leaves behind.
std::string writeFile(llvm::StringRef path,
                      llvm::function_ref<std::string(llvm::raw_ostream &)> write,
                      Devices devices = Devices::Write);

} // namespace partita

#endif // PARTITA_SUPPORT_WRITEFILE_H
