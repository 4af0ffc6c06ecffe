// Softmax and cross-entropy of rows.

#include "simulated.h"

namespace partita_rt::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T> class Rows : public testing::Test {};
TYPED_TEST_SUITE(Rows, StorageTypes);

TYPED_TEST(Rows, Softmax) {
  using T = TypeParam;
  for (int64_t width : {1, 16, 31, 257, 776, 1100, 16400}) { // 776: full packs, none aligned
    SCOPED_TRACE(width);
    int64_t rows = width > 2000 ? 2 : 9, offset = width % 3;
    Floats x = randomExact<T>(rows * width, "x", 8.0), dy = randomExact<T>(rows * width, "dy");
    if (width > 1)
      std::fill_n(x.begin() + width, width, -kInf); // row 1: masked entirely
    Floats y(x.size()), dx(x.size()), cpu(x.size());
    SimulatedStream stream;
    softmaxForward(stream, y.data(), x.data(), rows, width);
    partita_rt::softmaxForward(cpu.data(), x.data(), rows, width);
    EXPECT_CLOSE(y, widen(cpu), 1e-6);
    Floats yExact = widened(rounded<T>(y));
    softmaxBackward(stream, dx.data(), dy.data(), yExact.data(), rows, width);
    partita_rt::softmaxBackward(cpu.data(), dy.data(), yExact.data(), rows, width);
    EXPECT_CLOSE(dx, widen(cpu), width == 1 ? 1e30 : 1e-5);
    inEveryOrder([&] {
      Tensor<T> in(x, offset), out(rows * width, offset), g(dy, offset), gradient(g);
      softmaxForward(stream, out.data(), in.in(), rows, width);
      EXPECT_BITS(out, y);
      softmaxForward(stream, in.data(), in.in(), rows, width);
      EXPECT_BITS(in, y);
      softmaxBackward(stream, gradient.data(), g.in(), out.in(), rows, width);
      EXPECT_BITS(gradient, dx);
      softmaxBackward(stream, g.data(), g.in(), out.in(), rows, width);
      EXPECT_BITS(g, dx);
    });
  }
}

TEST(Softmax, KeepsNaN) {
  Floats x(40, 1.0f), y(40);
  x[5] = std::nanf("");
  softmaxForward(SimulatedStream(), y.data(), x.data(), 2, 20);
  EXPECT_TRUE(std::isnan(y[5]) && std::isnan(y[19]));
  EXPECT_FLOAT_EQ(y[20], 0.05f);
}

/// Copies rows to another stride, padded with `filler`.
Floats withStride(const Floats &x, int64_t rows, int64_t stride, int64_t to, float filler) {
  Floats y(size_t(rows * to), filler);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(x.begin() + row * stride, std::min(stride, to), y.begin() + row * to);
  return y;
}

TYPED_TEST(Rows, CrossEntropy) {
  using T = TypeParam;
  for (int64_t vocabulary : {5, 100, 1031, 17000}) {
    SCOPED_TRACE(vocabulary);
    int64_t rows = vocabulary > 2000 ? 3 : 9, stride = vocabulary + 3;
    Floats logits = randomExact<T>(rows * stride, "logits", 6.0), dloss = randomFloats(rows, "g");
    std::vector<int64_t> labels = {0, vocabulary - 1, -100, vocabulary / 2, 0, -100, 0, 1, 2};
    Floats loss(rows), lse(rows), d(logits.size()), other(rows), otherD(logits.size());
    SimulatedStream stream;
    partita_rt::crossEntropyForward(other.data(), lse.data(), logits.data(), labels.data(), rows,
                                    vocabulary, stride, -100);
    crossEntropyForward(stream, loss.data(), lse.data(), logits.data(), labels.data(), rows,
                        vocabulary, stride, -100);
    EXPECT_CLOSE(loss, widen(other), 1e-6);
    partita_rt::crossEntropyBackward(otherD.data(), dloss.data(), 1, logits.data(), lse.data(),
                                     labels.data(), rows, vocabulary, stride, -100);
    crossEntropyBackward(stream, d.data(), dloss.data(), 1, logits.data(), lse.data(),
                         labels.data(), rows, vocabulary, stride, -100);
    EXPECT_CLOSE(d, widen(otherD), 2e-6);
    inEveryOrder([&] {
      int64_t padded = vocabulary / 8 * 8 + 16; // aligned rows, which are held in shared memory
      Tensor<T> x(logits), dx(logits), unaligned(logits, 1);
      Tensor<T> held(withStride(logits, rows, stride, padded, 7.0f));
      Tensor<float> l(rows), e(rows);
      crossEntropyForward(stream, l.data(), e.data(), x.in(), labels.data(), rows, vocabulary,
                          stride, -100);
      EXPECT_BITS(l, loss);
      EXPECT_BITS(e, lse);
      crossEntropyBackward(stream, dx.data(), dloss.data(), 1, x.in(), e.in(), labels.data(), rows,
                           vocabulary, stride, -100);
      EXPECT_BITS(dx, d);
      crossEntropyBackward(stream, x.data(), dloss.data(), 1, x.in(), e.in(), labels.data(), rows,
                           vocabulary, stride, -100);
      EXPECT_BITS(x, d); // in place
      crossEntropyLossGrad(stream, l.data(), unaligned.data(), dloss.data(), 1, labels.data(), rows,
                           vocabulary, stride, -100);
      EXPECT_BITS(l, loss);
      EXPECT_BITS(unaligned, d);
      crossEntropyLossGrad(stream, l.data(), held.data(), dloss.data(), 1, labels.data(), rows,
                           vocabulary, padded, -100);
      EXPECT_BITS(l, loss);
      EXPECT_BITS(held, withStride(d, rows, stride, padded, 0.0f));
    });
    EXPECT_EQ(stream.faults.kind, Fault::None);
  }
}

TYPED_TEST(Rows, VocabParallelCrossEntropy) { // the last of three ranks: two columns of padding
  using T = TypeParam;
  constexpr int64_t rows = 5, full = 100;
  TokenRows shard(full, 68, 34);
  std::vector<int64_t> labels = {68, 99, 3, -100, 80};
  Floats logits = randomExact<T>(rows * shard.count, "logits", 6.0), y(rows), loss(rows),
         expected(rows), d(logits.size()), dloss(1, 0.25f);
  SimulatedStream stream;
  partita_rt::logSumExp(y.data(), logits.data(), rows, shard);
  Tensor<T> x(logits), dx(logits);
  Tensor<float> lse(rows), l(rows);
  logSumExp(stream, lse.data(), x.in(), rows, shard);
  EXPECT_NEAR_ALL(lse, y, 1e-6);
  partita_rt::tokenLoss(expected.data(), logits.data(), lse.in(), labels.data(), rows, shard, -100);
  tokenLoss(stream, l.data(), x.in(), lse.in(), labels.data(), rows, shard, -100);
  EXPECT_BITS(l, expected);
  partita_rt::crossEntropyBackward(d.data(), dloss.data(), 0, logits.data(), lse.in(),
                                   labels.data(), rows, shard, shard.count, -100);
  crossEntropyBackward(stream, dx.data(), dloss.data(), 0, x.in(), lse.in(), labels.data(), rows,
                       shard, shard.count, -100);
  EXPECT_CLOSE(dx.floats(), widen(widened(rounded<T>(d))), 1e-2); // some are close to a tie
  EXPECT_TRUE(dx.marginsKept());
}

TEST(CrossEntropy, LabelsThatAreNone) {
  Floats logits = randomFloats(4 * 10, "logits"), loss(4), lse(4), d(40), dloss(4, 1.0f);
  std::vector<int64_t> labels = {1, 10, -100, 2};
  SimulatedStream stream;
  crossEntropyForward(stream, loss.data(), lse.data(), logits.data(), labels.data(), 4, 10, 10,
                      -100);
  EXPECT_EQ(errorOf([&] { check(stream.faults); }),
            "cross-entropy: label 10 of row 1 is outside 0 .. 9");
  EXPECT_EQ(loss[1], 0.0f);
  stream.faults = {};
  check(stream.faults);
  labels[1] = -1;
  crossEntropyBackward(stream, d.data(), dloss.data(), 1, logits.data(), lse.data(), labels.data(),
                       4, 10, 10, -100);
  EXPECT_EQ(errorOf([&] { check(stream.faults); }),
            "cross-entropy: label -1 of row 1 is outside 0 .. 9");
  EXPECT_EQ(d[10], 0.0f);
}

} // namespace
} // namespace partita_rt::cuda
