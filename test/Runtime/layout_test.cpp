// Which elements of the full tensor a rank's shard has.

#include "common/mesh/mesh.h"
#include "common/tensors/layout.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace partita_rt {
namespace {

TEST(Layout, LargeShardsThatDoNotDivideAreMultiplesOf64) {
  EXPECT_EQ(shardSize(50257, 2), 25152);
  EXPECT_EQ(shardSize(50257, 4), 12608);
  EXPECT_EQ(shardSize(50257, 1), 50257);
  EXPECT_EQ(shardSize(50258, 2), 25129); // divides
  EXPECT_EQ(shardSize(8195, 2), 4160);
  EXPECT_EQ(shardSize(8189, 2), 4095);
  EXPECT_EQ(shardSize(65, 2), 33);
  EXPECT_EQ(shardSize(409601, 100), 4097); // the last of 100 shards of 4,160 would be empty
  EXPECT_EQ(shardSize(3, 4), 1);           // the last rank has nothing
}

TEST(Layout, RunsCoverTheShardInOrder) {
  const Axis mesh[] = {{"a", 2}, {"b", 3}};
  Program program;
  program.mesh = mesh;
  Shape global{4, 6, 5};
  for (Splits splits : {Splits{}, Splits{{0, 0}}, Splits{{1, 0}, {1, 1}}, Splits{{1, 1}, {0, 0}},
                        Splits{{1, 0, 3}}, Splits{{0, 0, 2}, {1, 1, 2}}}) {
    std::multiset<int64_t> covered;
    Shape local = global;
    for (Split split : splits)
      local.dims[split.dim] /= mesh[split.axis].size;
    for (int r = 0; r < 6; ++r) {
      Rank rank;
      setCoordinates(rank, program, r);
      int64_t next = 0;
      forRuns(program, rank.coordinates, global, splits, [&](int64_t g, int64_t l, int64_t n) {
        EXPECT_EQ(l, next);
        next += n;
        for (int64_t i = 0; i < n; ++i)
          covered.insert(g + i);
      });
      EXPECT_EQ(next, local.elements());
    }
    int64_t copies = 6 * local.elements() / global.elements();
    for (int64_t i = 0; i < global.elements(); ++i)
      EXPECT_EQ(int64_t(covered.count(i)), copies);
  }
  // Of 8 elements the ranks of "b" have 3, 3 and 2, those of "a" 2 and 1 of 3, or 2 and none of 2 and a padding one.
  std::map<int64_t, std::vector<int64_t>> nested;
  for (int r = 0; r < 6; ++r) {
    Rank rank;
    setCoordinates(rank, program, r);
    forRuns(program, rank.coordinates, Shape{2, 4}, Splits{{kFlat, 1}, {kFlat, 0}},
            [&](int64_t g, int64_t l, int64_t n) {
              EXPECT_EQ(l, 0);
              for (int64_t i = 0; i < n; ++i)
                nested[r].push_back(g + i);
            });
  }
  EXPECT_EQ(nested, (std::map<int64_t, std::vector<int64_t>>{
                        {0, {0, 1}}, {1, {3, 4}}, {2, {6, 7}}, {3, {2}}, {4, {5}}}));
  // Rank 0 of "b" has the first third of each of two blocks of six.
  Splits blocked{{1, 1, 2}};
  int first[kMaxAxes] = {};
  std::vector<int64_t> columns;
  forRuns(program, first, Shape{1, 12}, blocked, [&](int64_t g, int64_t, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      columns.push_back(g + i);
  });
  EXPECT_EQ(columns, (std::vector<int64_t>{0, 1, 6, 7}));
  // Rank 1 of "a" has the second half of a block of four and of two blocks of two, in two rows of
  // three; in the shard these follow one another. Of all that, it has the second flat third, over
  // "b".
  Splits unequal{{1, 0, 3, {4, 2, 2}}}, flat{{1, 0, 3, {4, 2, 2}}, {kFlat, 1}};
  int second[kMaxAxes] = {1, 1};
  std::map<int64_t, int64_t> full, third;
  auto noteIn = [](std::map<int64_t, int64_t> &map) {
    return [&map](int64_t g, int64_t l, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        EXPECT_TRUE(map.insert({l + i, g + i}).second);
    };
  };
  forRuns(program, second, Shape{2, 8, 3}, unequal, noteIn(full));
  forRuns(program, second, Shape{2, 8, 3}, flat, noteIn(third));
  std::vector<int64_t> rows = {2, 3, 5, 7};
  ASSERT_EQ(full.size(), 24u);
  ASSERT_EQ(third.size(), 8u);
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(full[i], i / 12 * 24 + rows[size_t(i / 3 % 4)] * 3 + i % 3);
    if (i >= 8 && i < 16) {
      EXPECT_EQ(third[i - 8], full[i]);
    }
  }
  int calls = 0;
  forRuns({}, {}, {}, [&](int64_t, int64_t, int64_t n) { calls += int(n); });
  EXPECT_EQ(calls, 1);
}

/// Of 2 x 12 columns in two mirrored blocks, rank r of three has pairs r and 5 - r of each row; the two ranks of "a"
/// share out the rows.
TEST(Layout, EveryOtherMirroredBlockIsDealtBackwards) {
  const Axis mesh[] = {{"a", 2}, {"b", 3}};
  Program program;
  program.mesh = mesh;
  Splits splits{{0, 0}, {1, 1, 2, {}, true}};
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b) {
      int coordinates[kMaxAxes] = {a, b};
      std::vector<int64_t> shard(4, -1);
      forRuns(program, coordinates, Shape{2, 12}, splits, [&](int64_t g, int64_t l, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          shard[size_t(l + i)] = g + i;
      });
      int64_t row = 12 * a, first = 2 * b, second = 2 * (5 - b);
      EXPECT_EQ(shard, (std::vector<int64_t>{row + first, row + first + 1, row + second,
                                             row + second + 1}));
    }
}

} // namespace
} // namespace partita_rt
