//===- Reader.cpp - reads JSON with Hjson's extensions ----------------------------------------===//

#include "lib/DeepSpeed/Reader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include <cmath>

using namespace llvm;
using namespace partita::config;

namespace {

/// Reads the text in one pass; the first error ends it.
class Reader {
public:
  Reader(const Document &document, StringRef text)
      : document(document), at(text.begin()), end(text.end()) {}

  bool read(Value &value) {
    skip();
    value.at = here();
    value.kind = Value::Block;
    if (at == end)
      return fail(here(), "the file has no configuration; write {} for one without keys");
    bool braces = *at == '{';
    if (*at == '[')
      return fail(here(), "a configuration is a block { ... } of keys and values");
    if (braces)
      ++at;
    if (!readMembers(value, braces, 1))
      return false;
    skip();
    return at == end || fail(here(), "expected the end of the file after the closing brace");
  }

private:
  SMLoc here() const { return SMLoc::getFromPointer(at); }
  bool fail(SMLoc place, const Twine &message) {
    document.error(place, message);
    return false;
  }
  bool starts(StringRef token) const { return StringRef(at, end - at).starts_with(token); }

  /// Skips space and comments. Returns true if there was a line end among them.
  bool skip() {
    bool newline = false;
    while (at != end) {
      if (isSpace(*at)) {
        newline |= *at++ == '\n';
      } else if (*at == '#' || starts("//")) {
        while (at != end && *at != '\n')
          ++at;
      } else if (starts("/*")) {
        size_t length = StringRef(at + 2, end - at - 2).find("*/");
        const char *close = length == StringRef::npos ? end : at + 2 + length + 2;
        newline |= StringRef(at, close - at).contains('\n');
        at = close;
      } else {
        break;
      }
    }
    return newline;
  }

  /// Reads what separates two members or items: a comma, or a line end. `closes` is the closing
  /// bracket; 0 is the end of the file. Returns false after an error; sets `done` at the end.
  bool separator(char closes, StringRef what, SMLoc opened, bool &done) {
    bool newline = skip();
    bool comma = at != end && *at == ',';
    if (comma) {
      ++at;
      skip();
    }
    if (at == end) {
      done = true;
      return closes == 0 || fail(opened, "this " + what + " is not closed");
    }
    if (closes && *at == closes) {
      ++at;
      done = true;
      return true;
    }
    if (comma && *at == ',')
      return fail(here(), "two commas without a value between them");
    return comma || newline ||
           fail(here(), "expected a comma, a new line or '" + Twine(closes ? closes : '}') + "'");
  }

  bool readMembers(Value &block, bool braces, int depth) {
    if (depth > Document::kDeepest)
      return fail(block.at, "blocks are nested deeper than " + Twine(Document::kDeepest));
    StringMap<SMLoc> seen;
    skip();
    if (at != end && braces && *at == '}')
      return ++at, true;
    if (at == end)
      return !braces || fail(block.at, "this block is not closed");
    for (bool done = false; !done;) {
      Member member;
      if (!readKey(member))
        return false;
      auto [first, isNew] = seen.try_emplace(member.key, member.at);
      if (!isNew) {
        fail(member.at, "the key " + quoted(member.key) + " is given twice");
        document.note(first->second, "it stands here already");
        return false;
      }
      skip();
      if (at == end && !braces && block.members.empty())
        return fail(member.at, "a configuration is a block { ... } of keys and values, found " +
                                   quoted(member.key));
      if (at == end || *at != ':')
        return member.key == "..."
                   ? fail(member.at, "'...' is not a key; write what it stands for")
                   : fail(here(), "expected ':' after the key " + quoted(member.key));
      ++at;
      skip();
      if (!readValue(member.value, depth))
        return false;
      block.members.push_back(std::move(member));
      if (!separator(braces ? '}' : 0, "block", block.at, done))
        return false;
    }
    return true;
  }

  bool readKey(Member &member) {
    member.at = here();
    if (*at == '"' || *at == '\'')
      return readQuoted(member.key);
    const char *begin = at;
    while (at != end && !isSpace(*at) && !StringRef(",:[]{}\"'").contains(*at))
      ++at;
    member.key = std::string(begin, at);
    return !member.key.empty() || fail(here(), "expected a key, found " + quoted(StringRef(at, 1)));
  }

  bool readValue(Value &value, int depth) {
    value.at = here();
    if (at == end)
      return fail(here(), "expected a value, found the end of the file");
    if (*at == '{') {
      value.kind = Value::Block;
      ++at;
      return readMembers(value, true, depth + 1);
    }
    if (*at == '[')
      return readList(value, depth + 1);
    if (starts("'''"))
      return readLines(value);
    if (*at == '"' || *at == '\'') {
      value.kind = Value::Text;
      return readQuoted(value.text);
    }
    if (StringRef(",:]}").contains(*at))
      return fail(here(), "expected a value, found " + quoted(StringRef(at, 1)));
    return readWord(value);
  }

  bool readList(Value &value, int depth) {
    value.kind = Value::List;
    if (depth > Document::kDeepest)
      return fail(value.at, "lists are nested deeper than " + Twine(Document::kDeepest));
    ++at;
    skip();
    if (at != end && *at == ']')
      return ++at, true;
    for (bool done = false; !done;) {
      value.items.emplace_back();
      if (!readValue(value.items.back(), depth) || !separator(']', "list", value.at, done))
        return false;
    }
    return true;
  }

  /// Reads a number, true, false, null, or else Hjson's unquoted text up to the end of the line.
  bool readWord(Value &value) {
    const char *begin = at;
    while (at != end && !isSpace(*at) && !StringRef(",]}#").contains(*at) && !starts("//") &&
           !starts("/*"))
      ++at;
    StringRef word(begin, at - begin);
    value.kind = StringSwitch<Value::Kind>(word)
                     .Cases({"true", "false"}, Value::Boolean)
                     .Case("null", Value::Null)
                     .Default(Value::Text);
    value.boolean = word == "true";
    if (value.kind != Value::Text || readNumber(value, word))
      return true;
    if (isDigit(word[0]) || (word.size() > 1 && word[0] == '-' && isDigit(word[1])))
      return fail(value.at, quoted(word) + " is not a number");
    while (at != end && *at != '\n')
      ++at;
    value.text = StringRef(begin, at - begin).rtrim().str();
    // Hjson would treat the rest of the line as text, including brackets and comments, which is
    // never intended.
    StringRef text = value.text;
    if (text.find_first_of(",[]{}\"") != StringRef::npos || text.contains(" #") ||
        text.contains(" //") || text.contains(" /*"))
      return fail(value.at, "expected a value: a number, true, false, null, a list, a block or a "
                            "string in quotes, found " +
                                quoted(word));
    return true;
  }

  /// Reads a number as in JSON: neither hexadecimal nor infinite.
  static bool readNumber(Value &value, StringRef word) {
    StringRef digits = word;
    digits.consume_front("-");
    if (digits.empty() || digits.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
        !isDigit(digits.front()) || !isDigit(digits.back()) || word.getAsDouble(value.real) ||
        !std::isfinite(value.real))
      return false;
    if (digits.size() > 1 && digits[0] == '0' && isDigit(digits[1]))
      return false;
    bool isInteger = digits.find_first_not_of("0123456789") == StringRef::npos;
    value.kind = Value::Real;
    if (isInteger && !word.getAsInteger(10, value.integer)) {
      value.kind = Value::Integer;
    } else if (std::trunc(value.real) == value.real && std::abs(value.real) < 9e15) {
      value.kind = Value::Integer; // people write 5e8
      value.integer = int64_t(value.real);
    }
    return true;
  }

  bool readQuoted(std::string &text) {
    SMLoc begin = here();
    char quote = *at++;
    while (at != end && *at != quote) {
      if (*at == '\n')
        break;
      if (*at != '\\') {
        text += *at++;
        continue;
      }
      if (!readEscape(text))
        return false;
    }
    if (at == end || *at != quote)
      return fail(begin, "this string has no closing quote on its line");
    ++at;
    return true;
  }

  bool readEscape(std::string &text) {
    SMLoc begin = here();
    char code = ++at == end ? '\0' : *at;
    static constexpr StringLiteral codes = "\"'\\/bfnrt", means = "\"'\\/\b\f\n\r\t";
    if (size_t i = codes.find(code); i != StringRef::npos) {
      text += means[i];
      ++at;
      return true;
    }
    unsigned unit = 0;
    if (code != 'u' || end - at < 5 || StringRef(at + 1, 4).getAsInteger(16, unit))
      return fail(begin, "this is not a JSON escape");
    at += 5;
    if (unit >= 0xD800 && unit < 0xDC00 && end - at >= 6 && starts("\\u")) {
      unsigned low = 0;
      if (!StringRef(at + 2, 4).getAsInteger(16, low) && low >= 0xDC00 && low < 0xE000) {
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
      }
    }
    char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *last = bytes;
    if (!ConvertCodePointToUTF8(unit, last))
      return fail(begin, "this escape is not a character");
    text.append(bytes, last);
    return true;
  }

  /// Reads ''' ... ''': verbatim, without the first and the last line end.
  bool readLines(Value &value) {
    value.kind = Value::Text;
    StringRef rest = StringRef(at, end - at).drop_front(3);
    size_t close = rest.find("'''");
    if (close == StringRef::npos)
      return fail(value.at, "this string has no closing '''");
    at = rest.begin() + close + 3;
    StringRef text = rest.take_front(close);
    text.consume_front("\n");
    text.consume_back("\n");
    value.text = text.str();
    return true;
  }

  const Document &document;
  const char *at, *end;
};

} // namespace

bool partita::config::readDocument(const Document &document, StringRef text, Value &value) {
  return Reader(document, text).read(value);
}
