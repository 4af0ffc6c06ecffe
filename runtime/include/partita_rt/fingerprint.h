// Fingerprints recognize a file without reading all of it. The compiler records those of the
// model's files, the runtime those of the training data; both include this header, which includes
// no other header of the runtime. Not a cryptographic hash: it finds mistakes, not forgeries.

#ifndef PARTITA_RT_FINGERPRINT_H
#define PARTITA_RT_FINGERPRINT_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace partita_rt {

/// Limit for files with initial values: weights that were trained further differ everywhere.
constexpr int64_t kModelFingerprintBytes = 256 << 10;
/// Limit for data files: read in full up to this size, since texts are edited in one place.
constexpr int64_t kDataFingerprintBytes = 64 << 20;

/// Hashes the size, and all bytes if there are at most `most`, else 64 slices with `most` bytes in
/// all: the first at the beginning, the last at the end, the others evenly between.
inline uint64_t fingerprint(const unsigned char *data, int64_t size, int64_t most) {
  uint64_t hash = uint64_t(size);
  auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  auto mixBytes = [&](int64_t begin, int64_t count) {
    uint64_t word;
    for (; count >= 8; begin += 8, count -= 8) {
      std::memcpy(&word, data + begin, 8);
      mix(word);
    }
    word = uint64_t(count);
    for (int64_t i = 0; i < count; ++i)
      word = word << 8 | data[begin + i];
    mix(word);
  };
  if (size <= most) {
    mixBytes(0, size);
    return hash;
  }
  constexpr int64_t kChunks = 64;
  int64_t chunk = most / kChunks;
  for (int64_t i = 0; i < kChunks; ++i)
    mixBytes((size - chunk) / (kChunks - 1) * i +
                 (i == kChunks - 1 ? (size - chunk) % (kChunks - 1) : 0),
             chunk);
  return hash;
}

/// Returns 16 hexadecimal digits.
inline std::string fingerprintText(uint64_t fingerprint) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(fingerprint));
  return text;
}

} // namespace partita_rt

#endif // PARTITA_RT_FINGERPRINT_H
