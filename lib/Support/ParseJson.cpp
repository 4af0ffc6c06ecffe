//===- ParseJson.cpp - JSON from files that nobody vouches for --------------------------------===//

#include "partita/Support/ParseJson.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

static constexpr int kDeepest = 64;

static bool nestsTooDeep(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > kDeepest)
      return true;
    else if (!inString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

/// Returns a key that an object of valid JSON has twice; LLVM's parser takes the last one.
static std::optional<StringRef> repeatedKey(StringRef text) {
  SmallVector<StringSet<>> keys; // per nested object or array
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[')
      keys.emplace_back();
    else if (text[i] == '}' || text[i] == ']')
      keys.pop_back();
    if (text[i] != '"')
      continue;
    size_t begin = ++i;
    for (; text[i] != '"'; ++i)
      i += text[i] == '\\';
    StringRef string = text.slice(begin, i);
    if (text.drop_front(i + 1).ltrim().starts_with(":") && !keys.back().insert(string).second)
      return string;
  }
  return std::nullopt;
}

Expected<json::Value> partita::parseJson(StringRef text) {
  if (nestsTooDeep(text))
    return createStringError(inconvertibleErrorCode(),
                             "its values are nested deeper than " + Twine(kDeepest) + " levels");
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return createStringError(inconvertibleErrorCode(),
                             "it is not valid JSON: " + toString(value.takeError()));
  if (std::optional<StringRef> key = repeatedKey(text))
    return createStringError(inconvertibleErrorCode(), "it has \"" + *key + "\" twice");
  return value;
}
