//===- Wire.cpp - reads and writes protobuf's wire format -------------------------------------===//

#include "lib/Export/Wire.h"

using namespace llvm;

bool partita::wire::takeVarint(StringRef &bytes, uint64_t &value) {
  value = 0;
  for (size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    uint8_t byte = bytes[i];
    value |= uint64_t(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes = bytes.drop_front(i + 1);
      return true;
    }
  }
  return false;
}

std::string partita::wire::walk(StringRef message, function_ref<std::string(const Field &)> visit) {
  static constexpr const char *kDamaged = "the model is damaged or truncated";
  StringRef rest = message;
  while (!rest.empty()) {
    const char *start = rest.data();
    Field field;
    uint64_t tag;
    if (!takeVarint(rest, tag) || tag >> 3 == 0 || tag >> 35 != 0)
      return kDamaged;
    field.number = tag >> 3;
    switch (tag & 7) {
    case 0:
      if (!takeVarint(rest, field.value))
        return kDamaged;
      break;
    case 1:
    case 5: {
      size_t width = (tag & 7) == 1 ? 8 : 4;
      if (rest.size() < width)
        return kDamaged;
      rest = rest.drop_front(width);
      break;
    }
    case 2: {
      uint64_t length;
      if (!takeVarint(rest, length) || length > rest.size())
        return kDamaged;
      field.isBytes = true;
      field.content = rest.take_front(length);
      rest = rest.drop_front(length);
      break;
    }
    default:
      return kDamaged;
    }
    field.encoded = StringRef(start, rest.data() - start);
    if (std::string problem = visit(field); !problem.empty())
      return problem;
  }
  return {};
}

void partita::wire::putVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void partita::wire::putHeader(std::string &out, uint32_t number, uint64_t length) {
  putVarint(out, uint64_t(number) << 3 | 2);
  putVarint(out, length);
}

void partita::wire::putBytes(std::string &out, uint32_t number, StringRef content) {
  putHeader(out, number, content.size());
  out.append(content.data(), content.size());
}

void partita::wire::putInteger(std::string &out, uint32_t number, uint64_t value) {
  putVarint(out, uint64_t(number) << 3);
  putVarint(out, value);
}
