//===- Placeholders.h - {ranks} and {hosts} in a launcher's words ----------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_PLACEHOLDERS_H
#define PARTITA_TOOLS_RUN_PLACEHOLDERS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::tool {

inline constexpr llvm::StringLiteral kRanksPlaceholder = "ranks", kHostsPlaceholder = "hosts";

/// Returns the text with each {name} replaced by `valueOf(name)`. A name has letters and underscores. {{name}} stands for {name} as it is,
/// such as a script's. ${name} is the shell's, and stays; so does any other brace.
std::string replacePlaceholders(llvm::StringRef text,
                                llvm::function_ref<std::string(llvm::StringRef)> valueOf);

/// Has the text this placeholder?
bool hasPlaceholder(llvm::StringRef text, llvm::StringRef name);

/// Returns the name of a placeholder that is none of the two, without braces; or "".
std::string unknownPlaceholder(llvm::StringRef text);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_PLACEHOLDERS_H
