// Chunks of numbers in 4 bits: against the formulas in double, bytes and all, at ties, at the ends of the range, with NaN and
// infinity, and where chunks and blocks end.

#include "partita_rt/int4_chunks.h"
#include "partita_rt/kernels.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace partita_rt;

namespace {

std::vector<float> normalNumbers(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size_t(n), 0.0f);
  for (float &value : values)
    value = normal(random);
  return values;
}

struct Shape {
  int64_t n, ranks, block;
  int64_t chunk() const { return (n + ranks - 1) / ranks; }
  int64_t stride() const {
    return int4_chunks::chunkBytes(chunk(), block) + 12;
  } // of other tensors, too
};
constexpr int64_t kOffset = 8;

float scaleAt(const std::vector<int8_t> &chunks, const Shape &shape, int64_t rank, int64_t i) {
  float scale;
  std::memcpy(&scale, &chunks[size_t(kOffset + rank * shape.stride() + i / shape.block * 4)], 4);
  return scale;
}

int numberAt(const std::vector<int8_t> &chunks, const Shape &shape, int64_t rank, int64_t i) {
  int64_t at =
      kOffset + rank * shape.stride() + int4_chunks::scaleBytes(shape.chunk(), shape.block);
  int bits = uint8_t(chunks[size_t(at + i / 2)]) >> (i % 2 * 4) & 15;
  return bits < 8 ? bits : bits - 16;
}

template <typename X> void checkAgainstDefinition(const Shape &shape) {
  SCOPED_TRACE(testing::Message() << shape.n << " over " << shape.ranks << " by " << shape.block);
  int64_t chunk = shape.chunk(), stride = shape.stride();
  std::vector<std::vector<int8_t>> sent;
  std::vector<std::vector<X>> terms;
  for (int64_t sender = 0; sender < shape.ranks; ++sender) {
    std::vector<X> x(size_t(shape.n), X(0.0f));
    std::vector<float> drawn = normalNumbers(shape.n, unsigned(shape.n + sender));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = std::ldexp(drawn[i], int(i) / 40 * 7 % 12 - 6);
    std::vector<int8_t> chunks(size_t(kOffset + stride * shape.ranks), int8_t(99));
    quantizeChunks(chunks.data(), kOffset, stride, x.data(), shape.n, chunk, shape.ranks,
                   shape.block);
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      for (int64_t i = 0; i < chunk; ++i) {
        int64_t block = i / shape.block * shape.block;
        auto at = [&](int64_t j) {
          int64_t element = rank * chunk + j;
          return element < shape.n ? double(float(x[size_t(element)])) : 0.0;
        };
        double max = 0;
        for (int64_t j = block; j < std::min(block + shape.block, chunk); ++j)
          max = std::max(max, std::abs(at(j)));
        EXPECT_NEAR(scaleAt(chunks, shape, rank, i), max / 7, max * 1e-6);
        double exact = max == 0 ? 0 : at(i) / (max / 7);
        EXPECT_LE(std::abs(exact - numberAt(chunks, shape, rank, i)), 0.5 + 1e-5);
        EXPECT_LE(std::abs(numberAt(chunks, shape, rank, i)), 7);
      }
      for (int64_t i = chunk; i < (chunk + 7) / 8 * 8; ++i) // the rest of a word
        EXPECT_EQ(numberAt(chunks, shape, rank, i), 0);
      for (int64_t i = int4_chunks::chunkBytes(chunk, shape.block); i < stride; ++i)
        EXPECT_EQ(chunks[size_t(kOffset + rank * stride + i)], 99) << "past the chunk";
    }
    EXPECT_EQ(chunks[kOffset - 1], 99);
    sent.push_back(std::move(chunks));
  }
  for (int64_t receiver = 0; receiver < shape.ranks; ++receiver) {
    std::vector<int8_t> received(sent[0].size());
    for (int64_t sender = 0; sender < shape.ranks; ++sender)
      std::memcpy(&received[size_t(kOffset + sender * stride)],
                  &sent[size_t(sender)][size_t(kOffset + receiver * stride)],
                  size_t(int4_chunks::chunkBytes(chunk, shape.block)));
    std::vector<X> sum(size_t(chunk) + 1, X(77.0f));
    sumChunks(sum.data(), received.data(), kOffset, stride, chunk, shape.ranks, shape.block);
    for (int64_t i = 0; i < chunk; ++i) {
      float expected = 0; // in the order of ranks, each product rounded
      for (int64_t sender = 0; sender < shape.ranks; ++sender) {
        volatile float term =
            float(numberAt(received, shape, sender, i)) * scaleAt(received, shape, sender, i);
        expected += term;
      }
      EXPECT_EQ(float(sum[size_t(i)]), float(X(expected)));
      bool isPadding = receiver * chunk + i >= shape.n;
      EXPECT_TRUE(!isPadding || float(sum[size_t(i)]) == 0);
    }
    EXPECT_EQ(float(sum[size_t(chunk)]), 77);
  }
}

TEST(Int4Chunks, AreTheFormulas) {
  for (int64_t block : {8, 16, 24, 64, 256})
    for (int64_t ranks : {1, 2, 3, 4})
      for (int64_t n : {1, 5, 15, 64, 127, 1000}) {
        checkAgainstDefinition<float>({n, ranks, block});
        checkAgainstDefinition<BFloat16>({n, ranks, block});
        checkAgainstDefinition<Half>({n, ranks, block});
      }
}

TEST(Int4Chunks, TiesGoToTheEvenNumberAndTheMaxIsExact) {
  std::vector<float> x{7, -7, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f}, sum(8);
  std::vector<int8_t> chunks(8);
  quantizeChunks(chunks.data(), 0, 8, x.data(), 8, 8, 1, 8);
  sumChunks(sum.data(), chunks.data(), 0, 8, 8, 1, 8);
  EXPECT_EQ(sum, (std::vector<float>{7, -7, 0, 2, 2, 0, -2, -2}));
}

TEST(Int4Chunks, ZeroAndWhatIsTooSmallForAScaleAreZero) {
  for (float small : {0.0f, 1e-45f, -1e-38f, int4_chunks::kLeast * 0.999f}) {
    std::vector<float> x{small, 0, 0, 0, 0, 0, 0, small}, sum(8, 1.0f);
    std::vector<int8_t> chunks(8, int8_t(1));
    quantizeChunks(chunks.data(), 0, 8, x.data(), 8, 8, 1, 8);
    EXPECT_EQ(chunks, std::vector<int8_t>(8)) << small;
    sumChunks(sum.data(), chunks.data(), 0, 8, 8, 1, 8);
    EXPECT_EQ(sum, std::vector<float>(8, 0.0f)) << small;
  }
}

/// What a loss scale's test of the gradient looks for.
TEST(Int4Chunks, WhatIsNotFiniteMakesItsBlockNaNInTheSumAndNoOther) {
  for (float wrong : {NAN, -NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(24, 1.0f), good(24, 2.0f), sum(24);
    x[9] = wrong;
    std::vector<int8_t> chunks(48);
    quantizeChunks(chunks.data(), 0, 24, good.data(), 24, 24, 1, 8);
    quantizeChunks(chunks.data(), 24, 24, x.data(), 24, 24, 1, 8);
    sumChunks(sum.data(), chunks.data(), 0, 24, 24, 2, 8); // as of two ranks
    for (int i = 0; i < 24; ++i)
      EXPECT_EQ(std::isnan(sum[size_t(i)]), i / 8 == 1) << i;
  }
}

} // namespace
