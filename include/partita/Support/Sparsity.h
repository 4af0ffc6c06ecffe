//===- Sparsity.h - DeepSpeed's layouts of block-sparse attention -----------------------*- C++ -*-===//
//
// The modes of DeepSpeed's sparse_attention with its names and defaults, and the layouts that they stand for, as
// terms of partita_rt/block_layout.h: the same blocks as its SparsityConfig classes mark. Random blocks, which
// DeepSpeed draws from Python's generator and may draw differently on each rank, are drawn by (seed, head, row) here.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_SUPPORT_SPARSITY_H
#define PARTITA_SUPPORT_SPARSITY_H

#include "runtime/include/partita_rt/block_layout.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace partita {

/// A mode and its parameters, named as DeepSpeed's keys.
struct Sparsity {
  enum Mode { Fixed, Variable, BigBird, BSLongformer, SlidingWindow, Dense };
  Mode mode = Fixed;
  int64_t block = 16; ///< positions
  bool differentLayoutPerHead = false, unidirectional = false, horizontalGlobalAttention = false;
  int64_t numLocalBlocks = 4, numGlobalBlocks = 1, numDifferentGlobalPatterns = 1,
          numRandomBlocks = 0, numSlidingWindowBlocks = 3, seed = 0;
  std::vector<int64_t> localWindowBlocks{4}, globalBlockIndices{0};
  std::vector<int64_t> globalBlockEndIndices; ///< empty: each global index is one block
};

/// Reads "mode=bigbird,block=16,num_random_blocks=2": keys and defaults are those of DeepSpeed's class of the mode;
/// the numbers of a list are separated by ':'. Returns what is wrong, or "".
std::string parseSparsity(llvm::StringRef text, Sparsity &sparsity);

/// The keys of a mode, which must be one that parseSparsity knows.
std::vector<llvm::StringRef> sparsityKeys(llvm::StringRef mode);

/// The blocks of one head, in owned memory.
struct BlockPattern {
  bool lower = false;
  std::vector<partita_rt::BlockTerm> terms;
  std::vector<partita_rt::BlockPair> blocks; ///< that no term has, by row, then column
};

struct HeadPatterns {
  std::vector<BlockPattern> patterns; ///< different ones
  std::vector<int32_t> ofHead;        ///< the pattern of each head; empty if there is one for all
};

/// The layouts of `heads` heads over `n` x `n` blocks. Returns what prevents it, or "".
std::string layOut(const Sparsity &sparsity, int64_t n, int64_t heads, HeadPatterns &result);

/// A view of a pattern without the single blocks by column, for functions that ask row by row.
inline partita_rt::BlockLayout rowsOf(const BlockPattern &pattern, int64_t size, int64_t n) {
  return {int32_t(size),        int32_t(n),
          pattern.lower,        int32_t(pattern.terms.size()),
          pattern.terms.data(), int32_t(pattern.blocks.size()),
          pattern.blocks.data()};
}

} // namespace partita

#endif // PARTITA_SUPPORT_SPARSITY_H
