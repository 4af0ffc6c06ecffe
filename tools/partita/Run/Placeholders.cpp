//===- Placeholders.cpp - {ranks} and {hosts} in a launcher's words ---------------------------===//

#include "tools/partita/Run/Placeholders.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

/// Returns the name between `open`, with which the text begins, and `close`; "" if there is none.
static StringRef nameBetween(StringRef open, StringRef text, StringRef close) {
  if (!text.consume_front(open))
    return "";
  StringRef name = text.take_while([](char c) { return isAlpha(c) || c == '_'; });
  return text.drop_front(name.size()).starts_with(close) ? name : "";
}

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
    StringRef escaped = isShells ? "" : nameBetween("{{", text, "}}");
    StringRef name = isShells || !escaped.empty() ? "" : nameBetween("{", text, "}");
    if (!escaped.empty())
      result += "{" + escaped.str() + "}";
    else
      result += name.empty() ? text.take_front().str() : valueOf(name);
    text = text.drop_front(!escaped.empty() ? escaped.size() + 4
                           : !name.empty()  ? name.size() + 2
                                            : 1);
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
