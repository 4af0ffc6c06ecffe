//===- CopyRuntime.h - the runtime's sources beside a program -----------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EMIT_COPYRUNTIME_H
#define PARTITA_LIB_EMIT_COPYRUNTIME_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::emit {

/// Copies what programs for GPUs are built with from the runtime's source folder into the folder
/// `to`, which it makes. What went wrong, with the path before it, or nothing.
std::string copyRuntime(llvm::StringRef source, llvm::StringRef to);

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_COPYRUNTIME_H
