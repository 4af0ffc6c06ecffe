//===- Quoted.h - names in messages ---------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_QUOTED_H
#define PARTITA_SUPPORT_QUOTED_H

#include "runtime/include/partita_rt/printable.h"
#include "llvm/ADT/StringRef.h"

namespace partita {

/// Returns true for a byte of a UTF-8 character other than its first.
inline bool continuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Returns the beginning of `text`, at most `size` bytes, ending with a complete UTF-8 character.
inline llvm::StringRef takeCharacters(llvm::StringRef text, size_t size) {
  while (size > 0 && size < text.size() && continuesCharacter(text[size]))
    --size;
  return text.take_front(size);
}

/// Quotes a text from a file so that it is safe to print: in single quotes, cut after `most` bytes,
/// with unprintable characters escaped.
inline std::string quoted(llvm::StringRef text, size_t most) {
  llvm::StringRef shown = takeCharacters(text, most);
  return "'" + partita_rt::printable(shown.str()) + (shown.size() < text.size() ? "...'" : "'");
}

} // namespace partita

#endif // PARTITA_SUPPORT_QUOTED_H
