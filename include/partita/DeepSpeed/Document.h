//===- Document.h - a JSON file with Hjson's liberties ------------------------------*- C++ -*-===//
//
// JSON as people write it: comments (#, //, /* */), missing commas at the end of a line, extra commas
// before a bracket, keys and words without quotes, ''' texts of several lines '''
// (hjson.github.io, with which DeepSpeed reads its configurations). Every key and value has its
// place, so that every message begins with file:line:column. Duplicate keys are an error.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DEEPSPEED_DOCUMENT_H
#define PARTITA_DEEPSPEED_DOCUMENT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::config {

struct Member;

struct Value {
  enum Kind { Null, Boolean, Integer, Real, Text, List, Block };
  Kind kind = Null;
  llvm::SMLoc at;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0; ///< of an Integer too
  std::string text;
  std::vector<Value> items;    ///< of a List
  std::vector<Member> members; ///< of a Block, in the file's order

  bool isAuto() const { return kind == Text && text == "auto"; }
  /// "true or false", "a whole number", "a block": its kind in a message.
  static llvm::StringRef nameOf(Kind kind);
  /// As JSON on one line; lists and blocks too.
  std::string toJson() const;
};

struct Member {
  std::string key;
  llvm::SMLoc at; ///< of the key
  Value value;
};

/// A number's shortest text that reads back as the same number: "0.1", "1e-08", "200000000".
std::string numberText(double value);

/// A text in single quotes, with unprintable characters escaped, and shortened if it is long.
std::string quoted(llvm::StringRef text);

/// A file that has been read, and messages about its places.
class Document {
public:
  /// At most this many bytes, blocks within each other, and keys and values in all.
  static constexpr uint64_t kMostBytes = 1 << 20;
  static constexpr int kDeepest = 64;

  /// Null after one message on `os`: the file is not regular, cannot be read, is too large, nested
  /// too deep, not UTF-8, or not valid. `os` lives as long as the document.
  static std::unique_ptr<Document> read(llvm::StringRef path, llvm::raw_ostream &os = llvm::errs());
  /// The same for a text, with `name` in place of the path.
  static std::unique_ptr<Document> parse(llvm::StringRef name, llvm::StringRef text,
                                         llvm::raw_ostream &os = llvm::errs());

  const Value &root() const { return top; }
  llvm::StringRef path() const { return file; }
  /// "file:line"
  std::string lineOf(llvm::SMLoc at) const;
  /// Prints "file:line:column: error: MESSAGE", the line and a caret under the place.
  void error(llvm::SMLoc at, const llvm::Twine &message) const;
  void note(llvm::SMLoc at, const llvm::Twine &message) const;

private:
  Document(llvm::StringRef path, llvm::raw_ostream &os) : file(path.str()), os(os) {}
  bool take(std::unique_ptr<llvm::MemoryBuffer> buffer);
  void tell(llvm::SMLoc at, bool isError, const llvm::Twine &message) const;

  std::string file;
  llvm::raw_ostream &os;
  llvm::SourceMgr sources;
  Value top;
};

} // namespace partita::config

#endif // PARTITA_DEEPSPEED_DOCUMENT_H
