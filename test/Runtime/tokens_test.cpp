// Embedding and cross-entropy.

#include "reference.h"

namespace partita_rt {
namespace {

TEST(Embedding, GathersAndScattersInOrder) {
  std::vector<int64_t> ids = {3, 0, 3, 9, 3};
  std::vector<int32_t> narrow(ids.begin(), ids.end());
  Floats table = randomFloats(10 * 5, "table"), dy = randomFloats(5 * 5, "dy"), y(25), y32(25);
  embeddingForward(y.data(), ids.data(), table.data(), 5, 5, 10);
  embeddingForward(y32.data(), narrow.data(), table.data(), 5, 5, 10);
  EXPECT_EQ(y, y32);
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t d = 0; d < 5; ++d)
      EXPECT_EQ(y[i * 5 + d], table[ids[i] * 5 + d]);
  Floats gradient(50, 7.0f), added(50, 1.0f);
  embeddingBackward(gradient.data(), dy.data(), ids.data(), 5, 5, 10);
  embeddingBackward(added.data(), dy.data(), narrow.data(), 5, 5, 10, Write::Add);
  for (int64_t d = 0; d < 5; ++d) {
    EXPECT_EQ(gradient[3 * 5 + d], (dy[d] + dy[10 + d]) + dy[20 + d]);
    EXPECT_EQ(gradient[1 * 5 + d], 0.0f);
    EXPECT_EQ(added[9 * 5 + d], 1.0f + dy[15 + d]);
  }
}

TEST(Embedding, AddsRowsThatRepeat) {
  std::vector<int64_t> ids = {3, 0, 3, 9, 3, 2};
  constexpr int64_t width = 19, period = 3; // more than the lanes of a vector
  Floats table = randomFloats(10 * width, "table"), addend = randomFloats(period * width, "addend");
  Floats y(ids.size() * width);
  TokenRows part(10, 2, 5); // another rank has the row 9
  embeddingAdd(y.data(), ids.data(), table.data() + 2 * width, addend.data(), period,
               int64_t(ids.size()), width, part);
  for (int64_t i = 0; i < int64_t(ids.size()); ++i)
    for (int64_t d = 0; d < width; ++d) {
      float row = part.has(ids[i]) ? table[ids[i] * width + d] : 0.0f;
      EXPECT_EQ(y[i * width + d], row + addend[i % period * width + d]);
    }
}

/// What is added to has the sum of each row's additions, as a table of their own would.
TEST(Embedding, AddsCompleteSums) {
  std::vector<int32_t> ids = {1, 1, 0, 1};
  constexpr int64_t width = 1030; // more than is summed at a time
  Floats dy = randomFloats(4 * width, "dy"), sums(3 * width), before = randomFloats(3 * width, "x");
  Floats added = before;
  embeddingBackward(sums.data(), dy.data(), ids.data(), 4, width, 3);
  embeddingBackward(added.data(), dy.data(), ids.data(), 4, width, 3, Write::Add);
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(added[i], before[i] + sums[i]);
}

TEST(Embedding, RefusesIdsOutsideTheVocabulary) {
  int64_t ids[] = {1, 10};
  float table[20] = {}, y[4];
  EXPECT_EQ(
      errorOf([&] { embeddingForward(y, ids, table, 2, 2, 10); }),
      "embedding: index 10 at position 1 (of this rank) is outside 0 .. 9, the rows of the table");
  ids[0] = -1;
  EXPECT_EQ(
      errorOf([&] { embeddingBackward(table, y, ids, 2, 2, 10); }),
      "embedding: index -1 at position 0 (of this rank) is outside 0 .. 9, the rows of the table");
}

TEST(Take, LooksIntoEachTable) {
  constexpr int64_t tables = 2, rows = 3, width = 5, n = 4;
  std::vector<int64_t> ids = {2, 0, 2, 1, 1, 1, 0, 1};
  std::vector<int32_t> narrow(ids.begin(), ids.end());
  Floats x = randomFloats(tables * rows * width, "x"), dy = randomFloats(tables * n * width, "dy");
  Floats y(dy.size()), y32(dy.size()), dx(x.size(), 7.0f), expected(x.size());
  takeForward(y.data(), ids.data(), x.data(), tables, n, rows, width);
  takeForward(y32.data(), narrow.data(), x.data(), tables, n, rows, width);
  EXPECT_EQ(y, y32);
  takeBackward(dx.data(), dy.data(), ids.data(), tables, n, rows, width);
  for (int64_t i = 0; i < tables * n; ++i)
    for (int64_t d = 0; d < width; ++d) {
      int64_t from = (i / n * rows + ids[i]) * width + d;
      EXPECT_EQ(y[i * width + d], x[from]);
      expected[from] += dy[i * width + d];
    }
  EXPECT_EQ(dx, expected);
  ids[5] = 3;
  EXPECT_EQ(errorOf([&] { takeForward(y.data(), ids.data(), x.data(), tables, n, rows, width); }),
            "take: index 3 at position 1 of table 1 is outside 0 .. 2");
}

TEST(CrossEntropy, EqualsItsDefinition) {
  for (int64_t vocabulary : {1, 5, 16, 100, 1031}) {
    int64_t rows = 7, stride = vocabulary + 3;
    Floats logits = randomFloats(rows * stride, "logits", 8.0), loss(rows), lse(rows);
    std::vector<int64_t> labels = {0, vocabulary - 1, -100, vocabulary / 2, 0, -100, 0};
    Doubles expected(rows), gradient(rows * stride);
    Floats dloss = randomFloats(rows, "dloss");
    for (int64_t i = 0; i < rows; ++i) {
      if (labels[i] == -100)
        continue;
      double sum = 0, largest = -1e300;
      for (int64_t j = 0; j < vocabulary; ++j)
        largest = std::max(largest, double(logits[i * stride + j]));
      for (int64_t j = 0; j < vocabulary; ++j)
        sum += std::exp(logits[i * stride + j] - largest);
      expected[i] = largest + std::log(sum) - logits[i * stride + labels[i]];
      for (int64_t j = 0; j < vocabulary; ++j)
        gradient[i * stride + j] = dloss[i] * (std::exp(logits[i * stride + j] - largest) / sum -
                                               (j == labels[i] ? 1.0 : 0.0));
    }
    crossEntropyForward(loss.data(), lse.data(), logits.data(), labels.data(), rows, vocabulary,
                        stride, -100);
    for (int64_t i = 0; i < rows; ++i)
      EXPECT_NEAR(loss[i], expected[i], 1e-5 * (1 + expected[i]));
    Floats dlogits(logits.size(), NAN);
    crossEntropyBackward(dlogits.data(), dloss.data(), 1, logits.data(), lse.data(), labels.data(),
                         rows, vocabulary, stride, -100);
    for (size_t i = 0; i < dlogits.size(); ++i)
      EXPECT_NEAR(dlogits[i], gradient[i], 1e-5);
    crossEntropyBackward(logits.data(), dloss.data(), 1, logits.data(), lse.data(), labels.data(),
                         rows, vocabulary, stride, -100);
    EXPECT_EQ(logits, dlogits) << "in place";
  }
  int64_t labels[] = {1, -100, 2, -100};
  EXPECT_EQ(countLabels(labels, 4, -100), 2);
}

TEST(CrossEntropy, OneSeedForAllRowsAndMaskedVocabulary) {
  Floats logits = {1.0f, -INFINITY, 2.0f, 0.0f, -INFINITY, -1.0f}, loss(2), lse(2), dlogits(6);
  int64_t labels[] = {0, 2};
  float seed = 0.5f;
  crossEntropyForward(loss.data(), lse.data(), logits.data(), labels, 2, 3, 3, -100);
  EXPECT_NEAR(loss[0], std::log(1 + std::exp(1.0)), 1e-6);
  crossEntropyBackward(dlogits.data(), &seed, 0, logits.data(), lse.data(), labels, 2, 3, 3, -100);
  EXPECT_EQ(dlogits[1], 0.0f);
  EXPECT_NEAR(dlogits[0] + dlogits[2], 0.0, 1e-7);
}

TEST(CrossEntropy, RefusesLabelsOutsideTheVocabulary) {
  int64_t labels[] = {0, 4};
  float logits[8] = {}, loss[2], lse[2];
  EXPECT_EQ(errorOf([&] { crossEntropyForward(loss, lse, logits, labels, 2, 4, 4, -100); }),
            "cross-entropy: label 4 of row 1 is outside 0 .. 3");
}

} // namespace
} // namespace partita_rt
