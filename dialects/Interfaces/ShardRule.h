//===- ShardRule.h - parses an op's rule --------------------------------------------*- C++ -*-===//
//
//   rule     := [pattern {"," pattern}] "->" [pattern {"," pattern}]
//   pattern  := ["~" | "~~"] {dim} | "@" letter
//   dim      := letter | letter "[" first "/" full "]" | "(" letter letter+ ")" | "*" | "1"
//               | "#" letter; each letter and "*" may have a mark
//   mark     := "+" | ">" | "^" | "!" | "^!" | "|"
//
// A dimension that is a group is the product of its letters, the first one outermost.
//
// A result that lacks a letter marked "+" (">") is a partial sum (max) where the letter is split.
// "^" is never split. "!" is split by replacing the op with others (splitForm); "^!" likewise, but
// only on request or if nothing else can be split: the other ops cost more than the full values
// around them. "|" may be split, but not within blocks: a shard must be contiguous. "a[32/64]" is a
// dimension of 64 in which a begins at 32; the rest has no letter. It is split if a is one or some
// of the blocks that are split, whatever the other blocks are.
// "#v" is a dimension of one element per shard of v: a split of v splits it.
// "@v" is the operand that says where a rank's shard of v begins (par.first_index). It is absent
// until v is split, so such patterns come last.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_INTERFACES_SHARDRULE_H
#define PARTITA_DIALECTS_INTERFACES_SHARDRULE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace partita {

/// One dimension of an operand or a result: its letters, outermost first; empty for a `1`.
struct RuleDim {
  llvm::SmallVector<unsigned, 2> letters;
  bool perShard = false;       ///< one element per shard of its letter
  int64_t first = 0, full = 0; ///< for a slice: where the letter begins, and the dimension's size
  bool isPart() const { return full != 0; }
};

enum class Linearity { None, Separately, Together };

struct RulePattern {
  llvm::SmallVector<RuleDim> dims;
  Linearity linearity = Linearity::None;
  /// The letter whose first index this operand is, or -1.
  int firstIndexOf = -1;
  bool firstPerBlock = false; ///< it has one first index for each block of a rank's shard
  /// The dimension that has this letter, or -1.
  int dimOf(unsigned letter) const;
  bool contains(unsigned letter) const { return dimOf(letter) >= 0; }
};

struct RuleLetter {
  std::string name;
  bool summed = false, max = false, never = false, byForm = false, unbroken = false, alike = false;
  /// The operand for its first index is missing, so the op cannot be split along it yet.
  bool lacksFirstIndex = false;
};

struct ShardRule {
  llvm::SmallVector<RulePattern> operands, results;
  llvm::SmallVector<RuleLetter> letters;

  /// Returns the rule `text` for an op whose operands and results have these ranks. Returns null
  /// and sets `error` if the text is wrong or does not fit the ranks. Each rule is parsed once per
  /// thread and lives as long as the thread, since verification after every pass needs the same few
  /// rules again and again.
  static const ShardRule *get(llvm::StringRef text, llvm::ArrayRef<int64_t> operandRanks,
                              llvm::ArrayRef<int64_t> resultRanks, std::string &error);

  /// Computes the size of each letter from the full shapes of the operands (and results, if given);
  /// that of a letter in a group is the group's size divided by the others. -1 if unknown. Returns
  /// false and sets `error` on a contradiction.
  bool letterSizes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> operandShapes,
                   llvm::ArrayRef<llvm::ArrayRef<int64_t>> resultShapes,
                   llvm::SmallVectorImpl<int64_t> &sizes, std::string &error) const;

  /// Returns true if a letter is summed away.
  bool reduces() const;
  /// Returns true if a letter of several operands is summed away, as in a matmul.
  bool contracts() const;
};

} // namespace partita

#endif // PARTITA_DIALECTS_INTERFACES_SHARDRULE_H
