// Layer norm and root-mean-square norm: the CPU kernels' numbers; the bits must not depend on
// schedule, alignment or storage type.

#include "simulated.h"

namespace partita_rt::cuda {
namespace {

struct Size {
  int64_t rows, width, offset;
};
/// One warp per row and a block per row, held in registers or not; full packs, aligned or not, odd
/// widths and addresses.
constexpr Size kSizes[] = {{1, 1, 0},     {5, 7, 0},    {33, 64, 0},  {9, 100, 3},
                           {40, 385, 0},  {19, 768, 0}, {7, 768, 4},  {3, 1031, 1},
                           {21, 1200, 0}, {5, 2048, 1}, {2, 8200, 0}, {0, 8, 0}};

/// The results of the kernels for float operands, and their inputs.
struct Results {
  Floats y, mean, rstd, dx, dw, db, added, dwAdded, sums, sumsAdded;
};
struct Operands {
  Floats x, w, b, dy, dx0, dw0;
};

template <typename T> Operands operandsOf(const Size &s) {
  Operands o{randomExact<T>(s.rows * s.width, "x"),  randomExact<T>(s.width, "w"),
             randomExact<T>(s.width, "b"),           randomExact<T>(s.rows * s.width, "dy"),
             randomExact<T>(s.rows * s.width, "dx"), randomExact<T>(s.width, "dw")};
  for (float &value : o.x)
    value = float(T(value + 3.0f));
  return o;
}

/// The float kernels of a namespace: `K::` forward and backward with or without a stream.
struct OnCpu {
  template <typename... A> static void layerForward(A... a) { partita_rt::layerNormForward(a...); }
  template <typename... A> static void layerBackward(A... a) {
    partita_rt::layerNormBackward(a...);
  }
  template <typename... A> static void rmsForward(A... a) { partita_rt::rmsNormForward(a...); }
  template <typename... A> static void rmsBackward(A... a) { partita_rt::rmsNormBackward(a...); }
};
struct OnGpu {
  static Stream &stream() {
    static SimulatedStream stream(1 << 23);
    return stream;
  }
  template <typename... A> static void layerForward(A... a) { layerNormForward(stream(), a...); }
  template <typename... A> static void layerBackward(A... a) { layerNormBackward(stream(), a...); }
  template <typename... A> static void rmsForward(A... a) { rmsNormForward(stream(), a...); }
  template <typename... A> static void rmsBackward(A... a) { rmsNormBackward(stream(), a...); }
};

template <typename K> Results layerNorm(const Operands &o, const Size &s) {
  size_t rows = size_t(s.rows);
  Results r{Floats(o.x.size()),
            Floats(rows),
            Floats(rows),
            Floats(o.x.size()),
            o.w,
            o.w,
            o.dx0,
            o.dw0,
            o.w,
            o.dw0};
  const float *x = o.x.data(), *w = o.w.data(), *b = o.b.data(), *dy = o.dy.data();
  K::layerForward(r.y.data(), r.mean.data(), r.rstd.data(), x, w, b, s.rows, s.width, 1e-5f);
  const float *mean = r.mean.data(), *rstd = r.rstd.data();
  float *none = nullptr;
  K::layerBackward(r.dx.data(), r.dw.data(), r.db.data(), r.sums.data(), dy, x, w, mean, rstd,
                   s.rows, s.width, Write::Set, Write::Set);
  K::layerBackward(r.added.data(), r.dwAdded.data(), none, r.sumsAdded.data(), dy, x, w, mean, rstd,
                   s.rows, s.width, Write::Add, Write::Add);
  return r;
}

template <typename K> Results rmsNorm(const Operands &o, const Size &s) {
  Results r{Floats(o.x.size()),
            {},
            Floats(size_t(s.rows)),
            Floats(o.x.size()),
            o.w,
            {},
            o.dx0,
            o.dw0,
            {},
            {}};
  const float *x = o.x.data(), *w = o.w.data(), *dy = o.dy.data();
  K::rmsForward(r.y.data(), r.rstd.data(), x, w, s.rows, s.width, 1e-6f);
  const float *rstd = r.rstd.data();
  K::rmsBackward(r.dx.data(), r.dw.data(), dy, x, w, rstd, s.rows, s.width, Write::Set, Write::Set);
  K::rmsBackward(r.added.data(), r.dwAdded.data(), dy, x, w, rstd, s.rows, s.width, Write::Add,
                 Write::Add);
  return r;
}

void expectClose(const Results &a, const Results &b, const Size &s) {
  EXPECT_CLOSE(a.y, widen(b.y), 3e-6);
  EXPECT_CLOSE(a.mean, widen(b.mean), 2e-6);
  EXPECT_CLOSE(a.rstd, widen(b.rstd), 3e-6);
  EXPECT_CLOSE(a.dx, widen(b.dx), s.width < 4 ? 1e30 : 1e-5);
  EXPECT_CLOSE(a.dw, widen(b.dw), s.width < 4 ? 1e30 : 1e-5);
  EXPECT_CLOSE(a.db, widen(b.db), 1e-5);
  EXPECT_CLOSE(a.added, widen(b.added), s.width < 4 ? 1e30 : 1e-5);
  EXPECT_CLOSE(a.dwAdded, widen(b.dwAdded), 1e-5);
  EXPECT_CLOSE(a.sums, widen(b.sums), s.width < 4 ? 1e30 : 1e-5);
  EXPECT_CLOSE(a.sumsAdded, widen(b.sumsAdded), 1e-5);
}

/// Checks the sums of dx's columns, as stored, added to the previous values.
template <typename T>
void expectSums(const Floats &sums, const Floats &dx, const Floats &before, const Size &s) {
  Floats expected = before;
  partita_rt::columnSum(expected.data(), dx.data(), s.rows, s.width, s.width, Write::Add);
  EXPECT_CLOSE(sums, widen(widened(rounded<T>(expected))),
               (std::is_same_v<T, float> ? 1e-5 : 1e-2));
}

template <typename T> class Norm : public testing::Test {};
TYPED_TEST_SUITE(Norm, StorageTypes);

TYPED_TEST(Norm, LayerNorm) {
  using T = TypeParam;
  for (const Size &s : kSizes) {
    SCOPED_TRACE(testing::Message() << s.rows << " rows of " << s.width);
    Operands o = operandsOf<T>(s);
    Results cpu = layerNorm<OnCpu>(o, s), gpu = layerNorm<OnGpu>(o, s);
    expectClose(gpu, cpu, s);
    Floats firstSums;
    inEveryOrder([&] {
      SimulatedStream stream(normBackwardScratch(s.rows, s.width, 3));
      Tensor<T> x(o.x, s.offset), w(o.w, s.offset), b(o.b, s.offset), dy(o.dy, s.offset);
      Tensor<T> y(s.rows * s.width, s.offset), dx(o.dx0, s.offset), dw(o.dw0, s.offset),
          db(s.width, s.offset);
      Tensor<float> mean(s.rows), rstd(s.rows), wf(o.w), dwf(s.width), sumsf(s.width);
      Tensor<T> sums(o.dw0, s.offset);
      layerNormForward(stream, y.data(), mean.data(), rstd.data(), x.in(), w.in(), b.in(), s.rows,
                       s.width, 1e-5f);
      EXPECT_BITS(y, gpu.y);
      EXPECT_BITS(mean, gpu.mean);
      EXPECT_BITS(rstd, gpu.rstd);
      layerNormForward<T>(stream, x.data(), nullptr, nullptr, x.in(), wf.in(), b.in(), s.rows,
                          s.width, 1e-5f);
      EXPECT_BITS(x, gpu.y); // in place, without statistics, with a weight in float
      x = Tensor<T>(o.x, s.offset);
      layerNormBackward<T>(stream, dx.data(), dw.data(), nullptr, sums.data(), dy.in(), x.in(),
                           w.in(), mean.in(), rstd.in(), s.rows, s.width, Write::Add, Write::Add);
      EXPECT_BITS(dx, gpu.added);
      EXPECT_BITS(dw, gpu.dwAdded);
      expectSums<T>(sums.floats(), dx.floats(), o.dw0, s);
      EXPECT_TRUE(sums.marginsKept());
      Tensor<T> other(o.dx0, s.offset), onlyDx(o.dx0, s.offset);
      layerNormBackward<T>(stream, other.data(), nullptr, nullptr, sumsf.data(), dy.in(), x.in(),
                           w.in(), mean.in(), rstd.in(), s.rows, s.width);
      expectSums<float>(sumsf.floats(), other.floats(), Floats(size_t(s.width)), s);
      if (firstSums.empty())
        firstSums = sumsf.floats();
      EXPECT_BITS(sumsf, firstSums);
      layerNormBackward<T>(stream, onlyDx.data(), nullptr, nullptr, nullptr, dy.in(), x.in(),
                           w.in(), mean.in(), rstd.in(), s.rows, s.width);
      EXPECT_BITS(onlyDx, gpu.dx);
      layerNormBackward<T>(stream, dy.data(), dwf.data(), db.data(), nullptr, dy.in(), x.in(),
                           w.in(), mean.in(), rstd.in(), s.rows, s.width);
      EXPECT_BITS(dy, gpu.dx); // in place
      EXPECT_BITS(other, gpu.dx);
      EXPECT_BITS(dwf, gpu.dw);
      EXPECT_BITS(db, gpu.db);
    });
  }
}

TYPED_TEST(Norm, RmsNorm) {
  using T = TypeParam;
  for (const Size &s : kSizes) {
    SCOPED_TRACE(testing::Message() << s.rows << " rows of " << s.width);
    Operands o = operandsOf<T>(s);
    Results cpu = rmsNorm<OnCpu>(o, s), gpu = rmsNorm<OnGpu>(o, s);
    expectClose(gpu, cpu, s);
    SimulatedStream stream(normBackwardScratch(s.rows, s.width, 1));
    Tensor<T> x(o.x, s.offset), w(o.w, s.offset), dy(o.dy, s.offset);
    Tensor<T> y(s.rows * s.width, s.offset), dx(o.dx0, s.offset), dw(o.dw0, s.offset);
    Tensor<float> rstd(s.rows);
    simt::setOrder(simt::Order::Random, 3);
    rmsNormForward(stream, y.data(), rstd.data(), x.in(), w.in(), s.rows, s.width, 1e-6f);
    EXPECT_BITS(y, gpu.y);
    EXPECT_BITS(rstd, gpu.rstd);
    rmsNormBackward<T>(stream, dx.data(), dw.data(), dy.in(), x.in(), w.in(), rstd.in(), s.rows,
                       s.width, Write::Add, Write::Add);
    EXPECT_BITS(dx, gpu.added);
    EXPECT_BITS(dw, gpu.dwAdded);
    simt::setOrder(simt::Order::Forward);
  }
}

TEST(Norm, RowsThatFollowInABlock) {
  for (const Size &s : {Size{2200, 10, 0}, Size{135, 4104, 0}}) {
    ASSERT_LT(normBackwardBlocks(s.rows, s.width) * backwardShape(s.width).rows, s.rows);
    Operands o = operandsOf<float>(s);
    expectClose(layerNorm<OnGpu>(o, s), layerNorm<OnCpu>(o, s), s);
  }
}

/// Few enough for the second launch to add up quickly, whatever the number of rows.
TEST(Norm, PartialSumsAreFew) {
  for (int64_t width : {8, 512, 513, 768, 769, 1024, 1600, 4096, 8192})
    EXPECT_LE(normBackwardBlocks(1 << 24, width), 8 * kMultiprocessors) << width;
  EXPECT_EQ(normBackwardBlocks(1 << 24, 768), 2 * kMultiprocessors);
  EXPECT_EQ(backwardShape(768).threads, kWarp);
  EXPECT_EQ(normBackwardBlocks(3, 768), 1);
  EXPECT_EQ(normBackwardBlocks(3, 1600), 3);
}

TEST(Norm, WithoutWeightsIsWithOnes) {
  Floats x = randomFloats(3 * 20, "x"), dy = randomFloats(60, "dy"), ones(20, 1.0f),
         zeros(20, 0.0f), a(60), b(60), mean(3), rstd(3);
  SimulatedStream stream(0); // no gradient of a weight: no scratch memory
  layerNormForward<float>(stream, a.data(), mean.data(), rstd.data(), x.data(), nullptr, nullptr, 3,
                          20, 1e-5f);
  layerNormForward(stream, b.data(), nullptr, nullptr, x.data(), ones.data(), zeros.data(), 3, 20,
                   1e-5f);
  EXPECT_EQ(a, b);
  layerNormBackward<float>(stream, a.data(), nullptr, nullptr, nullptr, dy.data(), x.data(),
                           nullptr, mean.data(), rstd.data(), 3, 20);
  layerNormBackward<float>(stream, b.data(), nullptr, nullptr, nullptr, dy.data(), x.data(),
                           ones.data(), mean.data(), rstd.data(), 3, 20);
  EXPECT_EQ(a, b);
  EXPECT_EQ(errorOf([&] {
              layerNormBackward<float>(stream, a.data(), ones.data(), nullptr, nullptr, dy.data(),
                                       x.data(), nullptr, mean.data(), rstd.data(), 3, 20);
            }),
            "normBackward: 80 bytes of scratch memory, but the stream has 0");
}

} // namespace
} // namespace partita_rt::cuda
