// Which keys a tile of queries computes: blocks of a layout, or all.
//
// Attention's tiles meet blocks of keys. With a layout (block_layout.h) a tile computes those vectors of kPad
// keys that have a computed block for some of its queries, gathered side by side: its matmuls and its softmax
// work on these alone, whatever the size of the layout's blocks, in passes of at most kKeyBlock keys. A block of
// keys is then several times as long, so that a pass is full even if few keys of a block are computed. Keys
// that are gathered for other queries of the tile are hidden from a query as if their scores were -inf, and matmuls
// leave out what no query of a group of rows computes. Without a layout the gathered keys are the block's, in place;
// a layout that computes all blocks has the same passes.

#ifndef PARTITA_RT_CPU_KERNELS_ATTENTION_COLUMNS_H
#define PARTITA_RT_CPU_KERNELS_ATTENTION_COLUMNS_H

#include "cpu/kernels/micro_gemm.h"
#include "cpu/kernels/rows.h"
#include "partita_rt/attention_sight.h"
#include "partita_rt/block_layout.h"

#include <algorithm>
#include <vector>

namespace partita_rt {

/// Queries per tile: a multiple of kTileRows whose rows fit into the L1 cache.
constexpr int64_t kQueryTile = 48;
/// Max keys per block; fewer if heads are wide, so that a packed block has at most kBlockElements
/// elements (64 KiB).
constexpr int64_t kKeyBlock = 256;
constexpr int64_t kBlockElements = 16384;
/// Passes of a layout's block of keys.
constexpr int64_t kFewestPasses = 8, kMostPasses = 32;
constexpr int64_t kKeyVectors = kMostPasses * kKeyBlock / kPad;

/// The layout of a head; null: dense.
inline const BlockLayout *layoutOf(const AttentionShape &shape, int64_t head) {
  return shape.blocks ? &layoutOfHead(shape.blocks, head) : nullptr;
}

/// Of keys of the full sequence: the first of keys [key, keyEnd) that a row of blocks computes, or keyEnd; the end of the last one, or key.
int64_t firstComputed(const BlockLayout &layout, int64_t row, int64_t key, int64_t keyEnd);
int64_t endOfComputed(const BlockLayout &layout, int64_t row, int64_t key, int64_t keyEnd);

/// How many passes long the layout's blocks of keys are: so many that a pass is full of keys far from the query, which
/// are the few ones. Longer blocks than necessary leave the caches.
int64_t passesOfBlock(const BlockLayout &layout);

/// The first and the last block of keys, by its first key, of which a tile of queries computes some; if it
/// computes none, both are the one where the keys would begin. The tile's sums begin and end with these.
struct TileBlocks {
  int64_t first, last;
};

/// Those of all tiles of one head. blockSize: keys per block.
std::vector<TileBlocks> tileBlocks(const RunSight &sight, const BlockLayout *layout,
                                   int64_t blockSize);

/// The keys of one block that one tile of queries computes, pass by pass. "Gathered" numbers count those of
/// the pass.
class TileColumns {
  int32_t vectors = 0;
  int16_t numbers[kKeyVectors];    ///< of the gathered vectors of all passes, in the block
  int16_t before[kKeyVectors + 2]; ///< how many gathered vectors come before each of the block's
  int64_t firstVector = 0;         ///< of the pass
  bool hides = false;       ///< from some query, a key of the pass that it could see otherwise
  int64_t firstQuery, size; ///< of the tile, in the full sequence; of the layout's blocks
  bool sparse;
  uint8_t lines[kQueryTile]; ///< of each query: its row of blocks, from the tile's first one on
  /// Of each row of blocks that the tile has queries of, the computed keys: a bit each.
  uint16_t computed[kQueryTile][kKeyVectors];

  void compute(const BlockLayout &layout, int64_t queries, int64_t key, int64_t keys);
  bool lineComputes(int64_t line, int64_t vector, int64_t count) const {
    const int16_t *of = numbersFrom(vector);
    return std::any_of(of, of + count, [&](int16_t at) { return computed[line][at] != 0; });
  }
  /// How many gathered keys of all passes come before the block's key number `key`.
  int64_t allUpTo(int64_t key) const {
    int64_t vector = key / kPad, first = before[vector];
    return first * kPad + (before[vector + 1] > first ? key % kPad : 0);
  }

public:
  int64_t count = 0; ///< of the pass's keys

  /// query, key: numbers in the full sequences, the layout's.
  TileColumns(const BlockLayout *layout, int64_t query, int64_t queries, int64_t key, int64_t keys);

  /// The passes of `size` keys that have some of the block's keys [key, keyEnd): first and end.
  struct Passes {
    int64_t first, end;
  };
  Passes passes(int64_t key, int64_t keyEnd, int64_t size) const {
    int64_t first = allUpTo(key), end = allUpTo(keyEnd);
    return {first / size, first < end ? (end - 1) / size + 1 : first / size};
  }
  /// Turns to a pass, of a tile of `queries` and a block of `keys`, from number `key` of the run on.
  void begin(int64_t pass, int64_t passSize, const RunSight &sight, int64_t queries, int64_t key,
             int64_t keys);

  /// How many gathered keys come before the block's key number `key`, 0 <= key <= the block's count.
  int64_t upTo(int64_t key) const {
    return std::clamp<int64_t>(allUpTo(key) - firstVector * kPad, 0, count);
  }
  /// Where a gathered vector begins in the block.
  int64_t keyOf(int64_t vector) const { return numbers[firstVector + vector] * kPad; }
  const int16_t *numbersFrom(int64_t vector) const { return numbers + firstVector + vector; }
  bool adjacent(int64_t vector, int64_t count) const {
    const int16_t *of = numbersFrom(vector);
    return of[count - 1] == of[0] + count - 1;
  }
  /// Calls visit(gathered, key, count) for runs of gathered keys [first, end) that are adjacent in the block,
  /// in order. first: a multiple of kPad.
  template <typename Visit> void forRuns(int64_t first, int64_t end, Visit visit) const {
    while (first < end) {
      int64_t vector = first / kPad, next = vector + 1;
      while (next * kPad < end && adjacent(next - 1, 2))
        ++next;
      visit(first, keyOf(vector), std::min(next * kPad, end) - first);
      first = next * kPad;
    }
  }
  bool hidesBlocks() const { return hides; }
  /// Does some of the tile's queries [row, row + rows) compute some key of `count` gathered vectors? Only blocks of
  /// the layout count.
  bool computes(int64_t row, int64_t rows, int64_t vector, int64_t count) const;
  /// The first of the tile's queries [row, end) that does, and the end of the last one; both `end` if none does.
  struct Queries {
    int64_t first, end;
  };
  Queries queriesThatCompute(int64_t row, int64_t end, int64_t vector, int64_t count) const;
  /// Sets the scores of a query, number `row` of the tile, of keys that its row of blocks does not compute
  /// to -inf: those among the first `seen`.
  void hide(float *scores, int64_t row, int64_t seen) const;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_ATTENTION_COLUMNS_H
