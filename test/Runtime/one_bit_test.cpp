// Kernels of sums with one bit per element, against loops over elements.

#include "cpu/kernels/one_bit.h"
#include "partita_rt/kernels.h"
#include "partita_rt/one_bit.h"
#include "reference.h"

#include <gtest/gtest.h>

#include <limits>

using namespace partita_rt;

namespace {

TEST(OneBit, signsAreOneBitEach) {
  for (int64_t n : {1, 7, 8, 15, 16, 17, 24, 33, 200, 4099}) {
    std::vector<float> x(size_t(n), 0);
    for (int64_t i = 0; i < n; ++i)
      x[size_t(i)] = float((i * 7919 + n) % 13 - 6);
    std::vector<uint8_t> bits(size_t(n + 7) / 8 + 1, 0xa5);
    packSigns(bits.data(), x.data(), n);
    for (int64_t i = 0; i < (n + 7) / 8 * 8; ++i)
      EXPECT_EQ(bits[size_t(i) / 8] >> (i % 8) & 1, i < n && x[size_t(i)] >= 0) << n << " " << i;
    EXPECT_EQ(bits.back(), 0xa5) << n;

    std::vector<float> y(size_t(n) + 1, 3);
    addSigns(y.data(), bits.data(), 0.5f, n);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(y[size_t(i)], x[size_t(i)] >= 0 ? 3.5f : 2.5f) << n << " " << i;
    EXPECT_EQ(y.back(), 3) << n;
  }
}

TEST(OneBit, zerosArePositiveAndWhatIsNoNumberIsNot) {
  float x[] = {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), -1};
  uint8_t bits;
  packSigns(&bits, x, 4);
  EXPECT_EQ(bits, 3);
}

TEST(OneBit, scaleIsTheRootOfTheMeanSquare) {
  float x[] = {3, -4, 0, 0};
  EXPECT_EQ(signScale(x, 4), 2.5f);
  EXPECT_EQ(signScale(x, 0), 0.0f);
}

/// As an update computes it, each operation rounded by itself.
TEST(OneBit, meanIsExponentialUntilTermsAreOfTheMean) {
  const int64_t n = 37;
  std::vector<float> m(n), sum(n), old;
  for (int64_t i = 0; i < n; ++i) {
    m[size_t(i)] = 0.1f * float(i) - 1;
    sum[size_t(i)] = 1 / float(i + 3);
  }
  old = m;
  oneBitMean(m.data(), sum.data(), n, 0.9, 0.3f, true);
  for (size_t i = 0; i < m.size(); ++i) {
    volatile float g = 0.3f * sum[i], step = g - old[i], part = float(1 - 0.9) * step;
    EXPECT_EQ(m[i], old[i] + part) << i;
  }
  oneBitMean(m.data(), sum.data(), n, 0.9, 0.3f, false);
  EXPECT_EQ(m, sum);
}

/// What ranks hold of a tensor of n elements that ends in padding.
struct Padded {
  std::vector<float> values, worker, server;
  Padded(int64_t n, int64_t valid, int rank, int ranks)
      : values(size_t(n), NAN), worker(size_t(n)), server(size_t(oneBitChunk(n, ranks))) {
    for (int64_t i = 0; i < valid; ++i) {
      values[size_t(i)] = float((i * 7919 + rank * 31) % 23 - 11);
      worker[size_t(i)] = 0.01f * float((i * 104729 + rank) % 17 - 8);
    }
    for (int64_t i = 0; i < std::min(valid - rank * oneBitChunk(n, ranks), oneBitChunk(n, ranks));
         ++i)
      server[size_t(i)] = 0.01f * float((i * 31 + rank) % 19 - 9);
  }
};

float signed_(float scale, float of) { return of >= 0 ? scale : -scale; }

/// Only the elements before it have bits, weigh in scales and leave errors; wherever chunks end.
TEST(OneBit, paddingHasNoBits) {
  const int64_t n = 42;
  for (int ranks : {2, 3, 4})
    for (int64_t valid : {0, 1, 11, 13, 14, 21, 33, 41, 42}) {
      SCOPED_TRACE(testing::Message() << valid << " of " << n << " on " << ranks);
      std::vector<Padded> found, before;
      for (int rank = 0; rank < ranks; ++rank)
        found.emplace_back(n, valid, rank, ranks);
      before = found;
      auto tensorOf = [&](Padded &of) {
        return OneBitTensor{of.values.data(), of.worker.data(), of.server.data(), n, valid};
      };
      auto bytes = size_t(oneBitBytes(n, ranks));
      std::vector<std::vector<uint8_t>> sent;
      std::vector<uint8_t> served(bytes * size_t(ranks), 0xa5);
      for (Padded &each : found) {
        OneBitTensors tensors = {tensorOf(each)};
        sent.emplace_back(bytes * size_t(ranks), uint8_t(0xa5));
        packForServers(OneBitBlocks(tensors, ranks), sent.back().data());
      }
      for (int self = 0; self < ranks; ++self) {
        std::vector<uint8_t> received;
        for (const std::vector<uint8_t> &from : sent)
          received.insert(received.end(), from.begin() + int64_t(bytes) * self,
                          from.begin() + int64_t(bytes) * (self + 1));
        OneBitTensors tensors = {tensorOf(found[size_t(self)])};
        serveSums(OneBitBlocks(tensors, ranks), self, sent[size_t(self)].data(), received.data(),
                  served.data() + bytes * size_t(self));
      }
      for (Padded &each : found) {
        OneBitTensors tensors = {tensorOf(each)};
        unpackSums(OneBitBlocks(tensors, ranks), served.data());
      }

      std::vector<float> sum(size_t(n), 0.0f);
      std::vector<Padded> expected = before;
      for (Padded &each : expected) { // the values are what is compressed
        for (int64_t i = 0; i < valid; ++i)
          each.values[size_t(i)] += each.worker[size_t(i)];
        float scale = signScale(each.values.data(), valid);
        for (int64_t i = 0; i < valid; ++i)
          each.worker[size_t(i)] = each.values[size_t(i)] - signed_(scale, each.values[size_t(i)]);
      }
      for (int64_t chunk = oneBitChunk(n, ranks), first = 0; first < valid; first += chunk) {
        std::vector<float> &server = expected[size_t(first / chunk)].server;
        int64_t size = std::min(chunk, valid - first);
        for (int64_t i = 0; i < size; ++i)
          for (Padded &each : expected)
            server[size_t(i)] +=
                signed_(signScale(each.values.data(), valid), each.values[size_t(first + i)]);
        float scale = signScale(server.data(), size);
        for (int64_t i = 0; i < size; ++i) {
          sum[size_t(first + i)] = signed_(scale, server[size_t(i)]);
          server[size_t(i)] -= signed_(scale, server[size_t(i)]);
        }
      }
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(found[size_t(rank)].values, sum) << rank;
        EXPECT_EQ(found[size_t(rank)].worker, expected[size_t(rank)].worker) << rank;
        EXPECT_EQ(found[size_t(rank)].server, expected[size_t(rank)].server) << rank;
      }
    }
}

TEST(OneBit, paddingIsTheEndOfTheLastShards) {
  EXPECT_EQ(oneBitValid(33, 65, 0), 33);
  EXPECT_EQ(oneBitValid(33, 65, 1), 32);
  EXPECT_EQ(oneBitValid(33, 66, 1), 33);
  EXPECT_EQ(oneBitValid(3, 7, 2), 1);
  EXPECT_EQ(oneBitValid(3, 6, 2), 0);
  EXPECT_EQ(oneBitValid(3, 6, 3), 0);
  OneBitTensor none{nullptr, nullptr, nullptr, 35};
  EXPECT_EQ(none.valid, 35);
}

TEST(OneBit, bytesOfABlock) {
  EXPECT_EQ(oneBitBytes(35, 2), 4 + 3); // chunks of 18
  EXPECT_EQ(oneBitBytes(3, 4), 4 + 1);
  EXPECT_EQ(oneBitScratch({{nullptr, nullptr, nullptr, 35}, {nullptr, nullptr, nullptr, 3}}, 4),
            9 * (4 + 2 + 4 + 1)); // sent and received by four, and what one serves
}

TEST(OneBit, exactStepsAreThoseOfDoublingIntervals) {
  for (int64_t doubling : {0, 1, 3, 16}) {
    int64_t interval = 1, counter = 0, exact = 0;
    for (int64_t step = 1; step <= 300; ++step) { // by DeepSpeed's counters
      bool isExact = step % interval == 0;
      EXPECT_EQ((ExactSteps{300, doubling}.contains(step)), isExact) << step << " " << doubling;
      exact += isExact;
      EXPECT_EQ((ExactSteps{step, doubling}.count()), exact) << step << " " << doubling;
      EXPECT_EQ((ExactSteps{300, doubling}.countUntil(step)), exact) << step << " " << doubling;
      if (isExact && ++counter == doubling)
        interval *= 2, counter = 0;
    }
    EXPECT_FALSE((ExactSteps{300, doubling}.contains(int64_t(301))));
  }
  EXPECT_TRUE((ExactSteps{10, 0}.contains(10.0f)));
  EXPECT_FALSE((ExactSteps{10, 0}.contains(11.0f)));
}

TEST(OneBit, factorsOfOtherStepsFollowThoseOfExactOnes) {
  ExactSteps exact{9, 2}; // 1, 2, 4, 6 and 8
  float sums = 0, gradients = 0, typical = 1;
  double squares = 0, weights = 0;
  for (int step = 1; step <= 12; ++step) {
    float factor = 1 / float(step), before = typical;
    oneBitClip(&sums, &gradients, &typical, factor, float(step), 0.75, exact);
    if (exact.contains(int64_t(step))) {
      squares = 0.75 * squares + 0.25 * double(factor) * double(factor);
      weights = 0.75 * weights + 0.25;
      EXPECT_EQ(sums, factor);
      EXPECT_EQ(gradients, factor);
      EXPECT_NEAR(double(typical), std::sqrt(squares / weights), 1e-7);
    } else {
      EXPECT_EQ(sums, 1.0f);
      EXPECT_EQ(gradients, before);
      EXPECT_EQ(typical, before);
    }
  }
}

TEST(OneBit, gradientsThatNothingClipsAreThemselves) {
  float sums = 0, gradients = 0, typical = 1;
  for (int step = 1; step <= 2000; ++step) {
    oneBitClip(&sums, &gradients, &typical, 1, float(step), 0.999, {1000, 0});
    ASSERT_TRUE(sums == 1 && gradients == 1 && typical == 1) << step;
  }
  const int64_t n = 37;
  std::vector<float> g(n, 0.3f), m(n, 0.7f), x(n), scaled(n);
  oneBitTerm(x.data(), g.data(), m.data(), n, 3, 0.9, typical, false);
  for (size_t i = 0; i < x.size(); ++i) {
    volatile float share = m[i] / 3, step = g[i] - share, part = float(1 - 0.9) * step;
    EXPECT_EQ(x[i], share + part) << i;
  }
  std::vector<float> half(n, 0.15f);
  oneBitTerm(scaled.data(), g.data(), m.data(), n, 3, 0.9, 0.5f, false);
  oneBitTerm(x.data(), half.data(), m.data(), n, 3, 0.9, 1, false);
  EXPECT_EQ(scaled, x);
  oneBitTerm(scaled.data(), g.data(), m.data(), n, 3, 0.9, 0.5f,
             true); // what is exact is clipped as a sum
  EXPECT_EQ(scaled, g);
}

TEST(OneBit, stepsAreAllExactOrOthers) {
  Steps all, first{Steps::Exact, {1, 0}}, exact{Steps::Exact, {10, 0}},
      others{Steps::Others, {10, 0}}, rare{Steps::Exact, {10, 2}}, between{Steps::Others, {10, 2}};
  for (int64_t step : {1, 3, 10, 11}) {
    EXPECT_TRUE(all.contains(step));
    EXPECT_EQ(exact.contains(step), step <= 10);
    EXPECT_EQ(others.contains(step), step > 10);
    EXPECT_EQ(rare.contains(step), step == 1);
    EXPECT_EQ(between.contains(step), step != 1);
  }
  EXPECT_EQ(all.text(), "");
  EXPECT_EQ(first.text(), " in step 1");
  EXPECT_EQ(exact.text(), " in steps 1 to 10");
  EXPECT_EQ(others.text(), " from step 11 on");
  EXPECT_EQ(rare.text(), " in 5 of the first 10 steps"); // 1, 2, 4, 6, 8
  EXPECT_EQ(between.text(), " in all other steps");
}

const FrozenRatioOptions kRatio{10, 0.5, 2, 0.75, 0.25, 3, 0.5}; // 10 steps of warm-up

TEST(OneBit, ratioOfTheWarmUpIsLambs) {
  double squares[] = {9, 4, 1};
  FrozenRatio next = frozenRatioOf(squares, 7, 10, 1, 0.5, kRatio);
  EXPECT_EQ(next.ratio, 1.5);
  EXPECT_EQ(next.coefficient, 0.75 * 1 + 0.25 * 1.5);
  EXPECT_EQ(next.factor, 0.5);
  double large[] = {100, 4, 1}, small[] = {0.01, 4, 1};
  EXPECT_EQ(frozenRatioOf(large, 7, 1, 0, 1, kRatio).ratio, 2);
  EXPECT_EQ(frozenRatioOf(small, 7, 1, 0, 1, kRatio).coefficient, 0.25 * 0.5);
  for (double infinite : {double(INFINITY), double(NAN)}) {
    double none[] = {0, 4, 1}, other[] = {9, infinite, 1}; // neither counts
    for (const double *each : {none, other}) {
      EXPECT_EQ(frozenRatioOf(each, 7, 1, 1.25, 1, kRatio).ratio, 1);
      EXPECT_EQ(frozenRatioOf(each, 7, 1, 1.25, 1, kRatio).coefficient, 1.25);
    }
  }
}

TEST(OneBit, ratioAfterTheWarmUpIsTheMeanTimesAFactor) {
  auto factor = [](double direction, double plain, double largest, double last) {
    double squares[] = {9, direction, plain};
    FrozenRatio next = frozenRatioOf(squares, largest, 11, 1.25, last, kRatio);
    EXPECT_EQ(next.coefficient, 1.25);
    if (!std::isnan(direction)) {
      EXPECT_EQ(next.ratio, 1.25 * next.factor);
    }
    return next.factor;
  };
  EXPECT_EQ(factor(4, 4, 1.25, 1), 1.25);  // without decay
  EXPECT_EQ(factor(4, 1, 1.25, 1), 1.125); // half of the direction is decay
  EXPECT_EQ(factor(4, 9, 1.25, 1), 1.25);  // decay opposes it
  EXPECT_EQ(factor(4, 4, 2, 1), 1.5);      // by half of the last one at most
  EXPECT_EQ(factor(4, 4, 0.1, 1), 0.5);
  EXPECT_EQ(factor(4, 4, 9, 2.5), 3); // bounds
  EXPECT_EQ(factor(4, 4, 0.1, 0.3), 0.25);
  EXPECT_EQ(factor(4, 0, 0, 1.25), 1);    // no element has a variance
  EXPECT_EQ(factor(0, 0, 1.25, 1), 1.25); // nor a direction
  EXPECT_EQ(factor(NAN, 4, 1.25, 1.5), 1.5);
  double squares[] = {9, 4, 4};
  EXPECT_EQ(frozenRatioOf(squares, 1.25, 11, 0, 1, kRatio).ratio, 1.25); // no ratio to freeze
}

TEST(OneBit, statesOfASkippedStepStay) {
  double squares[] = {9, 4, 1}, largest = 1.25;
  float ratio = 0, coefficient = 1, factor = 1, t = 10, apply = 0;
  frozenRatio(&ratio, &coefficient, &factor, squares, &largest, &t, &apply, kRatio);
  EXPECT_EQ(coefficient, 1);
  apply = 1;
  frozenRatio(&ratio, &coefficient, &factor, squares, &largest, &t, &apply, kRatio);
  EXPECT_EQ(ratio, 1.5f);
  EXPECT_EQ(coefficient, 1.125f);
  t = 11;
  frozenRatio(&ratio, &coefficient, &factor, squares, &largest, &t, nullptr, kRatio);
  EXPECT_EQ(factor, 1.125f);
  EXPECT_EQ(ratio, 1.125f * 1.125f);
}

} // namespace
