// Attention on tensor cores, on the simulated ones, against sums in double, within the roundings
// that it makes; bits that depend on no schedule and no alignment.

#include "attention_reference.h"
#include "cuda/attention/mma.cuh"
#include "simulated.h"

#include <utility>

namespace partita_rt::cuda {
namespace {

/// Half the distance of two numbers of T, in relation to them.
template <typename T> constexpr double kRounding = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;

struct Case {
  const char *what;
  AttentionShape shape;
};

AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t keys, int64_t dim,
                       bool causal, int64_t groups = 1, int64_t valueDim = 0, int64_t window = 0) {
  return {batch,  heads,  sequence,
          keys,   dim,    valueDim ? valueDim : dim,
          groups, causal, 1.0f / std::sqrt(float(dim)),
          window};
}

const Case kCases[] = {
    {"one key", shapeOf(1, 1, 1, 1, 64, true)},
    {"heads of 64, odd sequence", shapeOf(2, 1, 65, 65, 64, true)},
    {"heads of 80, not causal", shapeOf(1, 1, 40, 67, 80, false)},
    {"heads of 96", shapeOf(1, 1, 130, 130, 96, true)},
    {"heads of 128, grouped queries", shapeOf(1, 4, 70, 70, 128, true, 2)},
    {"several tiles of queries and keys", shapeOf(1, 1, 197, 197, 64, true)},
    {"heads of 7 with values of 12", shapeOf(1, 1, 20, 70, 7, false, 1, 12)},
    {"more keys than queries", shapeOf(1, 2, 33, 150, 24, true, 2)},
    {"queries that see no key", shapeOf(1, 1, 200, 50, 20, true)},
    // The first 128 keys are seen by queries 0 .. 160, one more than a tile's end.
    {"a window", shapeOf(1, 1, 200, 200, 16, true, 1, 0, 34)},
    {"keys that no query sees", shapeOf(1, 1, 30, 230, 16, false, 1, 0, 70)},
    {"no key", shapeOf(1, 1, 5, 0, 16, false)},
};

/// Heads inside a packed projection: q, k and v side by side in rows of so many elements, or plain.
template <typename T> struct Call {
  AttentionShape a;
  int64_t kvHeads = a.heads / a.groups;
  int64_t qWidth = a.heads * a.headDim, kWidth = kvHeads * a.headDim, vWidth = kvHeads * a.valueDim,
          outWidth = a.heads * a.valueDim;
  Tensor<T> q, k, v, dout, out, dq, dk, dv;
  Tensor<float> lse, workspace;

  Call(const AttentionShape &shape, int64_t offset = 0)
      : a(shape), q(randomExact<T>(a.batch * a.sequence * qWidth, "q"), offset),
        k(randomExact<T>(a.batch * a.keySequence * kWidth, "k"), offset),
        v(randomExact<T>(a.batch * a.keySequence * vWidth, "v"), offset),
        dout(randomExact<T>(a.batch * a.sequence * outWidth, "dout"), offset),
        out(a.batch * a.sequence * outWidth, offset), dq(a.batch * a.sequence * qWidth, offset),
        dk(a.batch * a.keySequence * kWidth, offset), dv(a.batch * a.keySequence * vWidth, offset),
        lse(a.batch * a.heads * a.sequence), workspace(attentionBackwardWorkspace(a)) {}

  template <typename P> static HeadsOf<P> of(P *data, int64_t rows, int64_t width, int64_t dim) {
    return {data, rows * width, width, dim};
  }
  HeadsOf<const T> qHeads() const { return of(q.in(), a.sequence, qWidth, a.headDim); }
  HeadsOf<const T> kHeads() const { return of(k.in(), a.keySequence, kWidth, a.headDim); }
  HeadsOf<const T> vHeads() const { return of(v.in(), a.keySequence, vWidth, a.valueDim); }
  void forward() {
    SimulatedStream stream;
    attentionForward(stream, of(out.data(), a.sequence, outWidth, a.valueDim), lse.data(), qHeads(),
                     kHeads(), vHeads(), a);
  }
  void backward() {
    SimulatedStream stream;
    attentionBackward(stream, of(dq.data(), a.sequence, qWidth, a.headDim),
                      of(dk.data(), a.keySequence, kWidth, a.headDim),
                      of(dv.data(), a.keySequence, vWidth, a.valueDim), workspace.data(),
                      of(dout.in(), a.sequence, outWidth, a.valueDim),
                      of(out.in(), a.sequence, outWidth, a.valueDim), lse.in(), qHeads(), kHeads(),
                      vHeads(), a);
  }
};

/// body(offset) in every order, first with tensors at addresses of no pack; once for Half, which
/// has the same kernel.
template <typename T, typename Body> void inOrders(Body body) {
  if (std::is_same_v<T, Half>)
    return body(1);
  inEveryOrder([&, offset = 1]() mutable { body(std::exchange(offset, 0)); });
}

template <typename T> class AttentionOnTensorCores : public testing::Test {};
TYPED_TEST_SUITE(AttentionOnTensorCores, NarrowTypes);

TYPED_TEST(AttentionOnTensorCores, Forward) {
  using T = TypeParam;
  for (const Case &c : kCases) {
    SCOPED_TRACE(c.what);
    Call<T> call(c.shape);
    call.forward();
    AttentionReference wanted(c.shape, call.q.floats(), call.k.floats(), call.v.floats());
    // Every probability is rounded once, and the result.
    EXPECT_LE(wanted.out.excess(call.out.floats(), kRounding<T>, 1e-4), 0.0);
    EXPECT_TRUE(call.out.marginsKept() && call.lse.marginsKept());
    for (size_t i = 0; i < wanted.logSumExp.size(); ++i) {
      float actual = call.lse.in()[i], exact = float(wanted.logSumExp[i]);
      EXPECT_TRUE(actual == exact || std::fabs(actual - exact) <= 2e-6f * (1 + std::fabs(exact)))
          << i << ": " << actual << " " << exact;
    }
    inOrders<T>([&](int64_t offset) {
      Call<T> again(c.shape, offset);
      again.forward();
      EXPECT_BITS(again.out, call.out.floats());
      EXPECT_BITS(again.lse, call.lse.floats());
    });
  }
}

TYPED_TEST(AttentionOnTensorCores, Backward) {
  using T = TypeParam;
  for (const Case &c : kCases) {
    SCOPED_TRACE(c.what);
    Call<T> call(c.shape);
    call.forward();
    call.backward();
    AttentionReference forward(c.shape, call.q.floats(), call.k.floats(), call.v.floats());
    AttentionGradients wanted(forward, call.dout.floats(), call.out.floats());
    // Every probability, or gradient of a score, is rounded once, and the result.
    EXPECT_LE(wanted.dq.excess(call.dq.floats(), kRounding<T>, 1e-4), 0.0);
    EXPECT_LE(wanted.dk.excess(call.dk.floats(), kRounding<T>, 1e-4), 0.0);
    EXPECT_LE(wanted.dv.excess(call.dv.floats(), kRounding<T>, 1e-4), 0.0);
    EXPECT_TRUE(call.dq.marginsKept() && call.dk.marginsKept() && call.dv.marginsKept() &&
                call.workspace.marginsKept());
    inOrders<T>([&](int64_t offset) {
      Call<T> again(c.shape, offset);
      std::copy_n(call.out.in(), call.out.values().size(), again.out.data());
      std::copy_n(call.lse.in(), call.lse.values().size(), again.lse.data());
      again.backward();
      EXPECT_BITS(again.dq, call.dq.floats());
      EXPECT_BITS(again.dk, call.dk.floats());
      EXPECT_BITS(again.dv, call.dv.floats());
    });
  }
}

TYPED_TEST(AttentionOnTensorCores, PackedProjections) {
  using T = TypeParam;
  AttentionShape a = shapeOf(2, 3, 37, 37, 16, true);
  Call<T> plain(a);
  plain.forward();
  plain.backward();
  int64_t width = plain.qWidth, rows = a.batch * a.sequence;
  Tensor<T> qkv(rows * 3 * width), dqkv(rows * 3 * width);
  auto copy = [&](int i, const Tensor<T> &from) {
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from.in() + row * width, width, qkv.data() + (3 * row + i) * width);
  };
  copy(0, plain.q);
  copy(1, plain.k);
  copy(2, plain.v);
  auto packed = [&](auto *data, int i) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data + i * width, a.sequence * 3 * width,
                                                          3 * width, 16};
  };
  Call<T> call(a);
  const T *in = qkv.in();
  SimulatedStream stream;
  attentionForward(stream, call.of(call.out.data(), a.sequence, width, 16), call.lse.data(),
                   packed(in, 0), packed(in, 1), packed(in, 2), a);
  EXPECT_BITS(call.out, plain.out.floats());
  attentionBackward(stream, packed(dqkv.data(), 0), packed(dqkv.data(), 1), packed(dqkv.data(), 2),
                    call.workspace.data(), call.of(call.dout.in(), a.sequence, width, 16),
                    call.of(call.out.in(), a.sequence, width, 16), call.lse.in(), packed(in, 0),
                    packed(in, 1), packed(in, 2), a);
  copy(0, plain.dq);
  copy(1, plain.dk);
  copy(2, plain.dv);
  EXPECT_BITS(dqkv, qkv.floats());
}

/// One warp: c = a b^T + c of a [16, 16], b [16, 16] and d = a b.
template <typename T> __global__ void products(float *c, float *d, const T *a, const T *b) {
  alignas(16) __shared__ T tiles[2][16][16];
  int lane = int(threadIdx.x);
  copyAsync(&tiles[0][lane / 2][lane % 2 * 8], a + lane * 8, 16);
  copyAsync(&tiles[1][lane / 2][lane % 2 * 8], b + lane * 8, 16);
  commitCopies();
  waitForCopies<0>();
  __syncwarp();
  uint32_t left[4], right[4], transposed[4];
  loadMatrices(left, &tiles[0][lane % 16][lane / 16 * 8]);
  loadMatrices(right, &tiles[1][lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
  loadTransposed(transposed, &tiles[1][lane % 16][lane / 16 * 8]);
  for (int half = 0; half < 2; ++half) {
    float byRows[4] = {1, 1, 1, 1}, plain[4] = {};
    multiplyAdd<T>(byRows, left, right[2 * half], right[2 * half + 1]);
    multiplyAdd<T>(plain, left, transposed[2 * half], transposed[2 * half + 1]);
    for (int i = 0; i < 4; ++i) {
      int at = (lane / 4 + i / 2 * 8) * 16 + half * 8 + lane % 4 * 2 + i % 2;
      c[at] = byRows[i];
      d[at] = plain[i];
    }
  }
}

/// Of integers: tensor cores have an order of sums and roundings of their own.
TYPED_TEST(AttentionOnTensorCores, FragmentsAreMatrices) {
  using T = TypeParam;
  Tensor<T> a(integers(256, "a")), b(integers(256, "b"));
  Floats af = a.floats(), bf = b.floats(), wantedC(256, 1.0f), wantedD(256, 0.0f);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      for (int k = 0; k < 16; ++k) {
        wantedC[size_t(i * 16 + j)] += af[size_t(i * 16 + k)] * bf[size_t(j * 16 + k)];
        wantedD[size_t(i * 16 + j)] += af[size_t(i * 16 + k)] * bf[size_t(k * 16 + j)];
      }
  inEveryOrder([&] {
    Tensor<float> c(256), d(256);
    SimulatedStream stream;
    PARTITA_RT_LAUNCH(products<T>, 1, 32, 0, stream, c.data(), d.data(), a.in(), b.in());
    EXPECT_BITS(c, wantedC);
    EXPECT_BITS(d, wantedD);
  });
}

#if !defined(PARTITA_TEST_ON_GPU) // of the simulation itself
/// Reads what was copied without waiting for it.
__global__ void forgottenWait(float *y, const float *x) {
  alignas(16) __shared__ float tile[4];
  tile[0] = 0.0f;
  copyAsync(tile, x, 16);
  commitCopies();
  *y = tile[0];
}

TEST(Simt, AForgottenWaitShows) {
  alignas(16) float x[4] = {1, 2, 3, 4}, y = -1;
  SimulatedStream stream;
  auto launch = [&] { PARTITA_RT_LAUNCH(forgottenWait, 1, 1, 0, stream, &y, x); };
  EXPECT_THROW(launch(), simt::LaunchError);
  EXPECT_EQ(y, 0.0f);
}
#endif

} // namespace
} // namespace partita_rt::cuda
