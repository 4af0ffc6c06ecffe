// Text for a terminal: names from files may contain anything.

#ifndef PARTITA_RT_PRINTABLE_H
#define PARTITA_RT_PRINTABLE_H

#include <cstdint>
#include <cstdio>
#include <string>

namespace partita_rt {

namespace printable_detail {

/// Returns the number of bytes of the character that begins at `at`; 0 for a control character or
/// invalid UTF-8.
inline size_t characterAt(const std::string &text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t(0); };
  uint8_t first = byte(at);
  if (first < 0x80)
    return first >= 0x20 && first != 0x7F;
  size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4)
    return 0;
  uint32_t code = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80)
      return 0;
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0xA0, 0x800, 0x10000}; // controls are below 0xA0
  bool isSurrogate = code >= 0xD800 && code < 0xE000;
  return code >= kLeast[bytes] && code <= 0x10FFFF && !isSurrogate ? bytes : 0;
}

} // namespace printable_detail

/// Replaces control characters, and bytes that are not UTF-8, by \xNN; leaves the rest unchanged.
inline std::string printable(const std::string &text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t bytes = printable_detail::characterAt(text, at);
    if (bytes == 0) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02X", unsigned(uint8_t(text[at])));
      out += code;
      ++at;
      continue;
    }
    out.append(text, at, bytes);
    at += bytes;
  }
  return out;
}

} // namespace partita_rt

#endif // PARTITA_RT_PRINTABLE_H
