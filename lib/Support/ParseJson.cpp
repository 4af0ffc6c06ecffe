//===- ParseJson.cpp - JSON from files that nobody vouches for --------------------------------===//

#include "partita/Support/ParseJson.h"

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

Expected<json::Value> partita::parseJson(StringRef text) {
  if (nestsTooDeep(text))
    return createStringError(inconvertibleErrorCode(),
                             "its values are nested deeper than " + Twine(kDeepest) + " levels");
  return json::parse(text);
}
