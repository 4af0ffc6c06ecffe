// The small subset of JSON that safetensors headers use: objects, arrays, strings and integers.

#ifndef PARTITA_RT_COMMON_JSON_H
#define PARTITA_RT_COMMON_JSON_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace partita_rt {

struct Json {
  enum Kind { Object, Array, String, Integer } kind = Integer;
  int64_t integer = 0;
  std::string string;
  std::vector<Json> items;                           ///< Array
  std::vector<std::pair<std::string, Json>> members; ///< Object, in the file's order
  const Json *find(const std::string &key) const;
};

/// Parses JSON. Throws Error with the byte position. Duplicate keys, other kinds of values and
/// nesting deeper than 8 are errors.
Json parseJson(const std::string &text);

/// Returns "..." with quotes, backslashes and control characters escaped.
std::string quoteJson(const std::string &text);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_JSON_H
