// Attention with wgmma, on simulated warp groups, against sums in double, within the roundings that
// it makes; the bits must not depend on the schedule; supported calls; and the simulation's reports
// of matmuls and bulk copies that are not waited for or not fenced.

#include "attention_calls.h"
#include "cuda/attention/attention_wgmma.cuh"

namespace partita_rt::cuda {
namespace {

const Case kCases[] = {
    {"one key", shapeOf(1, 1, 1, 1, 64, true)},
    {"odd sequence", shapeOf(2, 1, 65, 65, 64, true)},
    {"several tiles, grouped queries", shapeOf(1, 2, 150, 150, 64, true, 2)},
    {"not causal, more keys than queries", shapeOf(1, 1, 70, 267, 64, false)},
    {"causal, more keys than queries", shapeOf(1, 1, 33, 150, 64, true)},
    {"queries that see no key", shapeOf(1, 1, 135, 50, 64, true)},
    {"a window", shapeOf(1, 1, 270, 270, 64, true, 1, 0, 34)},
    {"keys that no query sees", shapeOf(1, 1, 30, 330, 64, false, 1, 0, 70)},
    {"no key", shapeOf(1, 1, 5, 0, 64, false)},
    {"heads of 128, grouped queries", shapeOf(1, 2, 70, 70, 128, true, 2)},
    {"heads of 128, queries that see no key", shapeOf(1, 1, 140, 10, 128, true)},
    {"heads of 128, a window", shapeOf(1, 1, 140, 140, 128, true, 1, 0, 34)},
    {"documents", withDocuments(shapeOf(2, 2, 300, 300, 64, true, 2), 70)},
    {"heads of 128, documents", withDocuments(shapeOf(1, 1, 290, 290, 128, true), 60)},
    {"documents and a window", withDocuments(shapeOf(1, 1, 200, 200, 64, true, 1, 0, 34), 40)},
    {"dropout, grouped queries", withDropout(shapeOf(2, 2, 140, 140, 64, true, 2), 0.1)},
    {"heads of 128, dropout, not causal", withDropout(shapeOf(1, 1, 70, 156, 128, false), 0.5)},
    {"nine heads, keys that no query sees", shapeOf(3, 3, 70, 400, 64, true, 1, 0, 100)},
    {"dropout and documents",
     withDropout(withDocuments(shapeOf(1, 1, 200, 200, 64, true), 40), 0.3)},
};

bool onThisDevice() {
  Call<Half> call(shapeOf(1, 1, 1, 1, 64, true));
  return call.forward(By::Wgmma);
}

template <typename T> class AttentionByWarpGroups : public testing::Test {
  void SetUp() override {
    if (!onThisDevice())
      GTEST_SKIP() << "no compute capability 9, or no code for it";
  }
  void TearDown() override { simt::setBlocksAtOnce(1); }
};
TYPED_TEST_SUITE(AttentionByWarpGroups, NarrowTypes);

TYPED_TEST(AttentionByWarpGroups, Forward) {
  for (const Case &c : kCases)
    checkForward<TypeParam>(c, By::Wgmma, 0);
}
TYPED_TEST(AttentionByWarpGroups, Backward) {
  for (const Case &c : kCases)
    checkBackward<TypeParam>(c, By::Wgmma, 0);
}

TYPED_TEST(AttentionByWarpGroups, BackwardByHeads) {
  for (const Case &c : kCases)
    if (c.shape.keySequence > 0)
      checkBackward<TypeParam>(c, By::Heads, 0);
}
TYPED_TEST(AttentionByWarpGroups, BackwardByTurns) {
  for (const Case &c : kCases)
    if (c.shape.keySequence > 0)
      checkBackward<TypeParam>(c, By::Turns, 0);
}

/// On the simulated GPU, the five blocks of other tests run one after another: here they wait for each other.
TYPED_TEST(AttentionByWarpGroups, TurnsOfBlocksThatRunAtOnce) {
  if (std::is_same_v<TypeParam, Half>)
    return;
  simt::setBlocksAtOnce(5);
  for (Case c : {Case{"many tiles", shapeOf(1, 3, 520, 520, 64, true)},
                 {"slots that other heads have had", shapeOf(1, 9, 200, 200, 64, true)},
                 {"keys that no query sees", shapeOf(1, 3, 300, 1300, 64, true, 1, 0, 300)},
                 {"grouped queries, not causal", shapeOf(1, 6, 200, 400, 64, false, 2)},
                 {"heads of 128, a window", shapeOf(1, 3, 420, 420, 128, true, 1, 0, 150)},
                 {"documents", withDocuments(shapeOf(1, 4, 500, 500, 64, true, 2), 210)}})
    checkBackward<TypeParam>(c, By::Turns, 0);
  simt::setBlocksAtOnce(1);
}

/// Expects that attentionForward and attentionBackward choose these kernels.
template <typename T> void expectBy(By by, const AttentionShape &shape, int64_t offset) {
  SCOPED_TRACE(shape.headDim);
  Call<T> any(shape, offset), wanted(shape, offset), byGroups(shape, offset);
  bool groups = isByGroups(by);
  EXPECT_EQ(byGroups.forward(By::Wgmma), groups);
  any.forward(By::Any);
  wanted.forward(by);
  EXPECT_BITS(any.out, wanted.out.floats());
  std::copy_n(wanted.out.in(), wanted.out.values().size(), byGroups.out.data());
  std::copy_n(wanted.lse.in(), wanted.lse.values().size(), byGroups.lse.data());
  EXPECT_EQ(byGroups.backward(By::Wgmma), groups);
  any.backward(By::Any);
  wanted.backward(by);
  EXPECT_BITS(any.dq, wanted.dq.floats());
  EXPECT_BITS(any.dk, wanted.dk.floats());
  EXPECT_BITS(any.dv, wanted.dv.floats());
  EXPECT_BITS(any.dqSums, wanted.dqSums.floats());
  EXPECT_BITS(any.dkSums, wanted.dkSums.floats());
  EXPECT_BITS(any.dvSums, wanted.dvSums.floats());
  EXPECT_TRUE(any.workspace.marginsKept());
}

int64_t blocksOf(int64_t batch, int64_t heads, int64_t sequence, int64_t dim, int64_t groups = 1) {
  return attentionHeadBlocks(
      attentionWork(shapeOf(batch, heads, sequence, sequence, dim, true, groups), DType::BFloat16));
}

TYPED_TEST(AttentionByWarpGroups, ByHeadsWhereTheyFillTheGpu) {
  using T = TypeParam;
  EXPECT_EQ(blocksOf(32, 12, 1024, 64), 132); // GPT-2 124M
  EXPECT_EQ(blocksOf(10, 12, 1024, 64), 120);
  EXPECT_EQ(blocksOf(8, 12, 1024, 64), 0);  // 36 multiprocessors would idle
  EXPECT_EQ(blocksOf(16, 25, 1024, 64), 0); // three rounds and four heads
  EXPECT_EQ(blocksOf(32, 12, 2048, 64), 0); // 69 MB of sums
  EXPECT_EQ(blocksOf(32, 12, 512, 128), 132);
  EXPECT_EQ(blocksOf(32, 16, 256, 64, 4), 128);
  AttentionShape many = shapeOf(11, 12, 20, 20, 64, true), narrow = many;
  EXPECT_EQ(attentionHeadBlocks(attentionWork(many, DType::Float32)), 0);
  narrow.valueDim = 32;
  EXPECT_EQ(attentionHeadBlocks(attentionWork(narrow, DType::BFloat16)), 0);
  auto slotsOf = [](const AttentionShape &shape) {
    return attentionTurnSlots(attentionWork(shape, DType::BFloat16));
  };
  EXPECT_EQ(slotsOf(shapeOf(8, 12, 1024, 1024, 64, true)), 96);    // all heads: 25 MB
  EXPECT_EQ(slotsOf(shapeOf(8, 32, 4096, 4096, 64, true, 4)), 10); // LLaMA 1B: 42 MB
  EXPECT_EQ(slotsOf(shapeOf(2, 32, 8192, 8192, 128, true, 4)), 5); // 8B: two would be cached
  EXPECT_EQ(slotsOf(shapeOf(1, 32, 65536, 65536, 128, true, 4)), 1);
  EXPECT_EQ(slotsOf(shapeOf(1, 12, 1024, 1024, 64, true)), 0); // 96 tiles of keys
  if (std::is_same_v<T, Half>)
    return;
  expectBy<T>(By::Heads, many, 0);
  expectBy<T>(By::Turns, shapeOf(4, 34, 20, 130, 64, true),
              0); // two tiles of keys for each of 136 heads
  setenv("PARTITA_RT_ATTENTION", "tiles", 1);
  expectBy<T>(By::Wgmma, many, 0);
  unsetenv("PARTITA_RT_ATTENTION");
}

TYPED_TEST(AttentionByWarpGroups, TilesOfOtherDocumentsAreNotRead) {
  for (By by : {By::Wgmma, By::Heads, By::Turns})
    for (int64_t dim : {64, 128})
      for (bool causal : {true, false})
        checkOthersAreNotRead<TypeParam>(by, dim, causal);
}

TYPED_TEST(AttentionByWarpGroups, TilesOutsideOfWindowsAreNotRead) {
  for (By by : {By::Wgmma, By::Heads, By::Turns})
    for (int64_t dim : {64, 128})
      checkOutsideOfWindowsIsNotRead<TypeParam>(by, dim);
}

TYPED_TEST(AttentionByWarpGroups, TakesAlignedHeadsOf64And128) {
  using T = TypeParam;
  expectBy<T>(By::Wgmma, shapeOf(1, 2, 70, 70, 64, true), 0);
  expectBy<T>(By::Wgmma, shapeOf(1, 1, 20, 30, 128, false), 0);
  expectBy<T>(By::Mma, shapeOf(1, 2, 70, 70, 64, true), 4);
  expectBy<T>(By::Mma, shapeOf(1, 1, 70, 70, 80, true), 0);
  expectBy<T>(By::Mma, shapeOf(1, 1, 20, 30, 128, false, 1, 64), 0);
  expectBy<T>(By::Wgmma, withDropout(shapeOf(1, 1, 70, 72, 64, false), 0.1), 0);
  expectBy<T>(By::Mma, withDropout(shapeOf(1, 1, 70, 72, 16, false), 0.1), 0);
  LayoutMaker maker(16, 5); // layouts are not for these kernels
  maker.add(true, {{BlockTermKind::Band, -1, 0}});
  expectBy<T>(By::Mma, maker.of(shapeOf(1, 1, 80, 80, 64, true)), 0);
}

#if !defined(PARTITA_TEST_ON_GPU) // tests of the simulation itself

enum class Mistake {
  None,
  NoWait,
  NoBarrierFence,
  TooManyBytes,
  NoGroup,
  NoMatmulsWait,
  NoFence,
  NoBegin,
  Overwritten,
  CopiedOverStores
};

struct TwoMaps {
  CUtensorMap a, b;
};

/// One warp group computes c [64, 64] = a b^T + a b, of tiles [64, 64]; from registers if `held`, and with a
/// stored as its transpose if `turned`.
template <typename T>
__global__ void matmuls(float *c, const __grid_constant__ TwoMaps maps, bool held, bool turned,
                        Mistake mistake) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ uint64_t barriers[Arrivals::kBuffers];
  T *left = tilesIn<T>(dynamic), *right = left + 64 * 64;
  int row = int(threadIdx.x) / kWarp * 16, lane = int(threadIdx.x) % kWarp;
  uint64_t *barrier = barriers;
  if (mistake == Mistake::NoBarrierFence) {
    if (threadIdx.x == 0)
      makeBarrier(barrier);
  } else {
    Arrivals made(barriers);
  }
  if (threadIdx.x == 0) {
    announceBytes(barrier, 2 * 64 * 64 * 2 + (mistake == Mistake::TooManyBytes ? 16 : 0));
    copyTile<64, 64>(left, maps.a, 0, 0, 0, barrier);
    copyTile<64, 64>(right, maps.b, 0, 0, 0, barrier);
  }
  __syncthreads();
  if (mistake != Mistake::NoWait)
    waitForPhase(barrier, 0);
  uint32_t registers[4][4];
  for (int k = 0; k < 4; ++k)
    loadMatrices(registers[k], left + offsetOf<64>(row + lane % 16, 2 * k + lane / 16));
  __syncthreads();
  if (turned) { // matrix i of A, transposed, is matrix i of its transpose in other places
    for (int k = 0; k < 4; ++k) {
      uint32_t columns[4];
      loadTransposed(columns, left + offsetOf<64>(row + lane % 16, 2 * k + lane / 16));
      __syncthreads();
      storeMatrices(left + 64 * 64 * 2 +
                        offsetOf<64>(16 * k + lane / 16 * 8 + lane % 8, row / 8 + lane / 8 % 2),
                    columns);
    }
    if (mistake != Mistake::NoFence)
      fenceForMatmuls();
    __syncthreads();
  }
  if (mistake == Mistake::CopiedOverStores && threadIdx.x == 0) {
    announceBytes(barrier, 64 * 64 * 2);
    copyTile<64, 64>(left + 64 * 64 * 2, maps.a, 0, 0, 0, barrier);
  }
  float sums[8][4];
  uint32_t at = sharedAddress(right);
  if (mistake != Mistake::NoBegin)
    beginMatmuls();
  if (held)
    for (int k = 0; k < 4; ++k)
      multiplyGroup<T, false>(sums, registers[k], behind(operandAt(at), 32 * k), k > 0);
  else if (turned)
    for (int k = 0; k < 4; ++k)
      multiplyGroup<T, false, true>(sums,
                                    behind(operandAt(sharedAddress(left + 64 * 64 * 2)), 2048 * k),
                                    behind(operandAt(at), 32 * k), k > 0);
  else
    matmulByRows<T, 64, 64>(sums, sharedAddress(left), at);
  addMatmul<T, 64>(sums, registers, at);
  if (mistake != Mistake::NoGroup)
    commitMatmuls();
  if (mistake == Mistake::Overwritten)
    right[offsetOf<64>(int(threadIdx.x) / 2, 0)] = T(9.0f);
  if (mistake != Mistake::NoMatmulsWait)
    waitForMatmuls<0>();
  for (int j = 0; j < 8; ++j)
    for (int e = 0; e < 4; ++e)
      c[(row + lane / 4 + e / 2 * 8) * 64 + 8 * j + lane % 4 * 2 + e % 2] = sums[j][e];
}

template <typename T> struct Matmuls {
  Tensor<T> a{integers(4096, "a")}, b{integers(4096, "b")};
  Tensor<float> c{4096};
  void run(bool held, bool turned, Mistake mistake) {
    SimulatedStream stream;
    auto map = [](const T *data) {
      return tileMap(HeadsOf<const T>{data, 4096, 64, 64}, 64, {64, 1, 1});
    };
    PARTITA_RT_LAUNCH(matmuls<T>, 1, 128, 3 * 64 * 64 * 2 + kBlockBytes, stream, c.data(),
                      (TwoMaps{map(a.in()), map(b.in())}), held, turned, mistake);
  }
  Floats wanted() const {
    Floats sums(4096), af = a.floats(), bf = b.floats();
    for (size_t i = 0; i < 64; ++i)
      for (size_t j = 0; j < 64; ++j)
        for (size_t k = 0; k < 64; ++k)
          sums[i * 64 + j] += af[i * 64 + k] * (bf[j * 64 + k] + bf[k * 64 + j]);
    return sums;
  }
};

TYPED_TEST(AttentionByWarpGroups, FragmentsAreMatrices) {
  Matmuls<TypeParam> matmuls;
  Floats wanted = matmuls.wanted();
  inEveryOrder([&] {
    for (auto [held, turned] : {std::pair(false, false), {true, false}, {false, true}}) {
      matmuls.run(held, turned, Mistake::None);
      EXPECT_BITS(matmuls.c, wanted);
    }
  });
}

/// Returns the error; empty if the result is right.
std::string said(Mistake mistake, simt::Order order) {
  Matmuls<BFloat16> matmuls;
  simt::setOrder(order);
  std::string what;
  try {
    matmuls.run(false, /*turned=*/mistake >= Mistake::NoFence, mistake);
    if (difference(matmuls.c.values(), matmuls.wanted()) != -1)
      what = "wrong";
  } catch (const simt::LaunchError &error) {
    what = error.what();
  }
  simt::setOrder(simt::Order::Forward);
  return what;
}

TEST(Simt, MistakesWithWarpGroupsShow) {
  auto has = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << "wanted: " << part << "; is: " << text;
  };
  EXPECT_EQ(said(Mistake::None, simt::Order::Forward), "");
  has(said(Mistake::NoWait, simt::Order::Forward), "nobody has waited for its bulk copies");
  has(said(Mistake::NoBarrierFence, simt::Order::Forward), "without fence.mbarrier_init");
  has(said(Mistake::TooManyBytes, simt::Order::Forward), "wait at mbarrier.try_wait");
  has(said(Mistake::NoFence, simt::Order::Forward), "wgmma of what a thread has");
  has(said(Mistake::CopiedOverStores, simt::Order::Reverse), "wrong");
  has(said(Mistake::NoBegin, simt::Order::Forward), "without wgmma.fence");
  has(said(Mistake::NoGroup, simt::Order::Forward), "has not waited for its wgmma");
  has(said(Mistake::NoMatmulsWait, simt::Order::Forward), "has not waited for its wgmma");
  has(said(Mistake::Overwritten, simt::Order::Forward), "wrong");
}
#endif

} // namespace
} // namespace partita_rt::cuda
