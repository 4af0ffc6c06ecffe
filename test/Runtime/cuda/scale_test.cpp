// Tensors of more than 2^31 elements and 4 GiB: the last rows equal the same kernel's results for
// these rows alone, bit for bit. On the simulated GPU the tensors are small, which only tests the
// tests.

#include "matmuls_stream.h"

#include "partita_rt/partita_rt_cuda.h"

namespace partita_rt::cuda {
namespace {

#if defined(PARTITA_TEST_ON_GPU)
constexpr int64_t kElements = (int64_t(1) << 31) + (int64_t(1) << 22);
constexpr int64_t kVocabulary = 50257, kWidth = 1024, kHeads = 16, kSequence = 1024;
#else
constexpr int64_t kElements = 1 << 12;
constexpr int64_t kVocabulary = 41, kWidth = 40, kHeads = 2, kSequence = 16;
#endif
constexpr int64_t kTail = 8; ///< compared rows

/// Elements on the device; `data` is null if they do not fit.
template <typename T> struct Large {
  T *data = nullptr;
  explicit Large(int64_t n) {
    if (cudaMalloc(reinterpret_cast<void **>(&data), size_t(n) * sizeof(T)) != cudaSuccess)
      data = nullptr;
    (void)cudaGetLastError();
  }
  ~Large() { cudaFree(data); }
  Large(const Large &) = delete;
  Large &operator=(const Large &) = delete;
};

template <typename T> std::vector<T> read(const T *at, int64_t n) {
  std::vector<T> host(static_cast<size_t>(n));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(host.data(), at, size_t(n) * sizeof(T), cudaMemcpyDeviceToHost),
            cudaSuccess);
  return host;
}

/// Expects the same bits, and that they are not all equal.
template <typename T> void expectSame(const T *at, const T *wanted, int64_t n) {
  std::vector<T> a = read(at, n), b = read(wanted, n);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), size_t(n) * sizeof(T)), 0);
  bool differ = false;
  for (const T &each : a)
    differ = differ || std::memcmp(&each, &a[0], sizeof(T)) != 0;
  EXPECT_TRUE(differ);
}

template <typename T> void draw(const Stream &stream, T *values, int64_t n) {
  drawNormal(stream, values, n, 7, 0, 0.0, 1.0);
}

#define NEEDS(...)                                                                                 \
  for (const void *each : std::initializer_list<const void *>{__VA_ARGS__})                        \
    if (!each)                                                                                     \
  GTEST_SKIP() << "too little memory"

TEST(Scale, CrossEntropy) {
  SimulatedStream stream;
  const int64_t stride = (kVocabulary + 7) / 8 * 8, rows = kElements / stride + kTail;
  const int64_t before = (rows - kTail) * stride;
  Large<BFloat16> logits(rows * stride), tail(kTail * stride);
  Large<float> loss(rows), tailLoss(kTail), seed(rows);
  Large<int64_t> labels(rows);
  NEEDS(logits.data, tail.data, loss.data, tailLoss.data, seed.data, labels.data);
  draw(stream, logits.data, rows * stride);
  fill<int64_t>(stream, labels.data, 5, rows);
  fill<float>(stream, seed.data, 0.5f, rows);
  ASSERT_EQ(cudaMemcpy(tail.data, logits.data + before, size_t(kTail * stride) * 2,
                       cudaMemcpyDeviceToDevice),
            cudaSuccess);
  auto both = [&](float *loss, BFloat16 *x, int64_t rows) {
    crossEntropyForward<BFloat16>(stream, loss, nullptr, x, labels.data, rows, kVocabulary, stride,
                                  -100);
  };
  both(loss.data, logits.data, rows);
  both(tailLoss.data, tail.data, kTail);
  expectSame(loss.data + rows - kTail, tailLoss.data, kTail);
  crossEntropyLossGrad(stream, loss.data, logits.data, seed.data, 1, labels.data, rows, kVocabulary,
                       stride, -100);
  crossEntropyLossGrad(stream, tailLoss.data, tail.data, seed.data, 1, labels.data, kTail,
                       kVocabulary, stride, -100);
  expectSame(logits.data + before, tail.data, kTail * stride);
  expectSame(loss.data + rows - kTail, tailLoss.data, kTail);
}

TEST(Scale, Norm) {
  const int64_t rows = kElements / kWidth + kTail, before = (rows - kTail) * kWidth;
  SimulatedStream stream; // no gradient of a weight
  Large<BFloat16> x(rows * kWidth), y(rows * kWidth), tail(kTail * kWidth), weight(kWidth);
  Large<float> mean(rows), rstd(rows);
  NEEDS(x.data, y.data, tail.data, weight.data, mean.data, rstd.data);
  draw(stream, x.data, rows * kWidth);
  draw(stream, weight.data, kWidth);
  const BFloat16 *in = x.data, *w = weight.data;
  layerNormForward<BFloat16>(stream, y.data, mean.data, rstd.data, in, w, w, rows, kWidth, 1e-5f);
  layerNormForward<BFloat16>(stream, tail.data, mean.data, rstd.data, in + before, w, w, kTail,
                             kWidth, 1e-5f);
  expectSame(y.data + before, tail.data, kTail * kWidth);
  layerNormForward<BFloat16>(stream, y.data, mean.data, rstd.data, in, w, w, rows, kWidth, 1e-5f);
  layerNormBackward<BFloat16>(stream, y.data, nullptr, nullptr, nullptr, in, in, w, mean.data,
                              rstd.data, rows, kWidth);
  layerNormBackward<BFloat16>(stream, tail.data, nullptr, nullptr, nullptr, in + before,
                              in + before, w, mean.data + rows - kTail, rstd.data + rows - kTail,
                              kTail, kWidth);
  expectSame(y.data + before, tail.data, kTail * kWidth);
}

struct TwiceAndOne {
  __device__ void operator()(float &out, float x) const { out = 2.0f * x + 1.0f; }
};

TEST(Scale, Elements) {
  const int64_t rows = kElements / kWidth + kTail, n = rows * kWidth, before = n - kTail * kWidth;
  SimulatedStream stream(columnSumScratch(rows, kWidth));
  Large<BFloat16> x(n), y(n), tail(kTail * kWidth);
  Large<float> sums(kWidth);
  NEEDS(x.data, y.data, tail.data, sums.data);
  draw(stream, x.data, n);
  const BFloat16 *in = x.data;
  mapElements(stream, {n}, TwiceAndOne(), each(y.data), each(in));
  mapElements(stream, {kTail * kWidth}, TwiceAndOne(), each(tail.data), each(in + before));
  expectSame(y.data + before, tail.data, kTail * kWidth);
  fill<BFloat16>(stream, y.data, 0.0f, n);
  mapElements(stream, {rows, kWidth}, TwiceAndOne(), each(y.data, {kWidth}), each(in, {kWidth}));
  expectSame(y.data + before, tail.data, kTail * kWidth);
  fill<BFloat16>(stream, y.data, 1.0f, n);
  columnSum<float, BFloat16>(stream, sums.data, y.data, rows, kWidth, kWidth);
  for (float sum : read(sums.data, kWidth))
    ASSERT_EQ(sum, float(rows)); // an integer of 24 bits
}

TEST(Scale, Embedding) {
  SimulatedStream stream;
  const int64_t rows = kElements / kWidth + kTail, before = (rows - kTail) * kWidth, table = 100;
  Large<BFloat16> y(rows * kWidth), w(table * kWidth), tail(kTail * kWidth);
  Large<int64_t> ids(rows);
  NEEDS(y.data, w.data, tail.data, ids.data);
  draw(stream, w.data, table * kWidth);
  fill<int64_t>(stream, ids.data, table - 1, rows);
  embeddingForward<BFloat16, int64_t>(stream, y.data, ids.data, w.data, rows, kWidth,
                                      TokenRowsAt{table});
  embeddingForward<BFloat16, int64_t>(stream, tail.data, ids.data, w.data, kTail, kWidth,
                                      TokenRowsAt{table});
  expectSame(y.data + before, tail.data, kTail * kWidth);
}

/// The last tokens are those of a row each; all others are one token's.
TEST(Scale, EmbeddingBackward) {
  const int64_t rows = kElements / kWidth + kTail, before = (rows - kTail) * kWidth, table = 20;
  SimulatedStream stream(rowSumScratch(rows, kWidth));
  Large<BFloat16> dy(rows * kWidth), dtable(table * kWidth);
  Large<int64_t> ids(rows);
  NEEDS(dy.data, dtable.data, ids.data);
  draw(stream, dy.data, rows * kWidth);
  fill<int64_t>(stream, ids.data, 3, rows);
  iota<int64_t>(stream, ids.data + rows - kTail, table - kTail, 1, kTail);
  embeddingBackward<BFloat16, BFloat16, int64_t>(stream, dtable.data, dy.data, ids.data, rows,
                                                 kWidth, TokenRowsAt{table});
  expectSame(dtable.data + (table - kTail) * kWidth, dy.data + before, kTail * kWidth);
}

TEST(Scale, Convert) {
  SimulatedStream stream;
  const int64_t rows = kElements / kWidth + kTail, n = rows * kWidth, before = n - kTail * kWidth;
  Large<BFloat16> x(n), again(n);
  Large<float> y(n), tail(kTail * kWidth);
  NEEDS(x.data, again.data, y.data, tail.data);
  draw(stream, x.data, n);
  convert<float, BFloat16>(stream, y.data, x.data, n);
  convert<float, BFloat16>(stream, tail.data, x.data + before, kTail * kWidth);
  expectSame(y.data + before, tail.data, kTail * kWidth);
  convert<BFloat16, float>(stream, again.data, y.data, n);
  expectSame(again.data + before, x.data + before, kTail * kWidth);
}

TEST(Scale, Dropout) {
  SimulatedStream stream;
  const int64_t rows = kElements / kWidth + kTail, before = (rows - kTail) * kWidth;
  Large<BFloat16> x(rows * kWidth), y(rows * kWidth), tail(kTail * kWidth);
  NEEDS(x.data, y.data, tail.data);
  draw(stream, x.data, rows * kWidth);
  const Shape full{rows, kWidth};
  const DropoutAt half{0.5, 3, 42};
  dropout<BFloat16>(stream, y.data, x.data, full, full, half, 0);
  dropout<BFloat16>(stream, tail.data, x.data + before, {kTail, kWidth}, full, half, before);
  expectSame(y.data + before, tail.data, kTail * kWidth);
}

/// Part of each row; the transpose, and back.
TEST(Scale, Copies) {
  SimulatedStream stream;
  const int64_t rows = kElements / kWidth + kTail, before = (rows - kTail) * kWidth;
  const int64_t part = kWidth - 8;
  Large<BFloat16> x(rows * kWidth), y(rows * kWidth), z(rows * kWidth), tail(kTail * part);
  NEEDS(x.data, y.data, z.data, tail.data);
  draw(stream, x.data, rows * kWidth);
  copyRows<BFloat16>(stream, y.data, part, x.data, kWidth, rows, part);
  copyRows<BFloat16>(stream, tail.data, part, x.data + before, kWidth, kTail, part);
  expectSame(y.data + (rows - kTail) * part, tail.data, kTail * part);
  stridedCopy(stream, y.data, {1, rows}, x.data, {kWidth, 1}, {rows, kWidth}, 2);
  stridedCopy(stream, z.data, {kWidth, 1}, y.data, {1, rows}, {rows, kWidth}, 2);
  expectSame(z.data + before, x.data + before, kTail * kWidth);
}

/// The last sequence, with queries, keys and values side by side.
TEST(Scale, Attention) {
  SimulatedStream stream;
  const int64_t width = kHeads * 64, row = 3 * width, batch = kElements / (kSequence * row) + 1;
  AttentionShape all{batch, kHeads, kSequence, kSequence, 64, 64, 1, true, 0.125f}, one = all;
  one.batch = 1;
  Large<BFloat16> qkv(batch * kSequence * row), dqkv(batch * kSequence * row);
  Large<BFloat16> out(batch * kSequence * width), tail(kSequence * width), dtail(kSequence * row);
  Large<float> lse(batch * kHeads * kSequence), space(attentionBackwardWorkspace(all));
  NEEDS(qkv.data, dqkv.data, out.data, tail.data, dtail.data, lse.data, space.data);
  draw(stream, qkv.data, batch * kSequence * row);
  auto part = [&](auto *data, int i) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data + i * width, kSequence * row, row,
                                                          64};
  };
  auto plain = [&](auto *data) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data, kSequence * width, width, 64};
  };
  auto both = [&](const BFloat16 *in, BFloat16 *grad, BFloat16 *result,
                  const AttentionShape &shape) {
    const BFloat16 *made = result;
    attentionForward(stream, plain(result), lse.data, part(in, 0), part(in, 1), part(in, 2), shape);
    attentionBackward(stream, part(grad, 0), part(grad, 1), part(grad, 2), space.data, plain(made),
                      plain(made), lse.data, part(in, 0), part(in, 1), part(in, 2), shape);
  };
  const int64_t before = (batch - 1) * kSequence;
  both(qkv.data, dqkv.data, out.data, all);
  both(qkv.data + before * row, dtail.data, tail.data, one);
  expectSame(out.data + before * width, tail.data, kSequence * width);
  expectSame(dqkv.data + before * row, dtail.data, kSequence * row);
}

/// Integers, so that the order of sums does not matter.
TEST(Scale, Matmul) {
  MatmulsStream stream;
  const int64_t columns = (kVocabulary + 7) / 8 * 8, inner = 64, rows = kElements / columns + kTail;
  Floats a = integers(rows * inner, "a"), b = integers(columns * inner, "b");
  std::vector<BFloat16> left(a.begin(), a.end()), right(b.begin(), b.end());
  OnDevice<BFloat16> x(left), w(right);
  Large<BFloat16> y(rows * columns);
  NEEDS(x.data, w.data, y.data);
  const BFloat16 *xIn = x.data, *wIn = w.data;
  gemm(stream, Trans::No, Trans::Yes, rows, columns, inner, 1.0f, xIn, inner, wIn, inner, 0.0f,
       y.data, columns);
  Floats wanted(size_t(kTail * columns));
  partita_rt::gemm(Trans::No, Trans::Yes, kTail, columns, inner, 1.0f,
                   a.data() + (rows - kTail) * inner, inner, b.data(), inner, 0.0f, wanted.data(),
                   columns);
  std::vector<BFloat16> made = read(y.data + (rows - kTail) * columns, kTail * columns);
  for (size_t i = 0; i < made.size(); ++i)
    ASSERT_EQ(float(made[i]), float(BFloat16(wanted[i]))) << i;
}

} // namespace
} // namespace partita_rt::cuda
