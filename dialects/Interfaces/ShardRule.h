//===- ShardRule.h - the text of an op's rule, parsed -------------------------------*- C++ -*-===//
//
//   rule     := [pattern {"," pattern}] "->" [pattern {"," pattern}]
//   pattern  := ["~" | "~~"] {dim} | "@" letter
//   dim      := letter | letter "[" first "/" whole "]" | "(" letter letter+ ")" | "*" | "1" | "#"
//   letter
//               each letter, "*" with a mark
//   mark     := "+" | ">" | "^" | "!" | "^!" | "|"
//
// A dimension that is a group is the product of its letters, the first one outermost.
//
// A result that lacks a letter marked "+" ("max": ">") is a partial sum (maximum) where the
// letter is split. "^" is never split; "!" is split by putting other ops in the op's place
// (splitForm); "^!" likewise, but only where that is asked for, or nothing else can be split: the
// other ops cost more than what stands whole around them. "|" may be split, but not within blocks:
// a piece must be one run. "a[32/64]" is a dimension of 64, of which a stands from 32 on; what is
// around it is nobody's. It is split where a is one or some of the blocks that are, whatever the
// others are.
// "#v" is a dimension of one number per piece of v: whoever splits v splits it.
// "@v" is the operand that says where a rank's piece of v begins (par.first_index): it is absent
// until v is split, so such patterns stand last.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_SHARDRULE_H
#define PARTITA_DIALECTS_SHARDRULE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace partita {

/// One dimension of an operand or a result: its letters, outermost first; empty for a `1`.
struct RuleDim {
  llvm::SmallVector<unsigned, 2> letters;
  bool perPiece = false;        ///< one number per piece of its letter
  int64_t first = 0, whole = 0; ///< of a part: where the letter begins, and the dimension's size
  bool isPart() const { return whole != 0; }
};

enum class Linearity { None, Separately, Together };

struct RulePattern {
  llvm::SmallVector<RuleDim> dims;
  Linearity linearity = Linearity::None;
  /// The letter whose first index this operand is, or -1.
  int firstIndexOf = -1;
  /// The dimension that has this letter, or -1.
  int dimOf(unsigned letter) const;
  bool contains(unsigned letter) const { return dimOf(letter) >= 0; }
};

struct RuleLetter {
  std::string name;
  bool summed = false, max = false, never = false, byForm = false, unbroken = false;
  /// Is the operand for its first index missing? Then the op as it stands cannot have it split.
  bool lacksFirstIndex = false;
};

struct ShardRule {
  llvm::SmallVector<RulePattern> operands, results;
  llvm::SmallVector<RuleLetter> letters;

  /// The rule that `text` is for an op whose operands and results have these ranks; null and `error`
  /// set when the text is wrong or does not fit the ranks. Each is parsed once per thread, and lives
  /// as long: verifying a module after every pass asks for the same few rules again and again.
  static const ShardRule *get(llvm::StringRef text, llvm::ArrayRef<int64_t> operandRanks,
                              llvm::ArrayRef<int64_t> resultRanks, std::string &error);

  /// The size of each letter, from the whole operands' (and, where given, results') shapes; a
  /// letter within a group is the group's size divided by the others. -1 where unknown. False and
  /// `error` set on a contradiction.
  bool letterSizes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> operandShapes,
                   llvm::ArrayRef<llvm::ArrayRef<int64_t>> resultShapes,
                   llvm::SmallVectorImpl<int64_t> &sizes, std::string &error) const;

  /// Is a letter summed away?
  bool reduces() const;
  /// Is a letter summed away that several operands have, as in a matmul?
  bool contracts() const;
};

} // namespace partita

#endif // PARTITA_DIALECTS_SHARDRULE_H
