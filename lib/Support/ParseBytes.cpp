//===- ParseBytes.cpp - sizes as users write them ---------------------------------------------===//

#include "partita/Support/ParseBytes.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

/// A size in `things`, "bytes" or "elements".
static std::optional<int64_t> parseSize(StringRef text, StringRef things, std::string *problem) {
  auto none = [&](const Twine &what) -> std::optional<int64_t> {
    if (problem)
      *problem = ("'" + text + "' " + what).str();
    return std::nullopt;
  };
  bool ofBytes = things == "bytes";
  std::string noSize = ("is not a size in " + things + ", such as 4000000, 512K or 1.5G").str();
  size_t digits = text.find_first_not_of("0123456789.");
  StringRef number = text.take_front(digits), unit = text.substr(number.size()).ltrim(' ');
  double factor = 1;
  if (!unit.empty() && !(ofBytes && unit == "B")) {
    size_t power = StringRef("KMGT").find(toUpper(unit[0]));
    unit = unit.drop_front();
    if (power == StringRef::npos || !(unit.empty() || (ofBytes && (unit == "B" || unit == "iB"))))
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
    return none("is too large: a size is below 8388608T, 2^63 " + things);
  if (factor == 1)
    return none("is not a whole number of " + things + "; a fraction needs a unit, such as 1.5G");
  return static_cast<int64_t>(value * factor);
}

std::optional<int64_t> partita::parseBytes(StringRef text, std::string *problem) {
  return parseSize(text, "bytes", problem);
}

std::optional<int64_t> partita::parseElements(StringRef text, std::string *problem) {
  return parseSize(text, "elements", problem);
}
