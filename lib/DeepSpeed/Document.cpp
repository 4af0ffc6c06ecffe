//===- Document.cpp - files, locations and messages of configurations -------------------------===//

#include "partita/DeepSpeed/Document.h"
#include "lib/DeepSpeed/Reader.h"
#include "partita/Support/Quoted.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"
#include <cmath>

using namespace llvm;
using namespace partita::config;

StringRef Value::nameOf(Kind kind) {
  static constexpr StringLiteral names[] = {"null",     "true or false", "an integer", "a number",
                                            "a string", "a list",        "a block"};
  return names[kind];
}

std::string partita::config::numberText(double value) {
  if (std::trunc(value) == value && std::abs(value) < 1e15)
    return std::to_string(int64_t(value));
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  return text;
}

static std::string jsonText(StringRef text) {
  std::string quoted;
  raw_string_ostream(quoted) << json::Value(json::fixUTF8(text));
  return quoted;
}

std::string Value::toJson() const {
  auto list = [](auto range) { return join(range, ", "); };
  switch (kind) {
  case Null:
    return "null";
  case Boolean:
    return boolean ? "true" : "false";
  case Integer:
    return std::to_string(integer);
  case Real:
    return numberText(real);
  case Text:
    return jsonText(text);
  case List:
    return "[" + list(map_range(items, [](const Value &item) { return item.toJson(); })) + "]";
  case Block:
    return "{" +
           list(map_range(members,
                          [](const Member &member) {
                            return jsonText(member.key) + ": " + member.value.toJson();
                          })) +
           "}";
  }
  return "null";
}

static std::string printable(StringRef text) { return partita_rt::printable(text.str()); }

std::string partita::config::quoted(StringRef text) { return partita::quoted(text, 80); }

//===------------------------------------------------------------------------------------------===//
// Messages
//===------------------------------------------------------------------------------------------===//

std::string Document::lineOf(SMLoc at) const {
  return (file + ":" + Twine(sources.getLineAndColumn(at).first)).str();
}

/// Prints the location, the message, and the line with a caret; of a long line only the
/// surroundings.
void Document::tell(SMLoc at, bool isError, const Twine &message) const {
  constexpr size_t kWidest = 100;
  auto [line, column] = sources.getLineAndColumn(at);
  os << printable(file) << ':' << line << ':' << column << ": ";
  if (isError)
    WithColor(os, HighlightColor::Error) << "error: ";
  else
    WithColor(os, HighlightColor::Note) << "note: ";
  os << printable(message.str()) << '\n';
  StringRef all = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  size_t place = at.getPointer() - all.begin();
  size_t lineBegin = all.take_front(place).rfind('\n') + 1; // npos + 1 is 0
  size_t begin = place - lineBegin > kWidest / 2 ? place - kWidest / 2 : lineBegin;
  while (begin < place && begin > lineBegin && continuesCharacter(all[begin]))
    ++begin;
  StringRef rest = all.drop_front(begin).take_until([](char c) { return c == '\n' || c == '\r'; });
  StringRef shown = takeCharacters(rest, kWidest);
  auto textOf = [](StringRef text) {
    std::string spaced = text.str();
    llvm::replace(spaced, '\t', ' ');
    return printable(spaced);
  };
  size_t split = std::min(place - begin, shown.size()); // a line ends before its "\r\n"
  std::string before = textOf(shown.take_front(split));
  os << before << textOf(shown.drop_front(split)) << '\n';
  auto begins = [](char c) { return !continuesCharacter(c); };
  os.indent(unsigned(llvm::count_if(before, begins))) << "^\n";
}

void Document::error(SMLoc at, const Twine &message) const { tell(at, true, message); }
void Document::note(SMLoc at, const Twine &message) const { tell(at, false, message); }

//===------------------------------------------------------------------------------------------===//
// Files
//===------------------------------------------------------------------------------------------===//

bool Document::take(std::unique_ptr<MemoryBuffer> buffer) {
  StringRef text = buffer->getBuffer();
  sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
  size_t bad = 0;
  if (!json::isUTF8(text, &bad)) {
    error(SMLoc::getFromPointer(text.begin() + bad), "this byte is not UTF-8");
    return false;
  }
  text.consume_front("\xEF\xBB\xBF"); // a byte order mark
  return readDocument(*this, text, top);
}

std::unique_ptr<Document> Document::parse(StringRef name, StringRef text, raw_ostream &os) {
  std::unique_ptr<Document> document(new Document(name, os));
  return document->take(MemoryBuffer::getMemBufferCopy(text, name)) ? std::move(document) : nullptr;
}

std::unique_ptr<Document> Document::read(StringRef path, raw_ostream &os) {
  auto fail = [&](const Twine &message) {
    os << printable(path) << ": ";
    WithColor(os, HighlightColor::Error) << "error: ";
    os << message << '\n';
    return nullptr;
  };
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status))
    return fail(error.message());
  if (status.type() == sys::fs::file_type::directory_file)
    return fail("is a folder, not a configuration");
  if (status.type() != sys::fs::file_type::regular_file)
    return fail("is not a regular file");
  if (status.getSize() > kMostBytes)
    return fail("has " + Twine(status.getSize()) + " bytes; a configuration has at most " +
                Twine(kMostBytes));
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return fail(buffer.getError().message());
  std::unique_ptr<Document> document(new Document(path, os));
  return document->take(std::move(*buffer)) ? std::move(document) : nullptr;
}
