//===- ParseBytes.h - sizes as users write them -------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_PARSEBYTES_H
#define PARTITA_SUPPORT_PARSEBYTES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace partita {

/// Parses "512", "64K", "1.5G" as bytes: a number, K, M, G or T for powers of 1024, and optionally
/// B or iB ("2 MiB"). A fraction needs a unit. Returns none and sets `problem` if the text is not
/// such a size.
std::optional<int64_t> parseBytes(llvm::StringRef text, std::string *problem = nullptr);

/// The same of elements, without B or iB.
std::optional<int64_t> parseElements(llvm::StringRef text, std::string *problem = nullptr);

} // namespace partita

#endif // PARTITA_SUPPORT_PARSEBYTES_H
