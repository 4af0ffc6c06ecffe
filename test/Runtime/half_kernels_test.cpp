// Kernels on 16-bit tensors: rows, tokens, copies and reductions.

#include "half_reference.h"

namespace partita_rt {
namespace {

template <typename T> class HalfKernels : public testing::Test {};
TYPED_TEST_SUITE(HalfKernels, NarrowTypes);

/// dweight or dbias in float and in 16 bits, set and added to.
constexpr Write kWrites[] = {Write::Set, Write::Add};

TYPED_TEST(HalfKernels, LayerNorm) {
  using T = TypeParam;
  for (int64_t width : {7, 100, 2100}) {
    int64_t rows = 37;
    Floats x = randomExact<T>(rows * width, "x"), w = randomExact<T>(width, "w"),
           b = randomExact<T>(width, "b"), dy = randomExact<T>(rows * width, "dy"),
           dx0 = randomExact<T>(rows * width, "dx"), dw0 = randomExact<T>(width, "dw");
    Narrow<T> nx = rounded<T>(x), nw = rounded<T>(w), nb = rounded<T>(b), ndy = rounded<T>(dy);
    Floats y(x.size()), mean(rows), rstd(rows), m(rows), s(rows);
    Narrow<T> ny(x.size()), fromFloat(x.size()), bare(x.size()), inPlace = nx;
    layerNormForward(y.data(), mean.data(), rstd.data(), x.data(), w.data(), b.data(), rows, width,
                     1e-5f);
    layerNormForward(ny.data(), m.data(), s.data(), nx.data(), nw.data(), nb.data(), rows, width,
                     1e-5f);
    EXPECT_ROUNDED(ny, y);
    EXPECT_EQ(m, mean);
    EXPECT_EQ(s, rstd);
    layerNormForward(fromFloat.data(), nullptr, nullptr, nx.data(), w.data(), nb.data(), rows,
                     width, 1e-5f);
    EXPECT_ROUNDED(fromFloat, y);
    layerNormForward(inPlace.data(), nullptr, nullptr, inPlace.data(), w.data(), b.data(), rows,
                     width, 1e-5f);
    EXPECT_ROUNDED(inPlace, y);
    layerNormForward(bare.data(), nullptr, nullptr, nx.data(), nullptr, nullptr, rows, width,
                     1e-5f);
    layerNormForward(y.data(), nullptr, nullptr, x.data(), nullptr, nullptr, rows, width, 1e-5f);
    EXPECT_ROUNDED(bare, y);

    for (Write write : kWrites) {
      Floats dx = dx0, dw = dw0, db = dw0, dwf = dw0, sums = dw0;
      Narrow<T> ndx = rounded<T>(dx0), ndw = rounded<T>(dw0), ndb = ndw, overDy = ndy, nsums = ndw;
      layerNormBackward(dx.data(), dw.data(), db.data(), nullptr, dy.data(), x.data(), w.data(),
                        mean.data(), rstd.data(), rows, width, write, write);
      layerNormBackward(ndx.data(), ndw.data(), ndb.data(), nsums.data(), ndy.data(), nx.data(),
                        nw.data(), mean.data(), rstd.data(), rows, width, write, write);
      columnSum(sums.data(), ndx.data(), rows, width, width, write); // sums of the stored values
      EXPECT_CLOSE(widened(nsums), widen(sums), 1e-2);
      EXPECT_ROUNDED(ndx, dx);
      EXPECT_ROUNDED(ndw, dw);
      EXPECT_ROUNDED(ndb, db);
      layerNormBackward(overDy.data(), dwf.data(), nullptr, nullptr, overDy.data(), nx.data(),
                        w.data(), mean.data(), rstd.data(), rows, width, write);
      EXPECT_EQ(dwf, dw);
      layerNormBackward(dx.data(), nullptr, nullptr, nullptr, dy.data(), x.data(), w.data(),
                        mean.data(), rstd.data(), rows, width);
      EXPECT_ROUNDED(overDy, dx);
    }
  }
}

TYPED_TEST(HalfKernels, RmsNorm) {
  using T = TypeParam;
  int64_t rows = 37, width = 101;
  Floats x = randomExact<T>(rows * width, "x"), w = randomExact<T>(width, "w"),
         dy = randomExact<T>(rows * width, "dy"), y(x.size()), rstd(rows), s(rows), dx(x.size()),
         dw(width), dwf(width);
  Narrow<T> nx = rounded<T>(x), nw = rounded<T>(w), ndy = rounded<T>(dy), ny(x.size()),
            ndx(x.size()), ndw(w.size());
  rmsNormForward(y.data(), rstd.data(), x.data(), w.data(), rows, width, 1e-6f);
  rmsNormForward(ny.data(), s.data(), nx.data(), nw.data(), rows, width, 1e-6f);
  EXPECT_ROUNDED(ny, y);
  EXPECT_EQ(s, rstd);
  rmsNormForward(ny.data(), nullptr, nx.data(), w.data(), rows, width, 1e-6f);
  EXPECT_ROUNDED(ny, y);
  rmsNormBackward(dx.data(), dw.data(), dy.data(), x.data(), w.data(), rstd.data(), rows, width);
  rmsNormBackward(ndx.data(), ndw.data(), ndy.data(), nx.data(), nw.data(), rstd.data(), rows,
                  width);
  EXPECT_ROUNDED(ndx, dx);
  EXPECT_ROUNDED(ndw, dw);
  rmsNormBackward(ndx.data(), dwf.data(), ndy.data(), nx.data(), w.data(), rstd.data(), rows,
                  width);
  EXPECT_ROUNDED(ndx, dx);
  EXPECT_EQ(dwf, dw);
}

TYPED_TEST(HalfKernels, Softmax) {
  using T = TypeParam;
  for (int64_t width : {1, 16, 31, 257}) {
    int64_t rows = 9;
    Floats x = randomExact<T>(rows * width, "x", 8.0), dy = randomExact<T>(rows * width, "dy");
    for (int64_t i = 0; i < width; ++i)
      x[width + i] = -INFINITY; // row 1: masked entirely
    x[3 * width] = NAN;
    x[5 * width] = INFINITY;
    Narrow<T> nx = rounded<T>(x), ny(x.size()), ndy = rounded<T>(dy), ndx(x.size());
    Floats y(x.size()), dx(x.size());
    softmaxForward(y.data(), x.data(), rows, width);
    softmaxForward(ny.data(), nx.data(), rows, width);
    EXPECT_ROUNDED(ny, y);
    softmaxForward(nx.data(), nx.data(), rows, width);
    EXPECT_ROUNDED(nx, y);
    y = widened(ny);
    softmaxBackward(dx.data(), dy.data(), y.data(), rows, width);
    softmaxBackward(ndx.data(), ndy.data(), ny.data(), rows, width);
    EXPECT_ROUNDED(ndx, dx);
  }
}

/// Sums of many rows of one token are rounded once, not once per row.
TYPED_TEST(HalfKernels, Embedding) {
  using T = TypeParam;
  constexpr int64_t n = 300, width = 1100, vocabulary = 20;
  std::vector<int64_t> ids(n);
  for (int64_t i = 0; i < n; ++i)
    ids[i] = i * i * 7 % vocabulary;
  std::vector<int32_t> narrowIds(ids.begin(), ids.end());
  Floats table = randomExact<T>(vocabulary * width, "table"), dy = randomExact<T>(n * width, "dy");
  Narrow<T> ntable = rounded<T>(table), ndy = rounded<T>(dy), ny(dy.size());
  Floats y(dy.size());
  TokenRows part(vocabulary, 3, 15); // another rank has the other rows
  embeddingForward(y.data(), ids.data(), table.data(), n, width, part);
  embeddingForward(ny.data(), narrowIds.data(), ntable.data(), n, width, part);
  EXPECT_ROUNDED(ny, y);
  Floats addend = randomExact<T>(n / 3 * width, "addend");
  embeddingAdd(y.data(), ids.data(), table.data(), addend.data(), n / 3, n, width, part);
  embeddingAdd(ny.data(), narrowIds.data(), ntable.data(), rounded<T>(addend).data(), n / 3, n,
               width, part);
  EXPECT_ROUNDED(ny, y);
  for (Write write : kWrites) {
    Floats gradient = table, sums = table;
    Narrow<T> narrow = ntable;
    embeddingBackward(gradient.data(), dy.data(), ids.data(), n, width, part, write);
    embeddingBackward(narrow.data(), ndy.data(), narrowIds.data(), n, width, part, write);
    embeddingBackward(sums.data(), ndy.data(), ids.data(), n, width, part, write);
    EXPECT_ROUNDED(narrow, gradient);
    EXPECT_EQ(sums, gradient);
  }
  ids[7] = vocabulary;
  EXPECT_EQ(
      errorOf([&] { embeddingBackward(ntable.data(), ndy.data(), ids.data(), n, width, 20); }),
      "embedding: index 20 at position 7 (of this rank) is outside 0 .. 19, the rows of the table");
}

TYPED_TEST(HalfKernels, Take) {
  using T = TypeParam;
  constexpr int64_t tables = 3, rows = 5, n = 40, width = 33;
  std::vector<int64_t> ids(tables * n);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = int64_t(i * i % rows);
  Floats x = randomExact<T>(tables * rows * width, "x"),
         dy = randomExact<T>(tables * n * width, "dy"), y(dy.size()), dx(x.size());
  Narrow<T> nx = rounded<T>(x), ndy = rounded<T>(dy), ny(y.size()), ndx(x.size());
  takeForward(y.data(), ids.data(), x.data(), tables, n, rows, width);
  takeForward(ny.data(), ids.data(), nx.data(), tables, n, rows, width);
  EXPECT_ROUNDED(ny, y);
  takeBackward(dx.data(), dy.data(), ids.data(), tables, n, rows, width);
  takeBackward(ndx.data(), ndy.data(), ids.data(), tables, n, rows, width);
  EXPECT_ROUNDED(ndx, dx);
}

TYPED_TEST(HalfKernels, CrossEntropy) {
  using T = TypeParam;
  for (int64_t vocabulary : {5, 100, 1031}) {
    int64_t rows = 9, stride = vocabulary + 3;
    Floats logits = randomExact<T>(rows * stride, "logits", 6.0), dloss = randomFloats(rows, "g");
    std::vector<int64_t> labels = {0, vocabulary - 1, -100, vocabulary / 2, 0, -100, 0, 1, 2};
    Narrow<T> narrow = rounded<T>(logits), nd(logits.size());
    Floats loss(rows), lse(rows), d(logits.size()), loss2(rows), lse2(rows);
    crossEntropyForward(loss.data(), lse.data(), logits.data(), labels.data(), rows, vocabulary,
                        stride, -100);
    crossEntropyForward(loss2.data(), lse2.data(), narrow.data(), labels.data(), rows, vocabulary,
                        stride, -100);
    EXPECT_EQ(loss2, loss);
    EXPECT_EQ(lse2, lse);
    crossEntropyBackward(d.data(), dloss.data(), 1, logits.data(), lse.data(), labels.data(), rows,
                         vocabulary, stride, -100);
    crossEntropyBackward(nd.data(), dloss.data(), 1, narrow.data(), lse.data(), labels.data(), rows,
                         vocabulary, stride, -100);
    EXPECT_ROUNDED(nd, d);
    Narrow<T> inPlace = narrow;
    crossEntropyBackward(inPlace.data(), dloss.data(), 1, inPlace.data(), lse.data(), labels.data(),
                         rows, vocabulary, stride, -100);
    EXPECT_ROUNDED(inPlace, d);
    TokenRows shard(vocabulary + 10, 2, stride);
    logSumExp(lse.data(), logits.data(), rows, shard);
    logSumExp(lse2.data(), narrow.data(), rows, shard);
    EXPECT_EQ(lse2, lse);
    tokenLoss(loss.data(), logits.data(), lse.data(), labels.data(), rows, shard, -100);
    tokenLoss(loss2.data(), narrow.data(), lse.data(), labels.data(), rows, shard, -100);
    EXPECT_EQ(loss2, loss);
  }
}

TYPED_TEST(HalfKernels, Reductions) {
  using T = TypeParam;
  struct Case {
    int64_t outer, n, inner;
  };
  for (Case c : {Case{1, 1, 1}, {3, 5, 1}, {2, 10000, 1}, {1, 130, 77}, {2, 65, 1130}}) {
    Floats x = randomExact<T>(c.outer * c.n * c.inner, "x"),
           y = randomExact<T>(c.outer * c.inner, "y");
    Narrow<T> nx = rounded<T>(x);
    for (Write write : kWrites) {
      Floats sum = y, wide = y;
      Narrow<T> narrow = rounded<T>(y);
      reduceSum(sum.data(), x.data(), c.outer, c.n, c.inner, write);
      reduceSum(narrow.data(), nx.data(), c.outer, c.n, c.inner, write);
      reduceSum(wide.data(), nx.data(), c.outer, c.n, c.inner, write);
      EXPECT_ROUNDED(narrow, sum);
      EXPECT_EQ(wide, sum);
      columnSum(sum.data(), x.data(), c.n, c.inner, c.inner, write);
      columnSum(wide.data(), nx.data(), c.n, c.inner, c.inner, write);
      EXPECT_EQ(wide, sum);
    }
    Floats mean = y, largest = y;
    Narrow<T> narrowMean = rounded<T>(y), narrowLargest = narrowMean;
    reduceMean(mean.data(), x.data(), c.outer, c.n, c.inner);
    reduceMean(narrowMean.data(), nx.data(), c.outer, c.n, c.inner);
    EXPECT_ROUNDED(narrowMean, mean);
    reduceMax(largest.data(), x.data(), c.outer, c.n, c.inner);
    reduceMax(narrowLargest.data(), nx.data(), c.outer, c.n, c.inner);
    EXPECT_ROUNDED(narrowLargest, largest);
    EXPECT_EQ(sumOfSquares(nx.data(), int64_t(x.size())),
              sumOfSquares(x.data(), int64_t(x.size())));
  }
}

TYPED_TEST(HalfKernels, CopiesAndCasts) {
  using T = TypeParam;
  Floats x = randomExact<T>(6 * 40, "x"), y(x.size()), any = randomFloats(1003, "any", 1e4);
  Narrow<T> nx = rounded<T>(x), ny(x.size()), cast(any.size());
  dropout(y.data(), x.data(), Shape{6, 40}, Shape{6, 40}, {0.3, 1, 7}, 0);
  dropout(ny.data(), nx.data(), Shape{6, 40}, Shape{6, 40}, {0.3, 1, 7}, 0);
  EXPECT_ROUNDED(ny, y);
  for (Pairs pairs : {Pairs::Halves, Pairs::Interleaved}) {
    rotateHalf(y.data(), x.data(), 6, 40, pairs);
    rotateHalf(ny.data(), nx.data(), 6, 40, pairs);
    EXPECT_ROUNDED(ny, y);
    for (Turn turn : {Turn::Forth, Turn::Back}) {
      Shape dense{40, 1}, repeated{0, 1}, shape{6, 40};
      rotary(y.data(), dense, x.data(), dense, any.data(), repeated, any.data() + 40, repeated,
             shape, pairs, turn);
      rotary(ny.data(), dense, nx.data(), dense, any.data(), repeated, any.data() + 40, repeated,
             shape, pairs, turn);
      EXPECT_ROUNDED(ny, y);
    }
  }
  copyRows(y.data(), 40, x.data() + 8, 40, 5, 32);
  copyRows(ny.data(), 40, nx.data() + 8, 40, 5, 32);
  EXPECT_ROUNDED(ny, y);
  Floats twice(6 * 80), sums(x.size());
  Narrow<T> nTwice(twice.size()), nSums(x.size());
  repeat(twice.data(), x.data(), 1, 6, 2, {0, 12}, 40);
  repeat(nTwice.data(), nx.data(), 1, 6, 2, {0, 12}, 40);
  EXPECT_ROUNDED(nTwice, twice);
  Floats dy = randomExact<T>(2 * 7 * 40, "dy");
  Narrow<T> ndy = rounded<T>(dy);
  sums.resize(2 * 3 * 40);
  nSums.resize(sums.size());
  repeatSum(sums.data(), dy.data(), 2, 3, 4, {2, 7}, 40); // a shard: indices 0 to 2, 2, 4, 1 times
  repeatSum(nSums.data(), ndy.data(), 2, 3, 4, {2, 7}, 40);
  EXPECT_ROUNDED(nSums, sums);
  accumulate(y.data(), x.data(), int64_t(x.size()));
  Floats wide = widened(ny);
  accumulate(ny.data(), nx.data(), int64_t(x.size()));
  accumulate(wide.data(), nx.data(), int64_t(x.size()));
  EXPECT_ROUNDED(ny, wide);
  fill(ny.data(), 0.1f, 7);
  EXPECT_EQ(ny[6].bits, T(0.1f).bits);

  convert(cast.data(), any.data(), int64_t(any.size()));
  EXPECT_ROUNDED(cast, any);
  Floats back(any.size());
  convert(back.data(), cast.data(), int64_t(any.size()));
  EXPECT_EQ(back, widened(cast));
  Narrow<BFloat16> other(any.size());
  convert(other.data(), cast.data(), int64_t(any.size()));
  EXPECT_ROUNDED(other, back);
}

TEST(ConvertStochastically, DependsOnTheElementsNumberAlone) {
  Floats x = randomFloats(1000, "x");
  Narrow<BFloat16> full(1000), shard(100);
  convertStochastically(full.data(), x.data(), 1000, 42, 0);
  convertStochastically(shard.data(), x.data() + 300, 100, 42, 300);
  double error = 0, nearest = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(full[i].bits,
              roundStochastically(x[i], uint16_t(mix64(42 + uint64_t(i)) >> 48)).bits);
    if (i >= 300 && i < 400) {
      EXPECT_EQ(shard[i - 300].bits, full[i].bits);
    }
    error += double(full[i]) - x[i];
    nearest += std::fabs(double(BFloat16(x[i])) - x[i]);
  }
  EXPECT_LT(std::fabs(error), 0.2 * nearest);
}

} // namespace
} // namespace partita_rt
