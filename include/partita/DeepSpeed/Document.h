//===- Document.h - a JSON file with Hjson's extensions -----------------------------*- C++ -*-===//
//
// JSON as people write it: comments (#, //, /* */), missing commas at the end of a line, extra
// commas before a bracket, keys and words without quotes, ''' multi-line strings '''
// (hjson.github.io, with which DeepSpeed reads its configurations). Every key and value has its
// location, so that every message begins with file:line:column. Duplicate keys are an error.
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
  double real = 0; ///< of an Integer, too
  std::string text;
  std::vector<Value> items;    ///< of a List
  std::vector<Member> members; ///< of a Block, in the file's order

  bool isAuto() const { return kind == Text && text == "auto"; }
  /// Returns the kind's name in messages: "true or false", "an integer", "a block".
  static llvm::StringRef nameOf(Kind kind);
  /// Returns the value, also a list or block, as JSON on one line.
  std::string toJson() const;
};

struct Member {
  std::string key;
  llvm::SMLoc at; ///< of the key
  Value value;
};

/// Returns the shortest text that reads back as the same number: "0.1", "1e-08", "200000000".
std::string numberText(double value);

/// Quotes a text in single quotes, escapes unprintable characters, and shortens it if it is long.
std::string quoted(llvm::StringRef text);

/// A file that has been read, with messages about locations in it.
class Document {
public:
  /// The limits: bytes, nested blocks, and keys and values in all.
  static constexpr uint64_t kMostBytes = 1 << 20;
  static constexpr int kDeepest = 64;

  /// Reads a file. Returns null after one error on `os` if the file is not regular, cannot be read,
  /// is too large, nested too deeply, not UTF-8, or not valid. `os` must outlive the document.
  static std::unique_ptr<Document> read(llvm::StringRef path, llvm::raw_ostream &os = llvm::errs());
  /// Reads a text likewise, with `name` in place of the path.
  static std::unique_ptr<Document> parse(llvm::StringRef name, llvm::StringRef text,
                                         llvm::raw_ostream &os = llvm::errs());

  const Value &root() const { return top; }
  llvm::StringRef path() const { return file; }
  /// Returns "file:line".
  std::string lineOf(llvm::SMLoc at) const;
  /// Prints "file:line:column: error: MESSAGE", then the line with a caret under the location.
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
