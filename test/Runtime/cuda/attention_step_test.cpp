// Attention whose keys come in parts against the CPU's, over the ranks of a ring; the bits must not depend on
// schedule.

#include "attention_ring.h"
#include "cuda/attention/attention_mma.cuh"
#include "simulated.h"

namespace partita_rt::cuda::attention_step { // tests are compiled together
namespace {

struct OnCpu {
  template <typename... Operands> void forward(Operands... operands) const {
    partita_rt::attentionStep(operands...);
  }
  template <typename... Operands> void backward(Operands... operands) const {
    partita_rt::attentionStepBackward(operands...);
  }
};
struct OnGpu {
  template <typename... Operands> void forward(Operands... operands) const {
    SimulatedStream stream;
    cuda::attentionStep(stream, operands...);
  }
  template <typename... Operands> void backward(Operands... operands) const {
    SimulatedStream stream;
    cuda::attentionStepBackward(stream, operands...);
  }
  template <typename... Operands> void whole(Operands... operands) const {
    SimulatedStream stream;
    cuda::attentionForward(stream, operands...);
  }
  template <typename... Operands> void wholeBackward(Operands... operands) const {
    SimulatedStream stream;
    cuda::attentionBackward(stream, operands...);
  }
};

constexpr auto kMembers = {&RingResults::out, &RingResults::logSumExp, &RingResults::dq,
                           &RingResults::dk,  &RingResults::dv,        &RingResults::dbias};

void expectClose(Floats actual, Floats wanted, double tolerance) {
  for (size_t i = 0; i < wanted.size(); ++i)
    if (std::isinf(wanted[i])) {
      EXPECT_EQ(actual[i], wanted[i]);
      actual[i] = wanted[i] = 0.0f;
    }
  actual.push_back(1.0f); // differences count beside 1 at least
  wanted.push_back(1.0f);
  EXPECT_CLOSE(actual, partita_rt::widen(wanted), tolerance);
}

void expectBits(const RingResults &actual, const RingResults &wanted) {
  for (auto member : kMembers)
    EXPECT_EQ(difference(actual.*member, wanted.*member), -1);
}

TEST(AttentionStep, IsTheCpus) {
  int number = 0;
  for (const RingCase &c : ringCases(3)) {
    RingOperands o(c.shape, c.bias);
    Dealt all[] = {{1, false}, {3, false}, {2, true}}; // two of them for each case
    for (int i = 0; i < 2; ++i) {
      Dealt dealt = all[number++ % 3];
      SCOPED_TRACE(std::string(c.what) + ", " + std::to_string(dealt.ranks) + " ranks, " +
                   std::to_string(dealt.runs()) + " runs");
      RingResults wanted = runRing<float>(o, dealt, OnCpu()),
                  actual = runRing<float>(o, dealt, OnGpu());
      for (auto member : kMembers)
        expectClose(actual.*member, wanted.*member, 1e-5);
    }
  }
}

TEST(AttentionStep, WhatFiniteMasksHideIsTheCpus) {
  int number = 0;
  for (const FiniteMask &c : finiteMasks(3)) {
    Dealt all[] = {{1, false}, {3, false}, {2, true}};
    Dealt dealt = all[number++ % 3];
    SCOPED_TRACE(std::string(c.what) + " by " + std::to_string(c.hidden) + ", " +
                 std::to_string(dealt.ranks) + " ranks");
    RingOperands o(c.shape, c.kind, c.hidden);
    RingResults wanted = runRing<float>(o, dealt, OnCpu()),
                actual = runRing<float>(o, dealt, OnGpu());
    for (
        auto member :
        kMembers) // a score that was summed in another order may round to the next number of -61440's
      expectClose(actual.*member, wanted.*member, c.hidden == -61440.0f ? 2e-3 : 1e-5);
  }
}

TEST(AttentionStep, HasTheSameBitsInEveryOrder) {
  RingCase cases[] = {{"bias", ringShape(1, 4, 48, 48, 8, true, 2), RingBias::Full},
                      {"window", withDropout(ringShape(1, 2, 48, 48, 20, true, 1, 12, 20), 0.2)},
                      {"layouts, bias, dropout",
                       withDropout(withRandomLayouts(ringShape(1, 2, 48, 48, 20, true), 2), 0.2),
                       RingBias::Rows}};
  for (const RingCase &c : cases) {
    SCOPED_TRACE(c.what);
    RingOperands o(c.shape, c.bias);
    RingResults wanted = runRing<float>(o, {2, true}, OnGpu());
    inEveryOrder([&] { expectBits(runRing<float>(o, {2, true}, OnGpu()), wanted); });
    RingResults narrow = runRing<BFloat16>(o, {2, true}, OnGpu());
    inEveryOrder([&] { expectBits(runRing<BFloat16>(o, {2, true}, OnGpu()), narrow); });
  }
}

template <typename T> class StepOnTensorCores : public testing::Test {};
TYPED_TEST_SUITE(StepOnTensorCores, NarrowTypes);

/// By kernels that multiply in T, up to what they round. allowance: besides this.
template <typename T>
void expectCpusUpToRounding(const RingOperands &o, Dealt dealt, bool floatBias = false,
                            double allowance = 0) {
  ASSERT_TRUE(onTensorCores<T>(o.a));
  const double rounding = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;
  RingResults wanted = runRing<T>(o, dealt, OnCpu(), floatBias),
              actual = runRing<T>(o, dealt, OnGpu(), floatBias);
  expectClose(actual.out, wanted.out, 2 * rounding + allowance);
  expectClose(actual.logSumExp, wanted.logSumExp, 1e-5 + allowance);
  for (auto member : {&RingResults::dq, &RingResults::dk, &RingResults::dv, &RingResults::dbias})
    expectClose(actual.*member, wanted.*member, 4 * rounding + allowance);
}

// Every probability is rounded once, and every gradient of a score.
TYPED_TEST(StepOnTensorCores, IsTheCpusUpToRounding) {
  using T = TypeParam;
  std::vector<RingCase> cases = ringCases(4); // dropout needs rows of multiples of four
  for (int64_t dim : {64, 72, 90, 128})       // wider tiles
    cases.push_back({"wide heads", ringShape(1, 2, 144, 144, dim, true, 2, dim - 4)});
  cases.push_back({"several tiles", ringShape(1, 1, 432, 432, 16, true)});
  cases.push_back({"several tiles in a window", ringShape(1, 1, 432, 432, 16, true, 1, 0, 150)});
  cases.push_back({"several tiles, bias", ringShape(1, 2, 432, 432, 16, true, 2), RingBias::Full});
  cases.push_back(
      {"layouts of large blocks", withRandomLayouts(ringShape(1, 2, 432, 432, 16, true), 18)});
  cases.push_back({"layouts, bias, dropout, wide heads",
                   withDropout(withRandomLayouts(ringShape(1, 2, 144, 144, 100, false), 6), 0.2),
                   RingBias::Full});
  int number = 0;
  for (const RingCase &c : cases) {
    if (c.shape.scale < 0.0f)
      continue; // by the portable kernels
    Dealt all[] = {{2, true}, {1, false}, {4, false}};
    Dealt dealt = all[number++ % 3];
    SCOPED_TRACE(std::string(c.what) + ", " + std::to_string(dealt.ranks) + " ranks, " +
                 std::to_string(dealt.runs()) + " runs");
    expectCpusUpToRounding<T>(RingOperands(c.shape, c.bias), dealt);
  }
}

// The masks' numbers are floats: the lowest one is none of T's.
TYPED_TEST(StepOnTensorCores, WhatFiniteMasksHideIsTheCpus) {
  int number = 0;
  for (const FiniteMask &c : finiteMasks(4)) {
    Dealt all[] = {{2, true}, {1, false}, {4, false}};
    Dealt dealt = all[number++ % 3];
    SCOPED_TRACE(std::string(c.what) + " by " + std::to_string(c.hidden) + ", " +
                 std::to_string(dealt.ranks) + " ranks");
    expectCpusUpToRounding<TypeParam>(RingOperands(c.shape, c.kind, c.hidden), dealt,
                                      /*floatBias=*/true, c.hidden == -61440.0f ? 2e-3 : 0.0);
  }
}

TEST(AttentionStep, WithAllKeysHasTheBitsOfOneAttention) {
  int number = 0;
  for (const RingCase &c : ringCases(2)) {
    expectBitsOfOneAttention<BFloat16>(c, OnGpu());
    if (number++ % 2)
      expectBitsOfOneAttention<float>(c, OnGpu());
  }
}

// Queries that have seen nothing when the last step ends.
template <typename T> void expectNotANumberOrZero() {
  AttentionShape a = ringShape(1, 1, 24, 24, 4, false);
  for (bool zero : {false, true}) {
    a.zeroHidden = zero;
    RingOperands o(a, RingBias::Rows);
    RingResults wanted = runRing<T>(o, {3, true}, OnCpu()),
                actual = runRing<T>(o, {3, true}, OnGpu());
    for (size_t i = 0; i < wanted.out.size(); ++i) {
      EXPECT_EQ(std::isnan(actual.out[i]), std::isnan(wanted.out[i])) << i;
      EXPECT_EQ(actual.out[i] == 0.0f, wanted.out[i] == 0.0f) << i;
    }
  }
}
TEST(AttentionStep, QueriesThatSeeNothingAreNotANumberOrZero) {
  expectNotANumberOrZero<float>();
  expectNotANumberOrZero<BFloat16>();
}

} // namespace
} // namespace partita_rt::cuda::attention_step
