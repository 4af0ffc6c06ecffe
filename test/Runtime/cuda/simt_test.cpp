// The simulated GPU itself: CUDA's rules hold, and mistakes of kernels are detected.

#include "simt/simt.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

constexpr simt::Order kOrders[] = {simt::Order::Forward, simt::Order::Reverse, simt::Order::Random};

class Simt : public testing::TestWithParam<simt::Order> {
protected:
  void SetUp() override { simt::setOrder(GetParam(), 7); }
  void TearDown() override { simt::setOrder(simt::Order::Forward); }
};
INSTANTIATE_TEST_SUITE_P(Orders, Simt, testing::ValuesIn(kOrders));

template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const simt::LaunchError &error) {
    return error.what();
  }
  return "";
}

__global__ void number(int *seen, int width, int height) {
  int x = int(blockIdx.x * blockDim.x + threadIdx.x),
      y = int(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < width && y < height)
    seen[y * width + x] += 1 + int(blockIdx.z);
}

TEST_P(Simt, RunsEveryThreadOnce) {
  std::vector<int> seen(70 * 9, 0);
  simt::Counters before = simt::counters();
  simt::launch({"number", dim3(3, 5, 2), dim3(25, 2), 0}, number, seen.data(), 70, 9);
  EXPECT_EQ(seen, std::vector<int>(70 * 9, 3));
  EXPECT_EQ(simt::counters().blocks - before.blocks, 30);
  EXPECT_EQ(simt::counters().threads - before.threads, 1500);
}

/// Blocks take turns in the order of their numbers: all but the last one wait for the next.
__global__ void countDown(int *turn) {
  if (threadIdx.x == 0) {
    int own = int(gridDim.x) - 1 - int(blockIdx.x);
    simt::waitForOtherBlock([&] { return __atomic_load_n(turn, __ATOMIC_ACQUIRE) == own; });
    __atomic_store_n(turn, own + 1, __ATOMIC_RELEASE);
  }
  __syncthreads();
}

TEST(SimtBlocks, ThatRunAtOnceWaitForEachOther) {
  simt::Launch launch{"countDown", 4, 64, 0};
  int turn = 0;
  simt::setBlocksAtOnce(4);
  simt::launch(launch, countDown, &turn);
  EXPECT_EQ(turn, 4);
  simt::setBlocksAtOnce(1);
  EXPECT_EQ(errorOf([&] { simt::launch(launch, countDown, &(turn = 0)); }),
            "countDown: deadlock: a block waits for what no earlier one has done");
  EXPECT_EQ(turn, 0);
}

__global__ void shuffles(int *out) {
  int lane = int(threadIdx.x);
  out[lane] = __shfl_xor_sync(0xffffffffu, lane, 3);
  out[32 + lane] = __shfl_down_sync(0xffffffffu, lane, 5);
  out[64 + lane] = __shfl_up_sync(0xffffffffu, lane, 5);
  out[96 + lane] = __shfl_sync(0xffffffffu, lane, 9);
  out[128 + lane] = int(__ballot_sync(0xffffffffu, lane % 3 == 0));
  out[160 + lane] = __any_sync(0xffffffffu, lane == 7) + 2 * __all_sync(0xffffffffu, lane < 31);
  if (lane < 16) // half a warp, an odd number of times, beside the other half
    out[192 + lane] = __shfl_xor_sync(0x0000ffffu, lane, 1);
  out[192 + lane] += __shfl_xor_sync(0xffffffffu, 100 * lane, 16);
}

TEST_P(Simt, Shuffles) {
  std::vector<int> out(224, 0);
  simt::launch({"shuffles", 1, 32, 0}, shuffles, out.data());
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane ^ 3);
    EXPECT_EQ(out[32 + lane], lane + 5 < 32 ? lane + 5 : lane);
    EXPECT_EQ(out[64 + lane], lane >= 5 ? lane - 5 : lane);
    EXPECT_EQ(out[96 + lane], 9);
    EXPECT_EQ(unsigned(out[128 + lane]), 0x49249249u);
    EXPECT_EQ(out[160 + lane], 1);
    EXPECT_EQ(out[192 + lane], (lane < 16 ? lane ^ 1 : 0) + 100 * (lane ^ 16));
  }
}

/// Sums each block with a tree in shared memory. forget: leaves out the barrier between two levels.
__global__ void treeSum(float *sums, const float *x, bool forget) {
  __shared__ float space[256];
  unsigned i = threadIdx.x;
  space[i] = x[blockIdx.x * blockDim.x + i];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (i < half)
      space[i] += space[i + half];
    if (!forget)
      __syncthreads();
  }
  if (i == 0)
    sums[blockIdx.x] = space[0];
}

std::vector<float> sumsOf(bool forget) {
  std::vector<float> x(1024), sums(4);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 17);
  simt::launch({"treeSum", 4, 256, 0}, treeSum, sums.data(), x.data(), forget);
  for (size_t i = 0; i < x.size(); ++i)
    sums[i / 256] -= float(i % 17);
  return sums;
}

TEST_P(Simt, Barriers) { EXPECT_EQ(sumsOf(false), std::vector<float>(4, 0.0f)); }

TEST(SimtMistakes, AForgottenBarrierShows) { // the first warp ends before the others have added
  simt::setOrder(simt::Order::Forward);
  for (float error : sumsOf(true))
    EXPECT_NE(error, 0.0f);
}

__global__ void warpSum(float *sum, bool forget) {
  __shared__ float space[32];
  space[threadIdx.x] = 1.0f;
  if (!forget)
    __syncwarp();
  if (threadIdx.x == 0)
    for (float each : space)
      *sum += each;
  if (threadIdx.x == 0 && !forget)
    for (float &each : space)
      each = 0.0f;
}

TEST(SimtMistakes, AForgottenWarpBarrierShows) { // the lanes of a warp are not in lockstep either
  float sum = 0.0f;
  simt::launch({"warpSum", 1, 32, 0}, warpSum, &sum, false);
  EXPECT_EQ(sum, 32.0f);
  sum = 0.0f;
  simt::launch({"warpSum", 1, 32, 0}, warpSum, &sum, true);
  EXPECT_NE(sum, 32.0f);
}

__global__ void divergent(int kind) {
  if (kind == 0 && threadIdx.x < 40)
    __syncthreads();
  if (kind == 1) {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __shfl_xor_sync(0xffffffffu, 1.0f, threadIdx.x == 63 ? 1 : 2);
    if (threadIdx.x == 63)
      return;
    __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  }
  if (kind == 2) {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  }
  if (kind == 3)
    __shfl_sync(0x0000ffffu, 1, 3);
  if (kind == 4 && threadIdx.x < 16)
    __shfl_xor_sync(0x0000ffffu, 1, 16);
}

TEST_P(Simt, DivergentBarriersAreReported) {
  auto error = [](int kind) {
    return errorOf([&] { simt::launch({"divergent", 1, 64, 0}, divergent, kind); });
  };
  EXPECT_NE(error(0).find("divergent: block (0, 0, 0): divergent barrier: 40 of 40 live threads "
                          "wait at __syncthreads (simt_test.cpp:"),
            std::string::npos)
      << error(0);
  EXPECT_NE(error(0).find("24 have returned"), std::string::npos);
  EXPECT_NE(error(1).find("divergent: block (0, 0, 0): deadlock: "), std::string::npos) << error(1);
  EXPECT_NE(error(1).find(" of 63 live threads wait at __s"), std::string::npos) << error(1);
  EXPECT_NE(error(2).find("threads wait at different barriers: 32 of 64 live threads"),
            std::string::npos)
      << error(2);
  EXPECT_NE(error(3).find("by a lane that its mask does not have"), std::string::npos) << error(3);
  EXPECT_NE(error(4).find(", which its mask does not have"), std::string::npos) << error(4);
  EXPECT_EQ(error(5), "");
}

TEST(SimtMistakes, LaunchesThatCudaRefuses) {
  auto error = [](dim3 grid, dim3 block, size_t shared) {
    return errorOf([&] { simt::launch({"divergent", grid, block, shared}, divergent, 5); });
  };
  EXPECT_EQ(error(0, 32, 0), "divergent: a grid of (0, 1, 1) blocks");
  EXPECT_EQ(error(dim3(1, 65536), 32, 0), "divergent: a grid of (1, 65536, 1) blocks");
  EXPECT_EQ(error(1, dim3(32, 33), 0), "divergent: blocks of (32, 33, 1) threads");
  EXPECT_EQ(error(1, 32, 300000), "divergent: 300000 bytes of shared memory");
}

} // namespace
