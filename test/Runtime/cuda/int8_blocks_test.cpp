// Numbers in 8 bits and a scale per block: bit for bit as the CPU's, for blocks of all sizes, aligned or not.

#include "matmuls_stream.h"

namespace partita_rt::cuda {
namespace {

template <typename X> void check(int64_t block, int64_t blocks, int64_t offset) {
  SCOPED_TRACE(testing::Message() << blocks << " blocks of " << block << " at " << offset);
  SimulatedStream stream;
  int64_t n = block * blocks;
  Floats numbers = randomFloats(n, "x");
  numbers[0] = INFINITY; // a block of NaN
  if (blocks > 2)
    std::fill_n(numbers.begin() + block, block, 1e-44f); // and one of zeros
  Tensor<X> x(numbers, offset), back(n, offset), rounded(n, offset), expected(n);
  std::vector<int8_t> reference(static_cast<size_t>(n));
  std::vector<float> scalesReference(static_cast<size_t>(blocks));
  partita_rt::quantizeBlocks(reference.data(), scalesReference.data(), x.in(), block, n);
  Tensor<int8_t> values(n, offset);
  Tensor<float> scales(blocks);
  quantizeBlocks(stream, values.data(), scales.data(), x.in(), block, n);
  EXPECT_EQ(std::vector<int8_t>(values.in(), values.in() + n), reference);
  EXPECT_TRUE(values.marginsKept());
  EXPECT_BITS(scales, Floats(scalesReference.begin(), scalesReference.end()));
  partita_rt::dequantizeBlocks(expected.data(), reference.data(), scalesReference.data(), block, n);
  dequantizeBlocks(stream, back.data(), values.in(), scales.in(), block, n);
  EXPECT_BITS(back, expected.floats());
  roundBlocks(stream, rounded.data(), x.in(), block, n);
  EXPECT_BITS(rounded, expected.floats());
}

TEST(Int8Blocks, AreTheCpusBitForBit) {
  for (int64_t block : {2, 8, 16, 64, 256, 512, 24, 7})
    for (int64_t blocks : {1, 3, 70})
      for (int64_t offset : {0, 1}) {
        check<float>(block, blocks, offset);
        check<BFloat16>(block, blocks, offset);
      }
  check<Half>(256, 3, 0);
}

} // namespace
} // namespace partita_rt::cuda
