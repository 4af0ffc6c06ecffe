//===- Quoted.h - names in messages ---------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_QUOTED_H
#define PARTITA_SUPPORT_QUOTED_H

#include "runtime/include/partita_rt/printable.h"
#include "llvm/ADT/StringRef.h"

namespace partita {

/// Is it a byte of a UTF-8 character, but not its first one?
inline bool continuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The beginning of `text`, at most `size` bytes, ending with a complete UTF-8 character.
inline llvm::StringRef takeCharacters(llvm::StringRef text, size_t size) {
  while (size > 0 && size < text.size() && continuesCharacter(text[size]))
    --size;
  return text.take_front(size);
}

/// A text from a file, safe to print: in single quotes, cut after `most` bytes, with unprintable
/// characters escaped.
inline std::string quoted(llvm::StringRef text, size_t most) {
  llvm::StringRef shown = takeCharacters(text, most);
  return "'" + partita_rt::printable(shown.str()) + (shown.size() < text.size() ? "...'" : "'");
}

} // namespace partita

#endif // PARTITA_SUPPORT_QUOTED_H
