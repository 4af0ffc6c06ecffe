// Which tiles of scores a layout (block_layout.h) computes, and what of them. A line is a row of queries, whose
// positions are keys, or, `transposed`, a column of keys, whose positions are queries.

#ifndef PARTITA_RT_CUDA_ATTENTION_ATTENTION_BLOCKS_CUH
#define PARTITA_RT_CUDA_ATTENTION_ATTENTION_BLOCKS_CUH

#include "cuda/kernels/row.cuh"
#include "partita_rt/attention_sight.h"
#include "partita_rt/block_layout.h"
#include "partita_rt/kernels.h"

#include <type_traits>

namespace partita_rt::cuda {

/// Ones for positions [first, end) of 64 that begin at `from`.
__device__ inline uint64_t onesOf(int first, int end, int from) {
  first = first > from ? first - from : 0;
  end -= from;
  if (first >= 64 || first >= end)
    return 0;
  uint64_t below = end >= 64 ? ~uint64_t(0) : (uint64_t(1) << end) - 1;
  return below & ~uint64_t(0) << first;
}

/// The computed ones of 64 positions of a line of blocks, from `from` on.
__device__ inline uint64_t computedOfLine(const BlockLayout &layout, int line, bool transposed,
                                          int from) {
  int size = layout.size, last = (from + 63) / size;
  uint64_t bits = 0;
  forComputedOfLine(layout, line, from / size, last < layout.n ? last + 1 : layout.n, transposed,
                    [&](int first, int end) { bits |= onesOf(first * size, end * size, from); });
  return bits;
}

/// One head's.
struct HeadBlocks {
  const BlockLayout *layout; ///< null: all are computed
  __device__ HeadBlocks(const AttentionShape &shape, int64_t head)
      : layout(shape.blocks ? &layoutOfHead(shape.blocks, head) : nullptr) {}

  /// The computed ones of 64 positions, from `from` on, of the line that `at` lies in.
  __device__ uint64_t bits(bool transposed, int64_t at, int64_t from) const {
    return layout ? computedOfLine(*layout, int(at) / layout->size, transposed, int(from))
                  : ~uint64_t(0);
  }
  /// The first position in [from, end) that some of lines [first, last] compute, or end.
  __device__ int64_t next(bool transposed, int64_t first, int64_t last, int64_t from,
                          int64_t end) const {
    if (!layout || from >= end)
      return from;
    int size = layout->size, least = layout->n;
    for (int line = int(first) / size; line <= int(last) / size; ++line) {
      int block = nextBlockOfLine(*layout, line, int(from) / size, transposed);
      least = block < least ? block : least;
    }
    int64_t at = int64_t(least) * size;
    at = at > from ? at : from;
    return at < end ? at : end;
  }
  /// Do some of queries [query, last] compute some of keys [key, keyEnd)?
  __device__ bool meet(int64_t query, int64_t last, int64_t key, int64_t keyEnd) const {
    return next(false, query, last, key, keyEnd) < keyEnd;
  }
};

/// The computed ones of some queries of a warp that follow one another.
class ComputedKeys {
  const HeadBlocks &blocks;
  int64_t key, line = -1;
  uint64_t bits = ~uint64_t(0);

public:
  /// Of keys [key, key + 64).
  __device__ ComputedKeys(const HeadBlocks &blocks, int64_t key) : blocks(blocks), key(key) {}
  __device__ bool computes(int64_t query, int number) {
    if (blocks.layout && query / blocks.layout->size != line) {
      line = query / blocks.layout->size;
      bits = blocks.bits(false, query, key);
    }
    return bits >> number & 1;
  }
};

// For tiles of tensor cores: all lanes of a warp call these together.

/// The tile of kTile positions that has HeadBlocks::next, or `end`. The lanes share its lines. number: of position 0.
template <int kTile>
__device__ inline int nextTile(const HeadBlocks &blocks, bool transposed, int first, int last,
                               int from, int end, int number) {
  if (!blocks.layout || from >= end)
    return from < end ? from : end;
  int size = blocks.layout->size, least = blocks.layout->n;
  for (int line = first / size + int(threadIdx.x) % kWarp; line <= last / size; line += kWarp) {
    int block = nextBlockOfLine(*blocks.layout, line, (number + from) / size, transposed);
    least = block < least ? block : least;
  }
#pragma unroll
  for (int with = kWarp / 2; with > 0; with /= 2) {
    int other = __shfl_xor_sync(kAllLanes, least, with);
    least = other < least ? other : least;
  }
  int at = least * size - number;
  at = at > from ? at : from;
  return at < end ? at / kTile * kTile : end;
}

/// The computed ones of kColumns positions of a warp's lines, at most 32 of them: each lane has one line's.
template <int kColumns> class LineBits {
  static constexpr int kWords = (kColumns + 63) / 64;
  uint64_t words[kWords];
  int size, firstLine;
  bool hidden = false; ///< some position of the lane's line

public:
  /// Lines of [first, last], if any, and positions [from, from + kColumns).
  __device__ LineBits(const HeadBlocks &blocks, bool transposed, int first, int last, int from)
      : size(blocks.layout ? blocks.layout->size : 1), firstLine(first / size) {
    int line = firstLine + int(threadIdx.x) % kWarp;
    bool inside = blocks.layout && first <= last && line <= last / size;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      uint64_t wanted = kColumns < 64 ? (uint64_t(1) << kColumns % 64) - 1 : ~uint64_t(0);
      words[i] =
          inside ? computedOfLine(*blocks.layout, line, transposed, from + 64 * i) & wanted : 0;
      hidden = hidden || (inside && words[i] != wanted);
      if (!blocks.layout)
        words[i] = wanted;
    }
  }
  __device__ bool some() const {
    uint64_t any = 0;
#pragma unroll
    for (uint64_t word : words)
      any |= word;
    return __any_sync(kAllLanes, any != 0);
  }
  /// Sets hidden scores of a tile whose rows are lines to -inf. row: the one of the lane's first row.
  template <int kTiles>
  __device__ void hide(float (&scores)[kTiles][kColumns / 8][4], int row) const {
    if (!__any_sync(kAllLanes, hidden))
      return;
    int column = int(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int lane = (row + 16 * i + 8 * half) / size - firstLine;
#pragma unroll
        for (int word = 0; word < kWords; ++word) {
          uint32_t low = __shfl_sync(kAllLanes, uint32_t(words[word]), lane);
          uint32_t high = __shfl_sync(kAllLanes, uint32_t(words[word] >> 32), lane);
#pragma unroll
          for (int j = 8 * word; j < 8 * word + 8 && j < kColumns / 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
              if (!((j % 8 < 4 ? low : high) >> (j % 4 * 8 + column + e) & 1))
                scores[i][j][2 * half + e] = Largest::kNone;
        }
      }
  }
};

/// Those of a kernel for calls without a layout: all.
struct AllBits {
  __device__ AllBits(const HeadBlocks &, bool, int, int, int) {}
  __device__ bool some() const { return true; }
  template <typename Scores> __device__ void hide(Scores &, int) const {}
};
template <bool kBlocks, int kColumns>
using TileBits = std::conditional_t<kBlocks, LineBits<kColumns>, AllBits>;

/// The tiles of kKeys keys, [begin, end), that pass a tile of queries [query, query + count). With layouts, those
/// of which some query computes a key. All lanes of a warp make it, and call after(), together.
template <bool kBlocks, int kKeys> class KeyTiles {
  HeadBlocks blocks;
  int firstLine, lastLine, keyNumber; ///< in the full sequences

public:
  int begin, end;
  template <bool kDocuments, bool kRuns>
  __device__ KeyTiles(const HeadBlocks &blocks, const Sight<int, kDocuments, kRuns> &sight,
                      int query, int count)
      : blocks(blocks), firstLine(sight.queryNumber + query),
        lastLine(sight.queryNumber + min(query + count, sight.queries) - 1),
        keyNumber(sight.keyNumber), end(sight.end(lastLine - sight.queryNumber)) {
    begin = from(sight.first(query) / kKeys * kKeys);
  }
  /// The tile after the one at `key`; not before `end` if there is none.
  __device__ int after(int key) const { return from(key + kKeys); }

private:
  __device__ int from(int key) const {
    if constexpr (kBlocks)
      return nextTile<kKeys>(blocks, /*transposed=*/false, firstLine, lastLine, key, end,
                             keyNumber);
    else
      return key;
  }
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ATTENTION_ATTENTION_BLOCKS_CUH
