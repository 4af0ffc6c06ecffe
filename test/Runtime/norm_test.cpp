// Layer norm, root-mean-square norm and softmax against their definitions in double.

#include "reference.h"

namespace partita_rt {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct NormReference {
  Doubles y, dx, dweight, dbias, sums;
};

/// Computes the forward pass, and the gradients of sum(y * dy).
NormReference normReference(const Floats &x, const Floats &w, const Floats &b, const Floats &dy,
                            int64_t rows, int64_t width, double epsilon) {
  NormReference r{Doubles(x.size()), Doubles(x.size()), Doubles(w.size()), Doubles(w.size()),
                  Doubles(w.size())};
  for (int64_t i = 0; i < rows; ++i) {
    const float *row = x.data() + i * width, *g = dy.data() + i * width;
    double mean = 0, variance = 0, meanG = 0, meanDot = 0;
    for (int64_t j = 0; j < width; ++j)
      mean += row[j] / double(width);
    for (int64_t j = 0; j < width; ++j)
      variance += (row[j] - mean) * (row[j] - mean) / double(width);
    double rstd = 1 / std::sqrt(variance + epsilon);
    for (int64_t j = 0; j < width; ++j) {
      double xhat = (row[j] - mean) * rstd;
      r.y[i * width + j] = xhat * w[j] + b[j];
      r.dweight[j] += g[j] * xhat;
      r.dbias[j] += g[j];
      meanG += double(g[j]) * w[j] / double(width);
      meanDot += double(g[j]) * w[j] * xhat / double(width);
    }
    for (int64_t j = 0; j < width; ++j)
      r.sums[j] += r.dx[i * width + j] =
          rstd * (double(g[j]) * w[j] - meanG - (row[j] - mean) * rstd * meanDot);
  }
  return r;
}

class LayerNorm : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(LayerNorm, EqualsItsDefinition) {
  auto [rows, width] = GetParam();
  Floats x = randomFloats(rows * width, "x"), w = randomFloats(width, "w"),
         b = randomFloats(width, "b"), dy = randomFloats(rows * width, "dy");
  for (float &value : x)
    value += 3.0f;
  NormReference r = normReference(x, w, b, dy, rows, width, 1e-5);
  Floats y(x.size()), mean(static_cast<size_t>(rows)), rstd(mean), dx(x.size()), dw(w.size()),
      db(w.size()), sums(w.size());
  layerNormForward(y.data(), mean.data(), rstd.data(), x.data(), w.data(), b.data(), rows, width,
                   1e-5f);
  EXPECT_CLOSE(y, r.y, 3e-6);
  layerNormBackward(dx.data(), dw.data(), db.data(), sums.data(), dy.data(), x.data(), w.data(),
                    mean.data(), rstd.data(), rows, width);
  EXPECT_CLOSE(dx, r.dx, width < 4 ? 5e-5 : 5e-6); // two elements: dx is almost 0
  EXPECT_CLOSE(dw, r.dweight, 5e-6);
  EXPECT_CLOSE(db, r.dbias, 5e-6);
  EXPECT_CLOSE(sums, r.sums, width < 4 ? 5e-5 : 5e-6);
  Floats reduced(w.size()); // a pipeline stage that begins here gets the same bits
  reduceSum(reduced.data(), dx.data(), 1, rows, width, Write::Set);
  EXPECT_EQ(reduced, sums);

  Floats inPlace = dy, twice = dw, twiceB = db, added = dx;
  layerNormBackward(inPlace.data(), twice.data(), twiceB.data(), nullptr, inPlace.data(), x.data(),
                    w.data(), mean.data(), rstd.data(), rows, width, Write::Add);
  EXPECT_EQ(inPlace, dx);
  Floats both(w.size());
  layerNormBackward(added.data(), nullptr, nullptr, both.data(), dy.data(), x.data(), w.data(),
                    mean.data(), rstd.data(), rows, width, Write::Set, Write::Add);
  for (size_t j = 0; j < both.size(); ++j)
    EXPECT_NEAR(both[j], 2 * sums[j], 1e-4 * (1 + std::fabs(sums[j])));
  for (int64_t j = 0; j < width; ++j)
    EXPECT_NEAR(twice[j], 2 * dw[j], 1e-4 * (1 + std::fabs(dw[j])));
  for (size_t i = 0; i < dx.size(); ++i)
    EXPECT_FLOAT_EQ(added[i], 2 * dx[i]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayerNorm,
                         testing::Values(std::pair<int64_t, int64_t>{1, 2},
                                         std::pair<int64_t, int64_t>{5, 7},
                                         std::pair<int64_t, int64_t>{33, 64},
                                         std::pair<int64_t, int64_t>{17, 100},
                                         std::pair<int64_t, int64_t>{40, 385}));

TEST(LayerNorm, WithoutWeightAndStatistics) {
  Floats x = randomFloats(3 * 20, "x"), ones(20, 1.0f), zeros(20, 0.0f), a(60), b(60);
  layerNormForward(a.data(), nullptr, nullptr, x.data(), nullptr, nullptr, 3, 20, 1e-5f);
  layerNormForward(b.data(), nullptr, nullptr, x.data(), ones.data(), zeros.data(), 3, 20, 1e-5f);
  EXPECT_EQ(a, b);
}

class RmsNorm : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(RmsNorm, EqualsItsDefinition) {
  auto [rows, width] = GetParam();
  Floats x = randomFloats(rows * width, "x"), w = randomFloats(width, "w"),
         dy = randomFloats(rows * width, "dy");
  for (float &value : x)
    value += 3.0f;
  Doubles y(x.size()), dx(x.size()), dw(w.size());
  for (int64_t i = 0; i < rows; ++i) {
    double square = 0, dot = 0;
    for (int64_t j = 0; j < width; ++j)
      square += double(x[i * width + j]) * x[i * width + j] / double(width);
    double rstd = 1 / std::sqrt(square + 1e-6);
    for (int64_t j = 0; j < width; ++j) {
      double xhat = x[i * width + j] * rstd, g = dy[i * width + j];
      y[i * width + j] = xhat * w[j];
      dw[j] += g * xhat;
      dot += g * w[j] * xhat / double(width);
    }
    for (int64_t j = 0; j < width; ++j)
      dx[i * width + j] = rstd * (double(dy[i * width + j]) * w[j] - x[i * width + j] * rstd * dot);
  }
  Floats out(x.size()), rstd(static_cast<size_t>(rows)), gx(x.size()), gw(w.size());
  rmsNormForward(out.data(), rstd.data(), x.data(), w.data(), rows, width, 1e-6f);
  EXPECT_CLOSE(out, y, 3e-6);
  rmsNormBackward(gx.data(), gw.data(), dy.data(), x.data(), w.data(), rstd.data(), rows, width);
  EXPECT_CLOSE(gx, dx, 5e-6);
  EXPECT_CLOSE(gw, dw, 5e-6);

  Floats inPlace = dy, added = gx, ones(w.size(), 1.0f), a(x.size());
  rmsNormBackward(inPlace.data(), nullptr, inPlace.data(), x.data(), w.data(), rstd.data(), rows,
                  width);
  EXPECT_EQ(inPlace, gx);
  rmsNormBackward(added.data(), nullptr, dy.data(), x.data(), w.data(), rstd.data(), rows, width,
                  Write::Set, Write::Add);
  for (size_t i = 0; i < gx.size(); ++i)
    EXPECT_FLOAT_EQ(added[i], 2 * gx[i]);
  rmsNormForward(a.data(), nullptr, x.data(), nullptr, rows, width, 1e-6f);
  rmsNormForward(x.data(), nullptr, x.data(), ones.data(), rows, width, 1e-6f);
  EXPECT_EQ(a, x) << "in place, without a weight";
}

INSTANTIATE_TEST_SUITE_P(Sizes, RmsNorm,
                         testing::Values(std::pair<int64_t, int64_t>{1, 2},
                                         std::pair<int64_t, int64_t>{5, 7},
                                         std::pair<int64_t, int64_t>{33, 64},
                                         std::pair<int64_t, int64_t>{17, 100}));

TEST(Softmax, EqualsItsDefinitionForwardAndBackward) {
  for (int64_t width : {1, 3, 16, 31, 257}) {
    int64_t rows = 6;
    Floats x = randomFloats(rows * width, "x", 20.0), dy = randomFloats(rows * width, "dy");
    Doubles y(x.size()), dx(x.size());
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0, dot = 0, largest = -1e300;
      for (int64_t j = 0; j < width; ++j)
        largest = std::max(largest, double(x[i * width + j]));
      for (int64_t j = 0; j < width; ++j)
        sum += y[i * width + j] = std::exp(x[i * width + j] - largest);
      for (int64_t j = 0; j < width; ++j) {
        y[i * width + j] /= sum;
        dot += y[i * width + j] * dy[i * width + j];
      }
      for (int64_t j = 0; j < width; ++j)
        dx[i * width + j] = y[i * width + j] * (dy[i * width + j] - dot);
    }
    Floats out(x.size()), gradient(x.size());
    softmaxForward(out.data(), x.data(), rows, width);
    EXPECT_CLOSE(out, y, 1e-6);
    softmaxBackward(gradient.data(), dy.data(), out.data(), rows, width);
    EXPECT_LE(relativeError(gradient, dx), width == 1 ? 1e30 : 1e-5);
    softmaxForward(x.data(), x.data(), rows, width);
    EXPECT_EQ(x, out) << "in place";
  }
}

TEST(Softmax, KeepsInfinitiesAndNaN) {
  Floats x(40, -kInf), y(40);
  x[3] = 1.0f; // row 0: one unmasked; row 1: none
  softmaxForward(y.data(), x.data(), 2, 20);
  EXPECT_EQ(y[3], 1.0f);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(y[i], i == 3 ? 1.0f : 0.0f);
  x[5] = std::nanf("");
  softmaxForward(y.data(), x.data(), 1, 20);
  EXPECT_TRUE(std::isnan(y[5]));
}

} // namespace
} // namespace partita_rt
