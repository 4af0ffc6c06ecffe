//===- ParseBytes.cpp - sizes as users write them ---------------------------------------------===//

#include "partita/Support/ParseBytes.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

std::optional<int64_t> partita::parseBytes(StringRef text) {
  size_t digits = text.find_first_not_of("0123456789.");
  StringRef number = text.take_front(digits), unit = text.substr(number.size()).ltrim(' ');
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    size_t power = StringRef("KMGT").find(toUpper(unit[0]));
    unit = unit.drop_front();
    if (power == StringRef::npos || !(unit.empty() || unit == "B" || unit == "iB"))
      return std::nullopt;
    factor = double(int64_t(1) << 10 * (power + 1));
  }
  double value;
  if (number.empty() || number.getAsDouble(value) || value * factor > 9e18 ||
      (factor == 1 && number.contains('.')))
    return std::nullopt;
  int64_t whole; // which a double may not hold
  return factor == 1 && !number.getAsInteger(10, whole) ? whole
                                                        : static_cast<int64_t>(value * factor);
}
