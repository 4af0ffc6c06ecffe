// Layouts of block-sparse attention against their definition, block by block.

#include "partita_rt/block_layout.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace partita_rt;

namespace {

/// Block (i, j) of a term, as block_layout.h defines it.
bool holds(const BlockTerm &term, int i, int j) {
  auto isOfGroups = [&](int across, int along) {
    if (along < term.begin || along >= term.end)
      return false;
    int within = (along - term.begin) % term.period;
    return within < term.width && (!term.below || across >= along - within);
  };
  switch (term.kind) {
  case BlockTermKind::Band:
    return term.begin <= j - i && j - i <= term.end;
  case BlockTermKind::Squares:
    return i >= term.begin && i < term.end && j >= term.begin && j < term.end &&
           (i - term.begin) / term.period == (j - term.begin) / term.period &&
           (!term.below || j <= i);
  case BlockTermKind::Columns:
    return isOfGroups(i, j);
  case BlockTermKind::Rows:
    return isOfGroups(j, i);
  }
  return false;
}

class Layouts {
public:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

  /// Terms of the kinds in `mask`; at random some end behind the last block, or are empty.
  BlockLayout layout(int kinds, int mostTerms) {
    int n = draw(1, 24);
    terms.clear();
    pairs.clear();
    for (int t = draw(0, mostTerms); t > 0; --t) {
      int kind = draw(0, 3);
      if (!(kinds >> kind & 1))
        continue;
      if (kind == 0) {
        int low = draw(-n - 2, n + 2);
        terms.push_back({BlockTermKind::Band, low, low + draw(-1, 5)});
        continue;
      }
      int begin = draw(0, n);
      terms.push_back({BlockTermKind(kind), begin, begin + draw(0, n + 3), draw(1, 6), draw(1, 7),
                       draw(0, 1) == 1});
    }
    if (kinds >> 4 & 1)
      for (int p = draw(0, 2 * n); p > 0; --p)
        pairs.push_back({draw(0, n - 1), draw(0, n - 1)});
    sorted(pairs, [](BlockPair p) { return std::pair(p.row, p.column); });
    columns = pairs;
    sorted(columns, [](BlockPair p) { return std::pair(p.column, p.row); });
    return {16,
            n,
            draw(0, 1) == 1,
            int32_t(terms.size()),
            terms.data(),
            int32_t(pairs.size()),
            pairs.data(),
            columns.data()};
  }

  /// n x n, by definition.
  std::vector<char> dense(const BlockLayout &layout) const {
    int n = layout.n;
    std::vector<char> blocks(n * n);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < (layout.lower ? i + 1 : n); ++j)
        blocks[i * n + j] = std::any_of(terms.begin(), terms.end(),
                                        [&](auto &term) { return holds(term, i, j); }) ||
                            std::any_of(pairs.begin(), pairs.end(),
                                        [&](BlockPair p) { return p.row == i && p.column == j; });
    return blocks;
  }

private:
  template <typename Key> static void sorted(std::vector<BlockPair> &pairs, Key key) {
    std::sort(pairs.begin(), pairs.end(), [&](auto a, auto b) { return key(a) < key(b); });
    pairs.erase(
        std::unique(pairs.begin(), pairs.end(), [&](auto a, auto b) { return key(a) == key(b); }),
        pairs.end());
  }
  std::mt19937 random{1};
  std::vector<BlockTerm> terms;
  std::vector<BlockPair> pairs, columns;
};

/// The first marked element of `line` at or after `from`, or n.
template <typename Line> int firstOf(int n, int from, Line line) {
  while (from < n && !line(from))
    ++from;
  return from;
}

void expectLayout(const BlockLayout &layout, const std::vector<char> &blocks) {
  int n = layout.n;
  int64_t all = 0, below = 0;
  for (int i = 0; i < n; ++i) {
    int64_t ofRow = 0;
    for (int j = 0; j < n; ++j) {
      ASSERT_EQ(nextBlock(layout, i, j), firstOf(n, j, [&](int at) { return blocks[i * n + at]; }))
          << "row " << i << " from " << j;
      ASSERT_EQ(nextBlockOfColumn(layout, i, j),
                firstOf(n, j, [&](int at) { return blocks[at * n + i]; }))
          << "column " << i << " from " << j;
      ASSERT_EQ(isComputed(layout, i, j), bool(blocks[i * n + j]));
      ofRow += blocks[i * n + j];
      below += j <= i && blocks[i * n + j];
      ASSERT_EQ(countBlocksOfRow(layout, i, j + 1), ofRow) << "row " << i << " to " << j;
    }
    all += ofRow;
  }
  ASSERT_EQ(countBlocks(layout), all);
  ASSERT_EQ(countBlocks(layout, /*causal=*/true), below);
}

} // namespace

TEST(BlockLayout, EqualsItsDefinition) {
  Layouts layouts;
  int64_t computed = 0, hidden = 0;
  for (int kinds : {1, 2, 4, 8, 16, 31}) // each kind of term alone, single blocks, all
    for (int round = 0; round < 400; ++round) {
      BlockLayout layout = layouts.layout(kinds, /*mostTerms=*/6);
      std::vector<char> blocks = layouts.dense(layout);
      computed += std::count(blocks.begin(), blocks.end(), 1);
      hidden += std::count(blocks.begin(), blocks.end(), 0);
      ASSERT_NO_FATAL_FAILURE(expectLayout(layout, blocks))
          << "kinds " << kinds << " round " << round;
    }
  EXPECT_GT(computed, 10000);
  EXPECT_GT(hidden, 10000);
}

/// DeepSpeed's `fixed`, unidirectional, of a million positions: local windows and one global column each.
TEST(BlockLayout, CountsLongSequencesByFormula) {
  int32_t n = 1 << 16;
  BlockTerm terms[] = {{BlockTermKind::Squares, 0, n, 4},
                       {BlockTermKind::Columns, 3, n, 4, 1, /*below=*/true}};
  BlockLayout layout{16, n, /*lower=*/true, 2, terms};
  // Row i of a window has i % 4 + 1 blocks of its window, and one of each window before.
  int64_t windows = n / 4;
  EXPECT_EQ(countBlocks(layout), windows * 10 + 4 * (windows * (windows - 1) / 2));
}

/// Two global columns that coincide in every twelfth: looked up one by one, a million positions took a minute.
TEST(BlockLayout, CountsOverlappingPeriodsOnce) {
  int32_t n = 3 << 14;
  BlockTerm terms[] = {{BlockTermKind::Columns, 0, n, 4}, {BlockTermKind::Columns, 0, n, 6}};
  BlockLayout layout{16, n, /*lower=*/false, 2, terms};
  EXPECT_EQ(countBlocks(layout), int64_t(n) * (n / 4 + n / 6 - n / 12));
}

TEST(BlockLayout, HeadsHaveTheirOwn) {
  BlockTerm terms[] = {{BlockTermKind::Band, 0, 0}, {BlockTermKind::Band, -1, 0}};
  BlockLayout layouts[] = {{16, 4, false, 1, terms}, {16, 4, false, 1, terms + 1}};
  int32_t ofHead[] = {0, 1, 1, 0};
  int64_t first = 2;
  EXPECT_EQ(&layoutOfHead({layouts}, 3), layouts);
  EXPECT_EQ(&layoutOfHead({layouts, ofHead}, 1), layouts + 1);
  EXPECT_EQ(&layoutOfHead({layouts, ofHead, &first}, 0), layouts + 1);
  EXPECT_EQ(&layoutOfHead({layouts, ofHead, &first}, 1), layouts);
}
