//===- Keys.h - the table of all keys of a DeepSpeed configuration ------------------*- C++ -*-===//
//
// Each key has one row, with its path, its possible values, DeepSpeed's default, and what Partita
// does with it. The reader's checks, the nearest known key for a typo, and the page of all keys use
// that row. Each block's rows are in its file in lib/DeepSpeed.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DEEPSPEED_KEYS_H
#define PARTITA_DEEPSPEED_KEYS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

namespace partita::config {

/// What is done with a key.
enum class Use {
  Obeyed,   ///< `about` says what it sets, or what it must agree with
  NoEffect, ///< accepted; `about` says why it has no effect here
  Refused,  ///< any value except the default; `about` says why, and the alternative
  Part,     ///< of a refused feature, which `about` names
};

/// What a value may be.
struct Shape {
  enum Kind {
    Boolean,
    Integer, ///< within [low, high]
    Number,  ///< within [low, high]
    Text,
    Choice,   ///< one of `values`, separated by '|', in any case
    Betas,    ///< two numbers within [0, 1)
    Anything, ///< a value that is not checked
    Block,    ///< keys whose path begins with this one's
    Foreign   ///< a block of which only "enabled" is checked
  };
  Kind kind = Anything;
  double low = 0, high = 0;
  llvm::StringLiteral values = "";
  /// For a block: DeepSpeed checks its keys, and drops an "auto" among them first.
  bool dropsAuto = false;
};

struct Key {
  llvm::StringLiteral path; ///< "zero_optimization.stage"
  Shape shape;
  llvm::StringLiteral initial; ///< DeepSpeed's default, as JSON; "null" if there is none
  Use use;
  llvm::StringLiteral about;
  /// The origin of the value "auto", as messages phrase it: "the command line's --lr, else 0.001".
  /// Empty: DeepSpeed drops the key ("auto" in a block that it checks), or "auto" is an error.
  llvm::StringLiteral automatic = "";

  /// Returns the last part of the path.
  llvm::StringRef name() const { return path.substr(path.rfind('.') + 1); }
  /// Returns the path of its block; "" at the top level.
  llvm::StringRef block() const {
    return path.contains('.') ? path.rsplit('.').first : llvm::StringRef();
  }
  bool isBlock() const { return shape.kind == Shape::Block || shape.kind == Shape::Foreign; }
};

/// The rows of one file of lib/DeepSpeed, under a title on the page.
struct Section {
  llvm::StringLiteral title;
  llvm::ArrayRef<Key> keys;
};

/// Returns all rows, in the order of the page.
llvm::ArrayRef<Section> sections();
std::vector<const Key *> allKeys();
const Key *findKey(llvm::StringRef path);

/// Returns the key that a misspelled path probably means: the nearest one in its block, or one with
/// that name in another block; null if none is near.
const Key *nearestKey(llvm::StringRef path);

/// Another spelling of a key or of a block, which DeepSpeed reads or its documentation uses.
struct Alias {
  llvm::StringLiteral path, current;
};
llvm::ArrayRef<Alias> aliases();

/// Describes a shape: "0 to 3", "one of cpu, nvme, none", "a number of at least 0".
std::string describeShape(const Shape &shape);

/// Prints the page of all keys as Markdown: values, DeepSpeed's default, what is done with each.
void printPage(llvm::raw_ostream &os);

} // namespace partita::config

#endif // PARTITA_DEEPSPEED_KEYS_H
