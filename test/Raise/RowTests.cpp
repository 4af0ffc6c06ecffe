//===- RowTests.cpp - rows in runs have the elements of rows without ---------------------------===//

#include "partita/Raise/Row.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace partita::raise;

namespace {

using Elements = std::vector<double>;

TEST(Row, EqualElementsAreOneRun) {
  Row row;
  for (double element : {1.0, 1.0, 1.0, 2.0, 2.0})
    row.append(1, element);
  row.append(3, 2.0);
  ASSERT_EQ(row.runs().size(), 2u);
  EXPECT_EQ(row.elements(), (Elements{1, 1, 1, 2, 2, 2, 2, 2}));
}

TEST(Row, ZeroAndMinusZeroDiffer) {
  Row row(2, 0.0);
  row.append(2, -0.0);
  ASSERT_EQ(row.runs().size(), 2u);
  EXPECT_TRUE(std::signbit(row.elements()[2]));
}

TEST(Row, NansAreOneRun) {
  Row row(2, std::numeric_limits<double>::quiet_NaN());
  row.append(2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(row.runs().size(), 1u);
  EXPECT_EQ(row.size(), 4);
}

TEST(Row, IntegersAreARunAndOthersAreNot) {
  Row row;
  row.append(4, -1, 2);
  EXPECT_EQ(row.runs().size(), 1u);
  EXPECT_EQ(row.elements(), (Elements{-1, 1, 3, 5}));
  row.append(3, 0, 0.1); // rounds otherwise where it begins otherwise
  EXPECT_EQ(row.runs().size(), 4u);
  EXPECT_EQ(row.elements()[6], 0.2);
  Row large;
  large.append(3, 0x1p52 - 2, 1);
  EXPECT_EQ(large.runs().size(), 3u);
}

TEST(Row, SlicesHaveTheirElements) {
  Row row(3, 7);
  row.append(6, 10, 1);
  row.append(2, 4);
  Elements all = row.elements();
  for (int64_t stride = 1; stride <= 4; ++stride)
    for (int64_t offset = 0; offset < row.size(); ++offset) {
      Elements expected;
      for (int64_t j = offset; j < row.size(); j += stride)
        expected.push_back(all[j]);
      int64_t size = static_cast<int64_t>(expected.size());
      EXPECT_EQ(row.slice(offset, stride, size).elements(), expected);
    }
  EXPECT_EQ(row.slice(4, 2, 2).elements(), (Elements{11, 13}));
}

TEST(Row, StretchesCutRowsWhereARunEnds) {
  Row a(4, 1), b(2, 5);
  a.append(4, 0, 1);
  b.append(4, 0, 2);
  b.append(2, 9);
  std::vector<std::pair<int64_t, int64_t>> seen;
  Elements sums;
  forEachStretch({&a, &b}, [&](llvm::ArrayRef<Row::Run> parts) {
    seen.emplace_back(parts[0].begin, parts[0].end);
    for (int64_t j = parts[0].begin; j < parts[0].end; ++j)
      sums.push_back(parts[0].at(j) + parts[1].at(j));
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(sums, (Elements{6, 6, 1, 3, 4, 7, 11, 12}));
}

} // namespace
