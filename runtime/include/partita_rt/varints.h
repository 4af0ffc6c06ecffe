// Integers of variable length, as protobuf packs them: seven bits a byte, the lowest first, all but
// the last byte with the high bit set. ONNX keeps the bits of 16-bit floats so where they are not
// raw bytes. The compiler checks them with this reader (which stands for itself), the runtime
// reads them.

#ifndef PARTITA_RT_VARINTS_H
#define PARTITA_RT_VARINTS_H

#include <cstdint>

namespace partita_rt {

class VarintReader {
public:
  VarintReader(const unsigned char *begin, const unsigned char *end) : at(begin), end(end) {}

  /// False, without a value, at the end, before a number that is cut off, and before one of more
  /// than ten bytes.
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
