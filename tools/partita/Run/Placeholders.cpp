//===- Placeholders.cpp - {ranks} and {hosts} in a launcher's words ---------------------------===//

#include "tools/partita/Run/Placeholders.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

std::string partita::tool::replacePlaceholders(StringRef text,
                                               function_ref<std::string(StringRef)> valueOf) {
  std::string result;
  while (!text.empty()) {
    size_t at = std::min(text.find('{'), text.size());
    bool isShells = at > 0 && text[at - 1] == '$';
    result += text.take_front(at);
    text = text.drop_front(at);
    if (text.empty())
      break;
    StringRef name = text.drop_front().take_while([](char c) { return isAlpha(c) || c == '_'; });
    bool isPlaceholder =
        !isShells && !name.empty() && text.drop_front(1 + name.size()).starts_with("}");
    size_t size = isPlaceholder ? name.size() + 2 : 1;
    result += isPlaceholder ? valueOf(name) : text.take_front(size).str();
    text = text.drop_front(size);
  }
  return result;
}

bool partita::tool::hasPlaceholder(StringRef text, StringRef name) {
  bool found = false;
  replacePlaceholders(text, [&](StringRef each) {
    found |= each == name;
    return std::string();
  });
  return found;
}

std::string partita::tool::unknownPlaceholder(StringRef text) {
  std::string unknown;
  replacePlaceholders(text, [&](StringRef each) {
    if (unknown.empty() && each != kRanksPlaceholder && each != kHostsPlaceholder)
      unknown = each.str();
    return std::string();
  });
  return unknown;
}
