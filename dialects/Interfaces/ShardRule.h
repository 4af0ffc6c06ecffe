//===- ShardRule.h - the text of an op's rule, parsed ----------------------------------*- C++
//-*-===//
//
//   rule     := [pattern {"," pattern}] "->" [pattern {"," pattern}]
//   pattern  := ["~" | "~~"] {dim}
//   dim      := letter | "(" letter letter+ ")" | "*" | "1"        each letter, "*" with "+" or "^"
//
// A dimension that is a group is the product of its letters, the first one outermost: splitting the
// dimension is splitting the first letter.
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
  /// The letter that is split when this dimension is, or -1.
  int outermost() const { return letters.empty() ? -1 : static_cast<int>(letters.front()); }
};

enum class Linearity { None, Separately, Together };

struct RulePattern {
  llvm::SmallVector<RuleDim> dims;
  Linearity linearity = Linearity::None;
  /// The dimension whose outermost letter this is, or -1.
  int dimOf(unsigned letter) const;
  bool contains(unsigned letter) const;
};

struct RuleLetter {
  std::string name;
  bool summed = false, never = false;
};

struct ShardRule {
  llvm::SmallVector<RulePattern> operands, results;
  llvm::SmallVector<RuleLetter> letters;

  /// Parses `text` for an op whose operands and results have these ranks; null and `error` set when
  /// the text is wrong or does not fit the ranks.
  static std::optional<ShardRule> parse(llvm::StringRef text, llvm::ArrayRef<int64_t> operandRanks,
                                        llvm::ArrayRef<int64_t> resultRanks, std::string &error);

  /// The size of each letter, from the whole operands' (and, where given, results') shapes; a
  /// letter within a group is the group's size divided by the others. -1 where unknown. False and
  /// `error` set on a contradiction.
  bool letterSizes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> operandShapes,
                   llvm::ArrayRef<llvm::ArrayRef<int64_t>> resultShapes,
                   llvm::SmallVectorImpl<int64_t> &sizes, std::string &error) const;
};

} // namespace partita

#endif // PARTITA_DIALECTS_SHARDRULE_H
