// Numbers in 8 bits and a scale per block: against the formulas in double, at ties, at the ends of the range, with
// NaN and infinity.

#include "partita_rt/int8_blocks.h"
#include "partita_rt/kernels.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace partita_rt;

namespace {

std::vector<float> numbers(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size_t(n), 0.0f);
  for (float &value : values)
    value = normal(random);
  return values;
}

template <typename X> void checkAgainstDefinition(int64_t block, int64_t blocks) {
  SCOPED_TRACE(testing::Message() << blocks << " blocks of " << block);
  int64_t n = block * blocks;
  std::vector<X> x(size_t(n), X(0.0f)), back(x), rounded(x);
  std::vector<float> drawn = numbers(n, unsigned(n));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::ldexp(drawn[i], int(i) / int(block) * 9 % 20 - 10); // each block of its own size
  std::vector<int8_t> values(x.size());
  std::vector<float> scales(size_t(blocks), -1.0f);
  quantizeBlocks(values.data(), scales.data(), x.data(), block, n);
  dequantizeBlocks(back.data(), values.data(), scales.data(), block, n);
  roundBlocks(rounded.data(), x.data(), block, n);
  for (int64_t i = 0; i < n; ++i) {
    double max = 0;
    for (int64_t j = i / block * block; j < i / block * block + block; ++j)
      max = std::max(max, std::abs(double(float(x[size_t(j)]))));
    double scale = max / 127, exact = double(float(x[size_t(i)])) / scale;
    EXPECT_NEAR(scales[size_t(i / block)], scale, scale * 1e-6);
    EXPECT_LE(std::abs(exact - values[size_t(i)]), 0.5 + 1e-4);
    EXPECT_LE(std::abs(int(values[size_t(i)])), 127);
    EXPECT_EQ(float(back[size_t(i)]),
              float(X(float(values[size_t(i)]) * scales[size_t(i / block)])));
    EXPECT_EQ(float(rounded[size_t(i)]), float(back[size_t(i)]));
  }
  roundBlocks(x.data(), x.data(), block, n); // in place
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(float(x[i]), float(back[i]));
}

TEST(Int8Blocks, AreTheFormulas) {
  for (int64_t block : {2, 8, 32, 256, 24, 4096})
    for (int64_t blocks : {1, 5}) {
      checkAgainstDefinition<float>(block, blocks);
      checkAgainstDefinition<Half>(block, blocks);
      checkAgainstDefinition<BFloat16>(block, blocks);
    }
}

TEST(Int8Blocks, TiesGoToTheEvenNumberAndTheMaxIsExact) {
  std::vector<float> x{127, -127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f};
  std::vector<int8_t> values(8), expected{127, -127, 0, 2, 2, 0, -2, -2};
  float scale = 0;
  quantizeBlocks(values.data(), &scale, x.data(), 8, 8);
  EXPECT_EQ(scale, 1);
  EXPECT_EQ(values, expected);
}

TEST(Int8Blocks, ZeroAndWhatIsTooSmallForAScaleAreZero) {
  for (float small : {0.0f, 1e-45f, -1e-38f, int8_blocks::kLeast * 0.999f}) {
    std::vector<float> x{small, 0, 0, 0}, back(4, 1.0f);
    std::vector<int8_t> values(4, int8_t(1));
    float scale = 1;
    quantizeBlocks(values.data(), &scale, x.data(), 4, 4);
    EXPECT_EQ(scale, 0) << small;
    dequantizeBlocks(back.data(), values.data(), &scale, 4, 4);
    EXPECT_EQ(back, std::vector<float>(4, 0.0f)) << small;
  }
}

TEST(Int8Blocks, WhatIsNotFiniteMakesItsBlockNaNAndNoOther) {
  for (float wrong : {NAN, -NAN, INFINITY, -INFINITY}) {
    std::vector<float> x{1, 2, wrong, 3, 4, 5, 6, 7}, back(8);
    roundBlocks(back.data(), x.data(), 4, 8);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(std::isnan(back[size_t(i)]), i < 4) << i;
  }
}

} // namespace
