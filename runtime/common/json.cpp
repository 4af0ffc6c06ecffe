// A strict reader for a subset of JSON (json.h).

#include "common/json.h"

#include "partita_rt/types.h"

#include <cstdio>
#include <limits>
#include <set>

namespace partita_rt {

const Json *Json::find(const std::string &key) const {
  for (const auto &member : members)
    if (member.first == key)
      return &member.second;
  return nullptr;
}

namespace {

class Parser {
public:
  explicit Parser(const std::string &text) : text(text) {}

  Json parse() {
    Json value = parseValue(0);
    skipSpace();
    if (at != text.size())
      error("text after the value");
    return value;
  }

private:
  [[noreturn]] void error(const char *what) { fail("%s at byte %zu", what, at); }

  void skipSpace() {
    while (at < text.size() &&
           (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r'))
      ++at;
  }
  char peek() {
    skipSpace();
    return at < text.size() ? text[at] : '\0';
  }
  void expect(char c, const char *what) {
    if (peek() != c)
      error(what);
    ++at;
  }

  Json parseValue(int depth) {
    if (depth > 8)
      error("nesting deeper than 8");
    char c = peek();
    if (c == '{')
      return parseObject(depth);
    if (c == '[')
      return parseArray(depth);
    Json value;
    if (c == '"') {
      value.kind = Json::String;
      value.string = parseString();
      return value;
    }
    value.integer = parseInteger();
    return value;
  }

  Json parseObject(int depth) {
    Json value;
    value.kind = Json::Object;
    std::set<std::string> keys;
    expect('{', "expected {");
    if (peek() == '}') {
      ++at;
      return value;
    }
    do {
      if (peek() != '"')
        error("expected a key");
      std::string key = parseString();
      if (!keys.insert(key).second)
        error("duplicate key");
      expect(':', "expected :");
      value.members.emplace_back(std::move(key), parseValue(depth + 1));
    } while (another('}'));
    return value;
  }

  Json parseArray(int depth) {
    Json value;
    value.kind = Json::Array;
    expect('[', "expected [");
    if (peek() == ']') {
      ++at;
      return value;
    }
    do
      value.items.push_back(parseValue(depth + 1));
    while (another(']'));
    return value;
  }

  bool another(char close) {
    char c = peek();
    if (c != ',' && c != close)
      error("expected , or the end of the list");
    ++at;
    return c == ',';
  }

  int64_t parseInteger() {
    size_t begin = at;
    bool negative = at < text.size() && text[at] == '-';
    at += negative;
    int64_t value = 0;
    size_t digits = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++digits) {
      int digit = text[at] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10)
        error("integer too large");
      value = value * 10 + digit;
    }
    if (digits == 0) {
      at = begin;
      error("expected a value");
    }
    return negative ? -value : value;
  }

  unsigned parseHex4() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i, ++at) {
      char c = at < text.size() ? text[at] : '\0';
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0)
        error("expected four hexadecimal digits");
      value = value * 16 + unsigned(digit);
    }
    return value;
  }

  void appendCodePoint(std::string &out, unsigned code) {
    if (code < 0x80) {
      out += char(code);
    } else if (code < 0x800) {
      out += char(0xC0 | (code >> 6));
      out += char(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      out += char(0xE0 | (code >> 12));
      out += char(0x80 | ((code >> 6) & 0x3F));
      out += char(0x80 | (code & 0x3F));
    } else {
      out += char(0xF0 | (code >> 18));
      out += char(0x80 | ((code >> 12) & 0x3F));
      out += char(0x80 | ((code >> 6) & 0x3F));
      out += char(0x80 | (code & 0x3F));
    }
  }

  void parseUnicode(std::string &out) {
    unsigned code = parseHex4();
    if (code >= 0xD800 && code < 0xDC00) {
      if (text.compare(at, 2, "\\u") != 0)
        error("half a surrogate pair");
      at += 2;
      unsigned low = parseHex4();
      if (low < 0xDC00 || low > 0xDFFF)
        error("half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      error("half a surrogate pair");
    }
    appendCodePoint(out, code);
  }

  std::string parseString() {
    std::string out;
    for (++at; at < text.size() && text[at] != '"';) {
      char c = text[at++];
      if (static_cast<unsigned char>(c) < 0x20)
        error("control character in a string");
      if (c != '\\') {
        out += c;
        continue;
      }
      char escape = at < text.size() ? text[at++] : '\0';
      static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
      const char *known = nullptr;
      for (const char *p = from; *p; ++p)
        if (*p == escape)
          known = p;
      if (escape == 'u')
        parseUnicode(out);
      else if (known)
        out += to[known - from];
      else
        error("unknown escape");
    }
    if (at >= text.size())
      error("string without an end");
    ++at;
    return out;
  }

  const std::string &text;
  size_t at = 0;
};

} // namespace

Json parseJson(const std::string &text) { return Parser(text).parse(); }

std::string quoteJson(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", unsigned(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

} // namespace partita_rt
