// The classifier's loss and gradients against the definition in double.

#include "half_reference.h"

namespace partita_rt {
namespace {

constexpr int64_t kBlockColumns = 64;

struct ClassifierSize {
  int64_t rows, width, vocabulary, rowsAtOnce;
};

/// Inputs, and the results of the definition in double.
struct Definition {
  Floats x, w, seeds;
  std::vector<int64_t> labels;
  Doubles loss, dx, dw;

  Definition(const ClassifierSize &size, Floats x, Floats w)
      : x(std::move(x)), w(std::move(w)), seeds(randomFloats(size.rows, "dloss")),
        labels(size.rows), loss(size.rows), dx(this->x.size()), dw(this->w.size()) {
    for (int64_t i = 0; i < size.rows; ++i) {
      labels[i] = i % 5 == 3 ? -100 : (i * 7919 + size.vocabulary - 1) % size.vocabulary;
      if (labels[i] != -100)
        addRow(i, size.width, size.vocabulary);
    }
  }

private:
  void addRow(int64_t i, int64_t width, int64_t vocabulary) {
    Doubles logits(vocabulary);
    double sum = 0, largest = -1e300;
    for (int64_t j = 0; j < vocabulary; ++j) {
      for (int64_t k = 0; k < width; ++k)
        logits[j] += double(x[i * width + k]) * w[j * width + k];
      largest = std::max(largest, logits[j]);
    }
    for (int64_t j = 0; j < vocabulary; ++j)
      sum += std::exp(logits[j] - largest);
    loss[i] = largest + std::log(sum) - logits[labels[i]];
    for (int64_t j = 0; j < vocabulary; ++j) {
      double d = seeds[i] * (std::exp(logits[j] - largest) / sum - (j == labels[i]));
      for (int64_t k = 0; k < width; ++k) {
        dx[i * width + k] += d * w[j * width + k];
        dw[j * width + k] += d * x[i * width + k];
      }
    }
  }
};

class Classifier : public testing::TestWithParam<ClassifierSize> {};

TEST_P(Classifier, EqualsItsDefinition) {
  auto [rows, width, vocabulary, rowsAtOnce] = GetParam();
  auto [x, w, seeds, labels, loss, dx, dw] = Definition(
      GetParam(), randomFloats(rows * width, "x", 3.0), randomFloats(vocabulary * width, "w"));
  int64_t blocks = (vocabulary + kBlockColumns - 1) / kBlockColumns;
  Floats scratch(size_t(rowsAtOnce * kBlockColumns * (blocks + 1)), NAN);
  Floats ours(rows, NAN), oursAlone(rows, NAN), oursDx(x.size(), NAN), oursDw(w.size(), NAN);
  classifierLossGrad(ours.data(), oursDx.data(), oursDw.data(), seeds.data(), 1, x.data(), w.data(),
                     labels.data(), rows, width, vocabulary, -100, scratch.data(),
                     {rowsAtOnce, kBlockColumns});
  EXPECT_CLOSE(ours, loss, 2e-6);
  EXPECT_CLOSE(oursDx, dx, 5e-6);
  EXPECT_CLOSE(oursDw, dw, 5e-6);
  scratch.resize(size_t(rowsAtOnce * kBlockColumns));
  classifierLoss(oursAlone.data(), x.data(), w.data(), labels.data(), rows, width, vocabulary, -100,
                 scratch.data(), {rowsAtOnce, kBlockColumns});
  EXPECT_EQ(ours, oursAlone);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Classifier,
                         testing::Values(ClassifierSize{1, 1, 1, 1}, ClassifierSize{7, 5, 16, 7},
                                         ClassifierSize{7, 5, 100, 3},
                                         ClassifierSize{40, 24, 128, 20},
                                         ClassifierSize{33, 16, 1031, 16},
                                         ClassifierSize{20, 8, 65, 20}));

/// Each element has the error of a single rounding, whatever the number of row blocks.
template <typename T> class SixteenBitClassifier : public testing::Test {};
TYPED_TEST_SUITE(SixteenBitClassifier, NarrowTypes);
TYPED_TEST(SixteenBitClassifier, RoundsTheWeightsGradientOnce) {
  using T = TypeParam;
  constexpr ClassifierSize size{2048, 8, 40, 8};
  auto [rows, width, vocabulary, rowsAtOnce] = size;
  Floats x = randomExact<T>(rows * width, "x"), w = randomExact<T>(vocabulary * width, "w");
  for (float &each : x) // growing sums lose small terms
    each = std::fabs(each);
  Definition wanted(size, x, w);
  Narrow<T> nx = rounded<T>(x), nw = rounded<T>(w), dx(x.size()), dw(w.size(), T(NAN));
  Floats loss(rows),
      scratch(size_t(rowsAtOnce * (2 * kBlockColumns + width) + vocabulary * width), NAN);
  classifierLossGrad(loss.data(), dx.data(), dw.data(), wanted.seeds.data(), 1, nx.data(),
                     nw.data(), wanted.labels.data(), rows, width, vocabulary, -100, scratch.data(),
                     {rowsAtOnce, kBlockColumns});
  const double half = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;
  double largest = 0;
  for (double each : wanted.dw)
    largest = std::max(largest, std::fabs(each));
  for (size_t i = 0; i < dw.size(); ++i)
    EXPECT_NEAR(double(float(dw[i])), wanted.dw[i],
                half * std::fabs(wanted.dw[i]) + 1e-5 * largest);
}

TEST(Classifier, OneSeedForAllRows) {
  Floats x = randomFloats(3 * 4, "x"), w = randomFloats(9 * 4, "w"), seeds(3, 0.25f);
  int64_t labels[] = {8, -100, 0};
  Floats scratch(3 * kBlockColumns * 2), loss(3), dx(12), dw(36), dx1(12), dw1(36);
  classifierLossGrad(loss.data(), dx.data(), dw.data(), seeds.data(), 1, x.data(), w.data(), labels,
                     3, 4, 9, -100, scratch.data(), {3, kBlockColumns});
  classifierLossGrad(loss.data(), dx1.data(), dw1.data(), seeds.data(), 0, x.data(), w.data(),
                     labels, 3, 4, 9, -100, scratch.data(), {3, kBlockColumns});
  EXPECT_EQ(dx, dx1);
  EXPECT_EQ(dw, dw1);
  EXPECT_EQ(loss[1], 0.0f);
  for (int64_t k = 0; k < 4; ++k)
    EXPECT_EQ(dx[4 + k], 0.0f);
}

/// The running maximum grows from block to block by more than exp can represent.
TEST(Classifier, BearsLogitsFarApart) {
  int64_t vocabulary = 3 * kBlockColumns;
  Floats x = {1.0f}, w(size_t(vocabulary), -INFINITY), scratch(4 * kBlockColumns), loss(1);
  for (int64_t block = 1; block < 3; ++block)
    for (int64_t j = 0; j < kBlockColumns; ++j)
      w[block * kBlockColumns + j] = block == 1 ? -500.0f : 500.0f;
  int64_t label = vocabulary - 1;
  classifierLoss(loss.data(), x.data(), w.data(), &label, 1, 1, vocabulary, -100, scratch.data(),
                 {1, kBlockColumns});
  EXPECT_NEAR(loss[0], std::log(double(kBlockColumns)), 1e-4);
}

TEST(Classifier, RefusesLabelsOutsideTheVocabulary) {
  int64_t labels[] = {0, 4};
  float x[2] = {}, w[4] = {}, loss[2], scratch[2 * kBlockColumns];
  EXPECT_EQ(errorOf([&] {
              classifierLoss(loss, x, w, labels, 2, 1, 4, -100, scratch, {2, kBlockColumns});
            }),
            "cross-entropy: label 4 of row 1 is outside 0 .. 3");
}

} // namespace
} // namespace partita_rt
