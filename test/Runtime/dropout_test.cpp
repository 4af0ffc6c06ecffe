// Dropout: whether an element is dropped depends only on its number in the full tensor.

#include "reference.h"

namespace partita_rt {
namespace {

TEST(Dropout, DropsWhatTheInterpreterDrops) { // test/Interp/dropout.mlir has the same numbers
  Floats ones(16, 1.0f), y(16);
  dropout(y.data(), ones.data(), Shape{2, 8}, Shape{2, 8}, {0.5, 3, 42}, 16);
  EXPECT_EQ(y, (Floats{0, 2, 2, 0, 0, 0, 0, 2, 0, 2, 0, 2, 2, 2, 0, 2}));
}

TEST(Dropout, AShardIsCutFromTheFullTensor) {
  Floats x = randomFloats(4 * 6 * 8, "x"), full(x.size());
  dropout(full.data(), x.data(), Shape{4, 6, 8}, Shape{4, 6, 8}, {0.3, 1, 7}, 0);
  // Rows 2 and 3 of the first dimension; then columns 4 to 7 of the last, in all rows.
  Floats half(full.begin() + 2 * 48, full.end()), y(half.size());
  dropout(y.data(), x.data() + 2 * 48, Shape{2, 6, 8}, Shape{4, 6, 8}, {0.3, 1, 7}, 2 * 48);
  EXPECT_EQ(y, half);
  Floats columns, expected;
  for (size_t i = 0; i < x.size(); ++i)
    if (i % 8 >= 4) {
      columns.push_back(x[i]);
      expected.push_back(full[i]);
    }
  dropout(columns.data(), columns.data(), Shape{4, 6, 4}, Shape{4, 6, 8}, {0.3, 1, 7}, 4);
  EXPECT_EQ(columns, expected) << "in place";
}

TEST(Dropout, DropsTheRatio) {
  Floats ones(100000, 1.0f), y(ones.size());
  dropout(y.data(), ones.data(), Shape{100000}, Shape{100000}, {0.1, 0, 1}, 0);
  auto dropped = std::count(y.begin(), y.end(), 0.0f);
  EXPECT_NEAR(double(dropped), 10000, 500);
  EXPECT_FLOAT_EQ(*std::max_element(y.begin(), y.end()), 1 / 0.9f);
}

} // namespace
} // namespace partita_rt
