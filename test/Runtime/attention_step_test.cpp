// Attention whose keys come in parts, over the ranks of a ring: equal to one attention with all keys, for every
// mask, in one run or two mirrored ones per rank.

#include "attention_ring.h"

namespace partita_rt::attention_step { // tests are compiled together
namespace {

struct Steps {
  template <typename... Operands> void forward(Operands... operands) const {
    attentionStep(operands...);
  }
  template <typename... Operands> void backward(Operands... operands) const {
    attentionStepBackward(operands...);
  }
  template <typename... Operands> void whole(Operands... operands) const {
    attentionForward(operands...);
  }
  template <typename... Operands> void wholeBackward(Operands... operands) const {
    attentionBackward(operands...);
  }
};

void expectClose(Floats actual, Doubles wanted, double tolerance, const char *what) {
  actual.push_back(1.0f); // differences count beside 1 at least
  wanted.push_back(1.0);
  ASSERT_EQ(actual.size(), wanted.size());
  EXPECT_LE(relativeError(actual, wanted), tolerance) << what;
}

void expectLogSums(const Floats &actual, const Doubles &wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isinf(wanted[i]))
      ASSERT_EQ(actual[i], -INFINITY) << i;
    else
      ASSERT_NEAR(actual[i], wanted[i], 1e-5 * (1 + std::fabs(wanted[i]))) << i;
  }
}

void checkAgainstDouble(const RingCase &c, std::initializer_list<Dealt> all) {
  RingOperands o(c.shape, c.bias);
  RingReference wanted(o);
  Whole<float> whole(o, Steps());
  for (Dealt dealt : all) {
    SCOPED_TRACE(std::string(c.what) + ", " + std::to_string(dealt.ranks) + " ranks, " +
                 std::to_string(dealt.runs()) + " runs");
    RingResults actual = runRing<float>(o, dealt, Steps());
    expectClose(actual.out, wanted.out, 3e-6, "out");
    expectLogSums(actual.logSumExp, wanted.logSumExp);
    expectClose(actual.dq, wanted.dq, 1e-5, "dq");
    expectClose(actual.dk, wanted.dk, 1e-5, "dk");
    expectClose(actual.dv, wanted.dv, 1e-5, "dv");
    expectClose(actual.dbias, wanted.dbias, 1e-5, "dbias");
    expectClose(actual.out, widen(whole.out), 1e-6, "out beside one attention");
    // Gradients repeat the rounding of logSumExp, and have other sums.
    expectClose(actual.dq, widen(whole.dq), 3e-6, "dq beside one attention");
    expectClose(actual.dk, widen(whole.dk), 3e-6, "dk beside one attention");
    expectClose(actual.dv, widen(whole.dv), 3e-6, "dv beside one attention");
  }
}

TEST(AttentionStep, OfARingEqualsOneAttention) {
  for (const RingCase &c : ringCases(2))
    checkAgainstDouble(c, {{1, false},
                           {2, false},
                           {3, false},
                           {4, false},
                           {1, true},
                           {2, true},
                           {3, true},
                           {4, true}});
}

// Several tiles of queries, and several blocks of keys, per run.
TEST(AttentionStep, OfLongSequencesEqualsOneAttention) {
  Dealt all[] = {{1, true}, {2, false}, {3, true}};
  int number = 0;
  for (const RingCase &c : ringCases(25))
    checkAgainstDouble(c, {all[number++ % 3]});
}

TEST(AttentionStep, WhatFiniteMasksHideIsOneAttentions) {
  for (int64_t unit : {2, 11})
    for (const FiniteMask &c : finiteMasks(unit))
      for (Dealt dealt : {Dealt{2, false}, Dealt{4, false}, Dealt{3, true}, Dealt{4, true}}) {
        SCOPED_TRACE(std::string(c.what) + " by " + std::to_string(c.hidden) + ", " +
                     std::to_string(dealt.ranks) + " ranks");
        RingOperands o(c.shape, c.kind, c.hidden);
        Whole<float> whole(o, Steps());
        RingResults actual = runRing<float>(o, dealt, Steps());
        expectClose(actual.out, widen(whole.out), 1e-6, "out");
        expectClose(actual.logSumExp, widen(whole.logSumExp), 1e-6, "logSumExp");
        expectClose(actual.dq, widen(whole.dq), 3e-6, "dq");
        expectClose(actual.dk, widen(whole.dk), 3e-6, "dk");
        expectClose(actual.dv, widen(whole.dv), 3e-6, "dv");
        expectClose(actual.dbias, widen(whole.dbias), 3e-6, "dbias");
        if (c.hidden > -1e30f)
          continue; // in double, more of the scores is left
        RingReference wanted(o);
        expectClose(actual.out, wanted.out, 3e-6, "out beside double");
        expectClose(actual.dq, wanted.dq, 1e-5, "dq beside double");
        expectClose(actual.dk, wanted.dk, 1e-5, "dk beside double");
        expectClose(actual.dv, wanted.dv, 1e-5, "dv beside double");
        expectClose(actual.dbias, wanted.dbias, 1e-5, "dbias beside double");
      }
}

// The gradients of one attention are computed from its probabilities, which add up to one however low the mask's number is.
TEST(Attention, BackwardHasTheProbabilitiesThatFiniteMasksLeave) {
  for (FiniteMask c : finiteMasks(3)) {
    SCOPED_TRACE(std::string(c.what) + " by " + std::to_string(c.hidden));
    if (c.shape.dropout.ratio > 0.0 || c.shape.blocks)
      continue; // random layouts have queries without any key
    RingOperands o(c.shape, c.kind, c.hidden);
    std::fill(o.dout.begin(), o.dout.end(),
              1.0f); // then each of dv's columns adds up to the queries
    Whole<float> whole(o, Steps());
    double sum = 0;
    for (size_t i = 0; i < whole.dv.size(); i += size_t(c.shape.valueDim))
      sum += whole.dv[i];
    EXPECT_NEAR(sum, double(o.nq), 1e-5 * double(o.nq));
  }
}

TEST(AttentionStep, WithAllKeysHasTheBitsOfOneAttention) {
  for (RingCase c : ringCases(15)) {
    expectBitsOfOneAttention<float>(c, Steps());
    expectBitsOfOneAttention<BFloat16>(c, Steps());
    expectBitsOfOneAttention<Half>(c, Steps());
    c.shape.zeroHidden = false;
    expectBitsOfOneAttention<float>(c, Steps());
  }
}

/// A 16-bit kernel is the float one, on the same numbers. The 16-bit backward pass reads a rounded out: so does
/// the float one here.
template <typename T> struct RoundedSteps : Steps {
  void backward(Heads dq, Heads dk, Heads dv, float *workspace, ConstHeads dout, ConstHeads out,
                const float *logSumExp, ConstHeads q, ConstHeads k, ConstHeads v,
                const AttentionShape &a, ConstScores bias, Scores dbias, bool continues) const {
    Floats read(out.data, out.data + a.batch * out.batchStride);
    read = widened(rounded<T>(read));
    out.data = read.data();
    attentionStepBackward(dq, dk, dv, workspace, dout, out, logSumExp, q, k, v, a, bias, dbias,
                          continues);
  }
};

template <typename T> class NarrowStep : public testing::Test {};
TYPED_TEST_SUITE(NarrowStep, NarrowTypes);

TYPED_TEST(NarrowStep, IsTheFloatStepOnTheSameNumbers) {
  for (const RingCase &c : ringCases(6))
    for (Dealt dealt : {Dealt{3, false}, Dealt{2, true}}) {
      SCOPED_TRACE(c.what);
      RingOperands o(c.shape, c.bias);
      RingResults narrow = runRing<TypeParam>(o, dealt, Steps()),
                  wide = runRing<TypeParam>(o, dealt, Steps(), /*floatBias=*/true),
                  wanted = runRing<float>(o, dealt, RoundedSteps<TypeParam>());
      for (auto member : {&RingResults::out, &RingResults::logSumExp, &RingResults::dq,
                          &RingResults::dk, &RingResults::dv, &RingResults::dbias}) {
        EXPECT_EQ(difference(narrow.*member, wanted.*member), -1);
        EXPECT_EQ(difference(wide.*member, wanted.*member), -1);
      }
    }
}

TYPED_TEST(NarrowStep, HasTheFloatStepsBasesOfFiniteMasks) {
  for (const FiniteMask &c : finiteMasks(2)) {
    SCOPED_TRACE(std::string(c.what) + " by " + std::to_string(c.hidden));
    RingOperands o(c.shape, c.kind, c.hidden);
    Dealt dealt{2, true};
    RingResults wanted = runRing<float>(o, dealt, RoundedSteps<TypeParam>());
    for (bool floatBias : {true, false}) {
      if (!floatBias && c.hidden != -61440.0f)
        continue; // 16 bits round the others
      RingResults narrow = runRing<TypeParam>(o, dealt, Steps(), floatBias);
      for (auto member : {&RingResults::out, &RingResults::logSumExp, &RingResults::dq,
                          &RingResults::dk, &RingResults::dv, &RingResults::dbias})
        EXPECT_EQ(difference(narrow.*member, wanted.*member), -1);
    }
  }
}

// The last step says what a query gets that has seen nothing in any.
TEST(AttentionStep, QueriesThatSeeNothingAreNotANumberOrZero) {
  AttentionShape a = ringShape(1, 1, 24, 24, 4, false);
  for (bool zero : {false, true}) {
    a.zeroHidden = zero;
    RingOperands o(a, RingBias::Rows);
    RingResults actual = runRing<float>(o, {3, true}, Steps());
    for (int64_t i = 0; i < 24; ++i) {
      EXPECT_EQ(std::isnan(actual.out[size_t(4 * i)]), !zero && i % 5 == 2) << i;
      EXPECT_EQ(actual.out[size_t(4 * i)] == 0.0f, zero && i % 5 == 2) << i;
    }
  }
}

// Keys that no query of a step sees are not read, and nothing is written for them.
TEST(AttentionStep, HiddenKeysAreNotRead) {
  constexpr int64_t n = 96;
  AttentionShape a = ringShape(1, 2, n, n, 8, true);
  int64_t first[] = {n}, behind[] = {2 * n};
  a.queries = {4 * n, 1, first};
  a.keys = {4 * n, 1, behind};
  Floats q = randomFloats(n * 16, "q"), k(q.size(), NAN), out(q.size(), 3.0f), lse(2 * n, 0.5f),
         dq = out, dk = out, dv = out, workspace(2 * n);
  auto in = [](const Floats &x) { return ConstHeads{x.data(), n * 16, 16, 8}; };
  auto to = [](Floats &x) { return Heads{x.data(), n * 16, 16, 8}; };
  Floats before = out, sums = lse;
  attentionStep(to(out), lse.data(), in(q), in(k), in(k), a, {}, /*continues=*/true);
  EXPECT_EQ(out, before);
  EXPECT_EQ(lse, sums);
  attentionStepBackward(to(dq), to(dk), to(dv), workspace.data(), in(q), in(out), lse.data(), in(q),
                        in(k), in(k), a, {}, {}, /*continues=*/true);
  EXPECT_EQ(dq, before);
  for (const Floats *each : {&dk, &dv})
    EXPECT_EQ(*each, Floats(each->size(), 0.0f));
  attentionStep(to(out), lse.data(), in(q), in(k), in(k), a, {}, /*continues=*/false);
  EXPECT_EQ(out, Floats(out.size(), 0.0f));
  EXPECT_EQ(lse, Floats(lse.size(), -INFINITY));
  attentionStepBackward(to(dq), to(dk), to(dv), workspace.data(), in(q), in(out), lse.data(), in(q),
                        in(k), in(k), a, {}, {}, /*continues=*/false);
  for (const Floats *each : {&dq, &dk, &dv})
    EXPECT_EQ(*each, Floats(each->size(), 0.0f));
}

TEST(AttentionStep, RunsLieInsideTheSequence) {
  AttentionShape a = ringShape(1, 1, 8, 8, 4, true);
  Floats x(32), lse(8), out(32);
  ConstHeads in{x.data(), 32, 4, 4};
  auto step = [&] { attentionStep({out.data(), 32, 4, 4}, lse.data(), in, in, in, a, {}, false); };
  int64_t firsts[] = {0, 20};
  a.queries = {24, 2, firsts};
  EXPECT_EQ(errorOf(step), "");
  firsts[1] = 21;
  EXPECT_EQ(
      errorOf(step),
      "attention: a run of 4 queries begins at number 21 of 24, not at a multiple of its length");
  firsts[1] = -1;
  EXPECT_EQ(
      errorOf(step),
      "attention: a run of 4 queries begins at number -1 of 24, not at a multiple of its length");
  firsts[1] = 8;
  a.keys = {24, 3, firsts};
  EXPECT_EQ(errorOf(step), "attention: 8 keys in 3 runs, which must have equal lengths");
}

} // namespace
} // namespace partita_rt::attention_step
