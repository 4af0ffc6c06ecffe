// Checksums of the files that a run writes: CRC-32C, which finds every error of up to three bits in
// a block and every burst of up to 32. The compiler reads these files too, so this header includes
// no other header of the runtime.
//
//   - The JSON text of a file (the header of safetensors, the index of a checkpoint) contains its own
//     checksum, as `"crc32c": "1f2e3d4c"`, computed with zeros for these eight digits.
//   - The data of a safetensors file are checked in blocks of checksumBlock() bytes. Each tensor
//     begins a block of its own, so a reader checks what it reads and nothing else. The metadata's
//     "block_crc32c" has eight digits per block, in the order of the data.

#ifndef PARTITA_RT_CHECKSUM_H
#define PARTITA_RT_CHECKSUM_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace partita_rt {

constexpr int64_t kChecksumBlock = 64 << 10; ///< the smallest blocks
/// Leaves room for the rest of a header, which is at most 100 MB, beside the blocks' digits.
constexpr int64_t kMostFullBlocks = 10'000'000;
constexpr size_t kChecksumDigits = 8;
constexpr char kTextChecksum[] = "crc32c";
constexpr char kBlockChecksums[] = "block_crc32c";
constexpr char kHeaderChecksum[] = "header_crc32c"; ///< of each file's header, in an index

/// Tables to process eight bytes at once: entry [k][b] is byte b followed by k zero bytes.
struct ChecksumTables {
  uint32_t of[8][256] = {};
  constexpr ChecksumTables() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit)
        crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
      of[0][byte] = crc;
    }
    for (int k = 1; k < 8; ++k)
      for (uint32_t byte = 0; byte < 256; ++byte)
        of[k][byte] = of[k - 1][byte] >> 8 ^ of[0][of[k - 1][byte] & 255];
  }
};
inline constexpr ChecksumTables kChecksumTables;

/// Returns the CRC-32C of earlier bytes, whose checksum is `before`, followed by these.
inline uint32_t crc32c(const unsigned char *data, int64_t size, uint32_t before = 0) {
  uint32_t crc = ~before;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
#ifdef __SSE4_2__
    crc = uint32_t(__builtin_ia32_crc32di(crc, word));
#else
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k)
      crc ^= kChecksumTables.of[7 - k][word >> 8 * k & 255];
#endif
  }
  for (; size > 0; ++data, --size)
    crc = crc >> 8 ^ kChecksumTables.of[0][(crc ^ *data) & 255];
  return ~crc;
}

inline std::string checksumText(uint32_t checksum) {
  char text[kChecksumDigits + 1];
  std::snprintf(text, sizeof(text), "%08x", unsigned(checksum));
  return text;
}

/// Returns the block size of a file with `data` bytes of data.
constexpr int64_t checksumBlock(int64_t data) {
  int64_t block = kChecksumBlock;
  while (data / block >= kMostFullBlocks)
    block *= 2;
  return block;
}

/// Returns the number of blocks of a tensor.
constexpr int64_t checksumBlocks(int64_t bytes, int64_t block) {
  return bytes / block + (bytes % block != 0);
}

/// Finds the digits of a JSON text's own checksum; npos if it has none. Quotes inside strings are
/// escaped, so only the key matches.
inline size_t findTextChecksum(std::string_view text) {
  const std::string key = std::string("\"") + kTextChecksum + "\":";
  size_t at = text.find(key);
  if (at == text.npos)
    return at;
  at += key.size();
  at += at < text.size() && text[at] == ' ';
  if (at >= text.size() || text[at] != '"' || text.size() - at < kChecksumDigits + 2)
    return text.npos;
  return at + 1;
}

/// Computes the checksum of a text whose own checksum's digits are at `at`.
inline uint32_t textChecksum(std::string_view text, size_t at) {
  const std::string zeros(kChecksumDigits, '0');
  auto add = [](uint32_t before, std::string_view part) {
    return crc32c(reinterpret_cast<const unsigned char *>(part.data()), int64_t(part.size()),
                  before);
  };
  return add(add(add(0, text.substr(0, at)), zeros), text.substr(at + kChecksumDigits));
}

/// Writes a text's checksum into it, over whatever digits are there, and returns it; returns 0 if
/// the text has no place for one.
inline uint32_t setTextChecksum(std::string &text) {
  size_t at = findTextChecksum(text);
  if (at == text.npos)
    return 0;
  uint32_t checksum = textChecksum(text, at);
  text.replace(at, kChecksumDigits, checksumText(checksum));
  return checksum;
}

/// Describes the damage of a text that contains its checksum; "" if it is intact or contains none.
inline std::string textDamage(std::string_view text) {
  size_t at = findTextChecksum(text);
  if (at == text.npos)
    return "";
  std::string written(text.substr(at, kChecksumDigits));
  std::string found = checksumText(textChecksum(text, at));
  for (char &c : written) // damage can be anything
    if (c < ' ' || c > '~')
      c = '?';
  return written == found ? ""
                          : "it has CRC-32C " + found + ", but " + written +
                                " was recorded: it is damaged, or was edited";
}

} // namespace partita_rt

#endif // PARTITA_RT_CHECKSUM_H
