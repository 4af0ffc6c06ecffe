//===- ParseBytes.cpp - sizes as users write them ---------------------------------------------===//

#include "partita/Support/ParseBytes.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

std::optional<int64_t> partita::parseBytes(StringRef text, std::string *problem) {
  auto none = [&](const char *what) -> std::optional<int64_t> {
    if (problem)
      *problem = ("'" + text + "' " + what).str();
    return std::nullopt;
  };
  const char *noSize = "is not a size in bytes, such as 4000000, 512K or 1.5G";
  size_t digits = text.find_first_not_of("0123456789.");
  StringRef number = text.take_front(digits), unit = text.substr(number.size()).ltrim(' ');
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    size_t power = StringRef("KMGT").find(toUpper(unit[0]));
    unit = unit.drop_front();
    if (power == StringRef::npos || !(unit.empty() || unit == "B" || unit == "iB"))
      return none(noSize);
    factor = double(int64_t(1) << 10 * (power + 1));
  }
  double value;
  if (number.empty() || number.getAsDouble(value))
    return none(noSize);
  int64_t integer; // which a double may not hold
  if (factor == 1 && !number.getAsInteger(10, integer))
    return integer;
  if (value * factor >= 0x1p63)
    return none("is too large: a size is below 8388608T, 2^63 bytes");
  if (factor == 1)
    return none("is not a whole number of bytes; a fraction needs a unit, such as 1.5G");
  return static_cast<int64_t>(value * factor);
}
