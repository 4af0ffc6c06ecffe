//===- WriteFile.h - files that appear complete or not at all -----------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_WRITEFILE_H
#define PARTITA_SUPPORT_WRITEFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace partita {

/// What to do if the path is a device or a pipe, which can never be replaced.
enum class Devices { Write, Refuse };

/// Writes an unnamed file in the same folder (O_TMPFILE), syncs it to disk and then names it; a
/// symbolic link leads to the file itself. `write` and the call return what went wrong, or "";
/// errors of the file system begin with the path. Nothing half-written stays behind, even if the
/// process is killed. On file systems without unnamed files it has a temporary name, which SIGKILL
/// leaves behind.
std::string writeFile(llvm::StringRef path,
                      llvm::function_ref<std::string(llvm::raw_ostream &)> write,
                      Devices devices = Devices::Write);

/// What is wrong with writing to `output` what is made from `input`: it is the same file. Nothing
/// otherwise. `option` is where the output was named.
std::string checkNotInput(llvm::StringRef output, llvm::StringRef input,
                          llvm::StringRef option = "-o");

} // namespace partita

#endif // PARTITA_SUPPORT_WRITEFILE_H
