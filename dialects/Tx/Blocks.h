//===- Blocks.h - what #tx.blocks is made of ------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TX_BLOCKS_H
#define PARTITA_DIALECTS_TX_BLOCKS_H

#include "mlir/IR/Attributes.h"
#include "runtime/include/partita_rt/block_layout.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallBitVector.h"
#include <optional>

// Parameters of attributes are compared and hashed.
namespace partita_rt {
inline bool operator==(const BlockTerm &a, const BlockTerm &b) {
  return a.kind == b.kind && a.begin == b.begin && a.end == b.end && a.period == b.period &&
         a.width == b.width && a.below == b.below;
}
inline llvm::hash_code hash_value(const BlockTerm &term) {
  return llvm::hash_combine(int(term.kind), term.begin, term.end, term.period, term.width,
                            term.below);
}
inline bool operator==(const BlockPair &a, const BlockPair &b) {
  return a.row == b.row && a.column == b.column;
}
inline llvm::hash_code hash_value(const BlockPair &pair) {
  return llvm::hash_combine(pair.row, pair.column);
}
} // namespace partita_rt

namespace partita::tx {

/// Blocks of a side must be fewer than this, so that sums of two numbers of blocks fit 32 bits.
constexpr int64_t kMostBlocks = int64_t(1) << 30;

/// Which keys the other masks of an attention leave its queries: those up to their own, and of these the last
/// `window`; 0: all.
struct OtherMask {
  bool causal = false;
  int64_t window = 0;
};

/// A sequence that ranks share: each has `runs` of its equal parts, the first rank the first one. With two, rank r has
/// parts r and 2 ranks - 1 - r.
struct SharedSequence {
  int64_t length, ranks = 1, runs = 1;

  int64_t parts() const { return ranks * runs; }
  int64_t partLength() const { return length / parts(); }
  int64_t rankOfPart(int64_t part) const { return std::min(part, 2 * ranks - 1 - part); }
  /// Is every part of the same length, a multiple of `size`?
  bool isOfWhole(int64_t size) const { return length > 0 && length % (parts() * size) == 0; }
};

/// The first row of blocks that has a query which sees no key.
std::optional<int64_t> firstEmptyRow(const partita_rt::BlockLayout &layout, OtherMask mask);

class BlocksAttr;

/// Which steps of a ring have work: in step j, rank r has the keys of the rank j places before it, and some rank has a
/// query that sees one of these. All of them if a part has no whole number of blocks.
llvm::SmallBitVector stepsWithWork(const SharedSequence &queries, const SharedSequence &keys,
                                   OtherMask mask, BlocksAttr blocks);

/// How often a ring passes on what it passes on, for the steps with work.
struct RingShifts {
  int64_t keys;      ///< and values, in each of the two passes: to the last step with work
  int64_t gradients; ///< of keys and values: beside the steps, then the shorter way home
  explicit RingShifts(const llvm::SmallBitVector &withWork);
};

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_BLOCKS_H
