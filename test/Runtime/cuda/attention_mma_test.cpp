// Attention with mma.sync, on simulated tensor cores, against sums in double, within the roundings
// that it makes; the bits must not depend on schedule or alignment.

#include "attention_calls.h"
#include "cuda/attention/mma.cuh"

namespace partita_rt::cuda {
namespace {

using Kind = BlockTermKind;

/// Layouts of two heads; the first computes local blocks and global columns.
AttentionShape withBlocks(int32_t size, const AttentionShape &shape, bool lower = true) {
  auto n = int32_t(shape.sequence) / size;
  LayoutMaker maker(size, n);
  maker.add(lower, {{Kind::Squares, 0, n, 3}, {Kind::Columns, 2, n, 3, 1, true}});
  maker.add(lower, {{Kind::Band, -2, 1}, {Kind::Rows, n / 2, n, n, 1}},
            {{n - 1, 0}, {n / 2, n - 1}});
  return maker.of(shape);
}
/// With rows and columns without a block.
AttentionShape withRandomBlocks(int32_t size, const AttentionShape &shape) {
  LayoutMaker maker(size, int32_t(shape.sequence) / size);
  return maker.addRandom(1).addRandom(2).of(shape);
}

const Case kCases[] = {
    {"one key", shapeOf(1, 1, 1, 1, 64, true)},
    {"heads of 64, odd sequence", shapeOf(2, 1, 65, 65, 64, true)},
    {"heads of 80, not causal", shapeOf(1, 1, 40, 67, 80, false)},
    {"heads of 96", shapeOf(1, 1, 130, 130, 96, true)},
    {"heads of 128, grouped queries", shapeOf(1, 4, 70, 70, 128, true, 2)},
    {"several tiles of queries and keys", shapeOf(1, 1, 197, 197, 64, true)},
    {"heads of 7 with values of 12", shapeOf(1, 1, 20, 70, 7, false, 1, 12)},
    {"more keys than queries", shapeOf(1, 2, 33, 150, 24, true, 2)},
    {"queries that see no key", shapeOf(1, 1, 200, 50, 20, true)},
    // The first 128 keys are seen by queries 0 .. 160, one more than a tile's end.
    {"a window", shapeOf(1, 1, 200, 200, 16, true, 1, 0, 34)},
    {"keys that no query sees", shapeOf(1, 1, 30, 230, 16, false, 1, 0, 70)},
    {"no key", shapeOf(1, 1, 5, 0, 16, false)},
    {"documents", withDocuments(shapeOf(2, 2, 300, 300, 64, true, 2), 70)},
    {"short documents, wide heads", withDocuments(shapeOf(1, 1, 150, 150, 128, true), 9)},
    {"documents and a window", withDocuments(shapeOf(1, 1, 200, 200, 16, true, 1, 0, 34), 40)},
    {"dropout, grouped queries", withDropout(shapeOf(2, 2, 140, 140, 64, true, 2), 0.1)},
    {"dropout, wide heads, not causal", withDropout(shapeOf(1, 1, 70, 100, 128, false), 0.5)},
    {"dropout and documents",
     withDropout(withDocuments(shapeOf(1, 1, 200, 200, 80, true), 40), 0.3)},
    {"documents that see later keys", withDocuments(shapeOf(1, 1, 150, 150, 24, false), 40)},
    {"blocks of 16, grouped queries", withBlocks(16, shapeOf(1, 2, 240, 240, 64, true, 2))},
    {"blocks of 64, wide heads", withBlocks(64, shapeOf(1, 2, 320, 320, 128, true))},
    {"blocks of 128", withBlocks(128, shapeOf(1, 1, 512, 512, 64, true))},
    {"blocks of 1", withBlocks(1, shapeOf(1, 2, 150, 150, 24, true))},
    {"blocks of 24, not causal", withBlocks(24, shapeOf(1, 2, 264, 264, 80, false), false)},
    {"blocks and documents", withDocuments(withBlocks(16, shapeOf(1, 2, 208, 208, 16, true)), 70)},
    {"blocks and a window", withBlocks(10, shapeOf(1, 2, 200, 200, 16, true, 1, 0, 34))},
    {"random blocks of 20", withRandomBlocks(20, shapeOf(1, 2, 200, 200, 64, true))},
    {"random blocks of 32", withRandomBlocks(32, shapeOf(1, 2, 192, 192, 96, false, 2))},
};

template <typename T> class AttentionOnTensorCores : public testing::Test {};
TYPED_TEST_SUITE(AttentionOnTensorCores, NarrowTypes);

// First at addresses that are not aligned to packs.
TYPED_TEST(AttentionOnTensorCores, Forward) {
  for (const Case &c : kCases)
    checkForward<TypeParam>(c, By::Mma, 1);
}
TYPED_TEST(AttentionOnTensorCores, Backward) {
  for (const Case &c : kCases)
    checkBackward<TypeParam>(c, By::Mma, 1);
}

TYPED_TEST(AttentionOnTensorCores, TilesOfOtherDocumentsAreNotRead) {
  for (bool causal : {true, false})
    checkOthersAreNotRead<TypeParam>(By::Mma, 64, causal);
  for (bool causal : {true, false})
    checkOthersAreNotRead<TypeParam>(By::Mma, 128, causal);
}

TYPED_TEST(AttentionOnTensorCores, TilesOutsideOfWindowsAreNotRead) {
  checkOutsideOfWindowsIsNotRead<TypeParam>(By::Mma, 64);
  checkOutsideOfWindowsIsNotRead<TypeParam>(By::Mma, 128);
}

/// Heads in a packed projection, with q, k and v side by side, give the same bits as unpacked ones.
template <typename T> void checkPacked(int64_t dim) {
  SCOPED_TRACE(dim);
  AttentionShape a = shapeOf(2, 3, 37, 37, dim, true);
  Call<T> plain(a);
  plain.forward(By::Any);
  plain.backward(By::Any);
  int64_t width = plain.qWidth, rows = a.batch * a.sequence;
  Tensor<T> qkv(rows * 3 * width), dqkv(rows * 3 * width);
  auto copy = [&](int i, const Tensor<T> &from) {
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from.in() + row * width, width, qkv.data() + (3 * row + i) * width);
  };
  copy(0, plain.q);
  copy(1, plain.k);
  copy(2, plain.v);
  auto packed = [&](auto *data, int i) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data + i * width, a.sequence * 3 * width,
                                                          3 * width, dim};
  };
  Call<T> call(a);
  const T *in = qkv.in();
  SimulatedStream stream;
  attentionForward(stream, call.of(call.out.data(), a.sequence, width, dim), call.lse.data(),
                   packed(in, 0), packed(in, 1), packed(in, 2), a);
  EXPECT_BITS(call.out, plain.out.floats());
  attentionBackward(stream, packed(dqkv.data(), 0), packed(dqkv.data(), 1), packed(dqkv.data(), 2),
                    call.workspace.data(), call.of(call.dout.in(), a.sequence, width, dim),
                    call.of(call.out.in(), a.sequence, width, dim), call.lse.in(), packed(in, 0),
                    packed(in, 1), packed(in, 2), a);
  copy(0, plain.dq);
  copy(1, plain.dk);
  copy(2, plain.dv);
  EXPECT_BITS(dqkv, qkv.floats());
}

TYPED_TEST(AttentionOnTensorCores, PackedProjections) {
  checkPacked<TypeParam>(16);
  checkPacked<TypeParam>(64);
}

/// One warp computes c = a b^T + c for a [16, 16], b [16, 16], and d = a b.
template <typename T> __global__ void matmuls(float *c, float *d, const T *a, const T *b) {
  alignas(16) __shared__ T tiles[2][16][16];
  int lane = int(threadIdx.x);
  copyAsync(&tiles[0][lane / 2][lane % 2 * 8], a + lane * 8, 16);
  copyAsync(&tiles[1][lane / 2][lane % 2 * 8], b + lane * 8, 16);
  commitCopies();
  waitForCopies<0>();
  __syncwarp();
  uint32_t left[4], right[4], transposed[4];
  loadMatrices(left, &tiles[0][lane % 16][lane / 16 * 8]);
  loadMatrices(right, &tiles[1][lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
  loadTransposed(transposed, &tiles[1][lane % 16][lane / 16 * 8]);
  for (int half = 0; half < 2; ++half) {
    float byRows[4] = {1, 1, 1, 1}, plain[4] = {};
    multiplyAdd<T>(byRows, left, right[2 * half], right[2 * half + 1]);
    multiplyAdd<T>(plain, left, transposed[2 * half], transposed[2 * half + 1]);
    for (int i = 0; i < 4; ++i) {
      int at = (lane / 4 + i / 2 * 8) * 16 + half * 8 + lane % 4 * 2 + i % 2;
      c[at] = byRows[i];
      d[at] = plain[i];
    }
  }
}

/// Integers, because tensor cores have their own order of sums and roundings.
TYPED_TEST(AttentionOnTensorCores, FragmentsAreMatrices) {
  using T = TypeParam;
  Tensor<T> a(integers(256, "a")), b(integers(256, "b"));
  Floats af = a.floats(), bf = b.floats(), wantedC(256, 1.0f), wantedD(256, 0.0f);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      for (int k = 0; k < 16; ++k) {
        wantedC[size_t(i * 16 + j)] += af[size_t(i * 16 + k)] * bf[size_t(j * 16 + k)];
        wantedD[size_t(i * 16 + j)] += af[size_t(i * 16 + k)] * bf[size_t(k * 16 + j)];
      }
  inEveryOrder([&] {
    Tensor<float> c(256), d(256);
    SimulatedStream stream;
    PARTITA_RT_LAUNCH(matmuls<T>, 1, 32, 0, stream, c.data(), d.data(), a.in(), b.in());
    EXPECT_BITS(c, wantedC);
    EXPECT_BITS(d, wantedD);
  });
}

#if !defined(PARTITA_TEST_ON_GPU) // tests of the simulation itself
/// Reads a copy's result without waiting for it.
__global__ void forgottenWait(float *y, const float *x) {
  alignas(16) __shared__ float tile[4];
  tile[0] = 0.0f;
  copyAsync(tile, x, 16);
  commitCopies();
  *y = tile[0];
}

TEST(Simt, AForgottenWaitShows) {
  alignas(16) float x[4] = {1, 2, 3, 4}, y = -1;
  SimulatedStream stream;
  auto launch = [&] { PARTITA_RT_LAUNCH(forgottenWait, 1, 1, 0, stream, &y, x); };
  EXPECT_THROW(launch(), simt::LaunchError);
  EXPECT_EQ(y, 0.0f);
}
#endif

} // namespace
} // namespace partita_rt::cuda
