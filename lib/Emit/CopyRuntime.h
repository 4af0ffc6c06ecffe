//===- CopyRuntime.h - copies the runtime's sources next to a program ---------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_COPYRUNTIME_H
#define PARTITA_LIB_EMIT_COPYRUNTIME_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::emit {

/// Copies the sources with which GPU programs are built from the runtime's folder to the folder
/// `to`, which it creates. Returns an error that starts with the path, or "".
std::string copyRuntime(llvm::StringRef source, llvm::StringRef to);

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_COPYRUNTIME_H
