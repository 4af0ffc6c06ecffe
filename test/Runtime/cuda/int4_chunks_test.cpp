// Chunks of numbers in 4 bits, and their sums: bit for bit as the CPU's, for chunks and blocks of all sizes, aligned or not.

#include "matmuls_stream.h"
#include "partita_rt/int4_chunks.h"

namespace partita_rt::cuda {
namespace {

/// Aligned for words, as buffers of a program are.
using Bytes = std::vector<int8_t, AlignedAllocator<int8_t>>;

template <typename X> void checkChunks(int64_t n, int64_t ranks, int64_t block, int64_t offset) {
  SCOPED_TRACE(testing::Message() << n << " over " << ranks << " by " << block << " at " << offset);
  SimulatedStream stream;
  int64_t chunk = (n + ranks - 1) / ranks, before = 4 * offset,
          stride = int4_chunks::chunkBytes(chunk, block) + 4, bytes = before + stride * ranks;
  Floats numbers = randomFloats(n, "x");
  if (n > 3 * block) {
    numbers[0] = INFINITY;                               // a block of NaN
    std::fill_n(numbers.begin() + block, block, 1e-44f); // and one of zeros
  }
  Tensor<X> x(numbers, offset), sum(chunk, offset), expected(chunk);
  Bytes reference(static_cast<size_t>(bytes));
  partita_rt::quantizeChunks(reference.data(), before, stride, x.in(), n, chunk, ranks, block);
  Bytes chunks(static_cast<size_t>(bytes));
  quantizeChunks(stream, chunks.data(), before, stride, x.in(), n, chunk, ranks, block);
  EXPECT_EQ(chunks, reference);
  partita_rt::sumChunks(expected.data(), reference.data(), before, stride, chunk, ranks, block);
  sumChunks(stream, sum.data(), chunks.data(), before, stride, chunk, ranks, block);
  EXPECT_BITS(sum, expected.floats());
}

TEST(Int4Chunks, AreTheCpusBitForBit) {
  for (int64_t block : {8, 16, 24, 64, 256, 512})
    for (int64_t ranks : {1, 2, 5})
      for (int64_t n : {3, 64, 1000, 4099})
        for (int64_t offset : {0, 1}) {
          checkChunks<float>(n, ranks, block, offset);
          checkChunks<BFloat16>(n, ranks, block, offset);
        }
  checkChunks<Half>(1000, 3, 256, 0);
}

} // namespace
} // namespace partita_rt::cuda
