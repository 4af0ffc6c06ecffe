// Protobuf's varints: seven bits per byte, the lowest first; every byte but the last has the high
// bit set. ONNX stores the bits of 16-bit floats this way, unless as raw bytes. The compiler checks
// them with this reader, the runtime reads them; this header includes no other header of the
// runtime.

#ifndef PARTITA_RT_VARINTS_H
#define PARTITA_RT_VARINTS_H

#include <cstdint>

namespace partita_rt {

class VarintReader {
public:
  VarintReader(const unsigned char *begin, const unsigned char *end) : at(begin), end(end) {}

  /// Reads the next number. Returns false, without a value, at the end, at a truncated number, and
  /// at one of more than ten bytes.
  bool next(uint64_t &value) {
    uint64_t result = 0;
    for (int i = 0; i < 10 && at + i < end; ++i) {
      result |= uint64_t(at[i] & 0x7F) << (7 * i);
      if (at[i] & 0x80)
        continue;
      at += i + 1;
      value = result;
      return true;
    }
    return false;
  }
  bool atEnd() const { return at == end; }

private:
  const unsigned char *at, *end;
};

} // namespace partita_rt

#endif // PARTITA_RT_VARINTS_H
