//===- SparsityTests.cpp - the layouts of DeepSpeed's sparse attention, block for block -----------===//

#include "partita/Support/Sparsity.h"
#include <gtest/gtest.h>

using namespace partita;

namespace {

Sparsity parsed(llvm::StringRef text) {
  Sparsity sparsity;
  EXPECT_EQ(parseSparsity(text, sparsity), "") << text.str();
  return sparsity;
}

/// The layout of each head as rows of '#' and '.'.
std::vector<std::vector<std::string>> expanded(llvm::StringRef text, int64_t n, int64_t heads = 1) {
  HeadPatterns patterns;
  EXPECT_EQ(layOut(parsed(text), n, heads, patterns), "") << text.str();
  std::vector<std::vector<std::string>> layouts(heads);
  for (int64_t head = 0; head < heads; ++head) {
    const BlockPattern &pattern =
        patterns.patterns[patterns.ofHead.empty() ? 0 : patterns.ofHead[head]];
    partita_rt::BlockLayout layout = rowsOf(pattern, 16, n);
    for (int32_t i = 0; i < n; ++i) {
      std::string &row = layouts[head].emplace_back();
      for (int32_t j = 0; j < n; ++j)
        row += partita_rt::isComputed(layout, i, j) ? '#' : '.';
    }
  }
  return layouts;
}

std::string problemOf(llvm::StringRef text, int64_t n = 0) {
  Sparsity sparsity;
  std::string problem = parseSparsity(text, sparsity);
  HeadPatterns patterns;
  return problem.empty() && n ? layOut(sparsity, n, 2, patterns) : problem;
}

using Rows = std::vector<std::string>;

} // namespace

// What DeepSpeed's SparsityConfig classes return.

TEST(Sparsity, FixedBidirectional) {
  EXPECT_EQ(expanded("mode=fixed", 10)[0],
            (Rows{"####...#.#", "####...#.#", "####...#.#", "####...#.#", "...#####.#",
                  "...#####.#", "...#####.#", "...#####.#", "...#...###", "...#...###"}));
}
TEST(Sparsity, FixedUnidirectional) {
  EXPECT_EQ(expanded("mode=fixed,attention=unidirectional", 10)[0],
            (Rows{"#.........", "##........", "###.......", "####......", "...##.....",
                  "...###....", "...####...", "...#####..", "...#...##.", "...#...###"}));
}
TEST(Sparsity, FixedDifferentPatterns) {
  std::vector<Rows> golden = {{"#.......", "##......", "###.....", "####....", "...##...",
                               "...###..", "...####.", "...#####"},
                              {"#.......", "##......", "###.....", "####....", "..#.#...",
                               "..#.##..", "..#.###.", "..#.####"},
                              {"#.......", "##......", "###.....", "####....", ".#..#...",
                               ".#..##..", ".#..###.", ".#..####"},
                              {"#.......", "##......", "###.....", "####....", "#...#...",
                               "#...##..", "#...###.", "#...####"}};
  std::string text = "mode=fixed,attention=unidirectional,different_layout_per_head=true,"
                     "num_different_global_patterns=4";
  EXPECT_EQ(expanded(text, 8, 4), golden);
  HeadPatterns patterns;
  ASSERT_EQ(layOut(parsed(text), 8, 6, patterns), "");
  EXPECT_EQ(patterns.patterns.size(), 4u);
  EXPECT_EQ(patterns.ofHead, (std::vector<int32_t>{0, 1, 2, 3, 0, 1}));
}
TEST(Sparsity, VariableUnidirectional) {
  EXPECT_EQ(expanded("mode=variable,attention=unidirectional,local_window_blocks=1:2:3,"
                     "global_block_indices=0:5",
                     10)[0],
            (Rows{"#.........", "##........", "###.......", "#..#......", "#..##.....",
                  "#..###....", "#....##...", "#....###..", "#....####.", "#....#...#"}));
}
TEST(Sparsity, BSLongformer) {
  EXPECT_EQ(expanded("mode=bslongformer,global_block_indices=0:4", 8)[0],
            (Rows{"########", "###.#...", "#####...", "#.###...", "########", "#...###.",
                  "#...####", "#...#.##"}));
}
TEST(Sparsity, SlidingWindow) {
  EXPECT_EQ(expanded("mode=sliding-window", 8)[0],
            (Rows{"#.......", "##......", ".##.....", "..##....", "...##...", "....##..",
                  ".....##.", "......##"}));
  EXPECT_EQ(expanded("mode=sliding-window,attention=bidirectional", 8)[0],
            (Rows{"##......", "###.....", ".###....", "..###...", "...###..", "....###.",
                  ".....###", "......##"}));
}
TEST(Sparsity, Dense) { EXPECT_EQ(expanded("mode=dense", 3)[0], Rows(3, "###")); }

// By the classes' code, where there is no golden layout.

TEST(Sparsity, HorizontalAndWideGlobals) {
  EXPECT_EQ(expanded("mode=fixed,num_global_blocks=2,horizontal_global_attention=true", 6)[0],
            (Rows{"######", "######", "######", "######", "######", "######"}));
  // DeepSpeed cuts local windows to the lower triangle, but not global columns.
  EXPECT_EQ(expanded("mode=fixed,num_global_blocks=2,attention=unidirectional", 6)[0],
            (Rows{"#.....", "##....", "####..", "####..", "..####", "..####"}));
  EXPECT_EQ(expanded("mode=variable,global_block_indices=1,global_block_end_indices=3,"
                     "local_window_blocks=1,attention=unidirectional",
                     4)[0],
            (Rows{"#...", ".##.", ".##.", ".###"}));
}
TEST(Sparsity, BigBirdHasWindowGlobalsAndRandomBlocks) {
  Rows without = expanded("mode=bigbird,num_random_blocks=0", 12)[0];
  EXPECT_EQ(without[0], std::string(12, '#'));
  EXPECT_EQ(without[5], "#...###.....");
  Rows with = expanded("mode=bigbird,num_random_blocks=3,seed=7", 12)[0];
  int64_t added = 0;
  for (int row = 1; row < 12; ++row)
    for (int column = 0; column < 12; ++column) {
      EXPECT_TRUE(without[row][column] == '.' || with[row][column] == '#');
      added += without[row][column] != with[row][column];
    }
  EXPECT_GT(added, 11); // of 33 draws, those that fall on other blocks
  EXPECT_LE(added, 33);
  EXPECT_EQ(expanded("mode=bigbird,num_random_blocks=3,seed=7", 12)[0], with);
  EXPECT_NE(expanded("mode=bigbird,num_random_blocks=3,seed=8", 12)[0], with);
  Rows lower = expanded("mode=bigbird,num_random_blocks=3,attention=unidirectional", 12)[0];
  for (int row = 0; row < 12; ++row) {
    EXPECT_EQ(lower[row].find('#', row + 1), std::string::npos);
    EXPECT_EQ(lower[row][row], '#');
  }
}
TEST(Sparsity, RandomBlocksOfEachHead) {
  std::vector<Rows> shared = expanded("mode=variable,num_random_blocks=2", 16, 3);
  EXPECT_EQ(shared[0], shared[2]);
  std::vector<Rows> own =
      expanded("mode=variable,num_random_blocks=2,different_layout_per_head=true", 16, 3);
  EXPECT_EQ(own[0], shared[0]);
  EXPECT_NE(own[0], own[1]);
  EXPECT_NE(own[1], own[2]);
  // All of a row's blocks are drawn once each.
  EXPECT_EQ(expanded("mode=variable,num_random_blocks=5,local_window_blocks=1", 5)[0],
            Rows(5, "#####"));
}

TEST(Sparsity, DefaultsAreThoseOfTheClasses) {
  EXPECT_EQ(parsed("mode=bigbird").numRandomBlocks, 1);
  EXPECT_EQ(parsed("mode=variable").numRandomBlocks, 0);
  EXPECT_TRUE(parsed("mode=sliding-window").unidirectional);
  EXPECT_FALSE(parsed("block=32").unidirectional);
  EXPECT_EQ(parsed("block=32").mode, Sparsity::Fixed);
}

TEST(Sparsity, BadInput) {
  EXPECT_EQ(problemOf("mode=fixt"), "there is no mode 'fixt'; did you mean 'fixed'?");
  EXPECT_EQ(problemOf("fixed"), "'fixed' is not of the form key=value, such as mode=fixed");
  EXPECT_EQ(problemOf("mode=dense,block=8,block=16"), "'block' is given twice");
  EXPECT_EQ(problemOf("mode=sliding-window,num_local_blocks=2"),
            "mode sliding-window has no key 'num_local_blocks'; there are block, attention, "
            "num_sliding_window_blocks");
  EXPECT_EQ(problemOf("mode=bigbird,num_globals_blocks=2"),
            "mode bigbird has no key 'num_globals_blocks'; did you mean 'num_global_blocks'?");
  EXPECT_EQ(problemOf("mode=variable,local_window_blocks=4:x"),
            "'local_window_blocks' is '4:x', expected integers from 1 to 1048576 with ':' between "
            "them, such as 4:8");
  EXPECT_EQ(problemOf("attention=causal"),
            "'attention' is 'causal', expected bidirectional or unidirectional");
  EXPECT_EQ(problemOf("horizontal_global_attention=true,attention=unidirectional"),
            "horizontal_global_attention needs attention=bidirectional: a global block would see "
            "later ones");
  EXPECT_EQ(problemOf("num_global_blocks=3"),
            "num_local_blocks is 4, which num_global_blocks, 3, does not divide");
  EXPECT_EQ(problemOf("num_different_global_patterns=2"),
            "num_different_global_patterns is 2, which needs different_layout_per_head=true");
  EXPECT_EQ(problemOf("num_different_global_patterns=5,different_layout_per_head=true"),
            "num_different_global_patterns is 5, but a local window of 4 blocks with 1 global has "
            "at most 4");
  EXPECT_EQ(problemOf("mode=variable,global_block_indices=1:2,global_block_end_indices=2"),
            "global_block_end_indices has 1 numbers for 2 of global_block_indices");
  EXPECT_EQ(problemOf("mode=bslongformer,global_block_indices=2,global_block_end_indices=2"),
            "global blocks from 2 to 2 (exclusive) are none; each of global_block_end_indices must "
            "be larger than its global_block_indices");
  EXPECT_EQ(problemOf("mode=variable,global_block_indices=0:9", 8),
            "global_block_indices has 9, but the sequence has blocks 0 to 7 of 16");
  EXPECT_EQ(problemOf("mode=bslongformer,global_block_indices=0,global_block_end_indices=9", 8),
            "global_block_end_indices has 9, but the sequence has 8 blocks of 16");
  EXPECT_EQ(problemOf("mode=bigbird,num_random_blocks=9", 8),
            "num_random_blocks is 9, but the sequence has 8 blocks of 16");
  EXPECT_EQ(problemOf("mode=sliding-window", 2),
            "num_sliding_window_blocks is 3, but the sequence has 2 blocks of 16");
  EXPECT_EQ(problemOf("num_global_blocks=4", 3),
            "num_global_blocks is 4, but the sequence has 3 blocks of 16");
}
