// Attention with cuDNN (the simulated one, or a GPU's): the calls that it is asked for, its results
// against sums in double, split calls, captures, and calls left to the own kernels.

#include "attention_reference.h"
#include "cuda/attention/fused_attention.h"
#include "simulated.h"

#include <cstdlib>
#if !defined(PARTITA_TEST_ON_GPU)
#include "cuda/attention/cudnn_attention.h"
#endif

namespace partita_rt::cuda {
namespace {

template <typename T> constexpr double kRounding = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;

AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t keys, int64_t dim,
                       bool causal, int64_t groups = 1, int64_t valueDim = 0) {
  return {batch,  heads,  sequence,
          keys,   dim,    valueDim ? valueDim : dim,
          groups, causal, 1.0f / std::sqrt(float(dim))};
}

/// A call on device memory. If sequences have equal length, q, k and v are side by side, as from a
/// projection, and so are their gradients.
template <typename T> struct Call {
  AttentionShape a;
  int64_t kvHeads = a.heads / a.groups;
  bool packed = a.sequence == a.keySequence;
  int64_t q = a.heads * a.headDim, k = kvHeads * a.headDim, v = kvHeads * a.valueDim,
          width = a.heads * a.valueDim;
  Floats qs, ks, vs, douts;
  OnDevice<T> qkv, dqkv, out, dout;
  OnDevice<float> lse, workspace;

  explicit Call(const AttentionShape &shape)
      : a(shape), qs(randomExact<T>(a.batch * a.sequence * q, "q")),
        ks(randomExact<T>(a.batch * a.keySequence * k, "k")),
        vs(randomExact<T>(a.batch * a.keySequence * v, "v")),
        douts(randomExact<T>(a.batch * a.sequence * width, "dout")), qkv(joined()),
        dqkv(std::vector<T>(qs.size() + ks.size() + vs.size(), T(NAN))),
        out(std::vector<T>(douts.size(), T(NAN))), dout(std::vector<T>(douts.begin(), douts.end())),
        lse(Floats(size_t(a.batch * a.heads * a.sequence), NAN)),
        workspace(Floats(size_t(attentionBackwardWorkspace(a)), NAN)) {}

  struct Part {
    int64_t first, row, width, rows;
  };
  Part partOf(int i) const {
    int64_t widths[] = {q, k, v}, rows[] = {a.sequence, a.keySequence, a.keySequence};
    int64_t before = 0, elements = 0;
    for (int j = 0; j < i; ++j) {
      before += widths[j];
      elements += a.batch * rows[j] * widths[j];
    }
    return {packed ? before : elements, packed ? q + k + v : widths[i], widths[i], rows[i]};
  }
  template <typename P> HeadsOf<P> part(P *data, int i) const {
    Part p = partOf(i);
    return {data + p.first, p.rows * p.row, p.row, i == 2 ? a.valueDim : a.headDim};
  }
  template <typename P> HeadsOf<P> plain(P *data) const {
    return {data, a.sequence * width, width, a.valueDim};
  }
  std::vector<T> joined() const {
    std::vector<T> all(qs.size() + ks.size() + vs.size());
    const Floats *parts[] = {&qs, &ks, &vs};
    for (int i = 0; i < 3; ++i) {
      Part p = partOf(i);
      for (int64_t at = 0; at < int64_t(parts[i]->size()); ++at)
        all[size_t(p.first + at / p.width * p.row + at % p.width)] = T((*parts[i])[size_t(at)]);
    }
    return all;
  }
  Floats gradient(int i) const {
    std::vector<T> all = dqkv.values();
    Part p = partOf(i);
    Floats x(size_t(a.batch * p.rows * p.width));
    for (int64_t at = 0; at < int64_t(x.size()); ++at)
      x[size_t(at)] = all[size_t(p.first + at / p.width * p.row + at % p.width)];
    return x;
  }
  Floats outs() const {
    std::vector<T> x = out.values();
    return Floats(x.begin(), x.end());
  }

  void forward(const Stream &stream) const {
    const T *in = qkv.data;
    attentionForward(stream, plain(out.data), lse.data, part(in, 0), part(in, 1), part(in, 2), a);
  }
  void backward(const Stream &stream, const RowSumsOf<T> &sums = {}) const {
    const T *in = qkv.data, *outIn = out.data, *doutIn = dout.data;
    attentionBackward(stream, part(dqkv.data, 0), part(dqkv.data, 1), part(dqkv.data, 2),
                      workspace.data, plain(doutIn), plain(outIn), lse.data, part(in, 0),
                      part(in, 1), part(in, 2), a, {}, {}, sums);
  }
};

/// A stream with cuDNN and a workspace for it.
struct FusedStream : Stream {
  explicit FusedStream(AttentionBy by = AttentionBy::Cudnn, int64_t bytes = 1 << 20)
      : space(std::vector<unsigned char>(size_t(bytes))) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), cudaSuccess);
    std::string why;
    std::unique_ptr<FusedLibrary> library = openCudnn(why);
    EXPECT_TRUE(library) << why;
    made = std::make_unique<FusedAttention>(by, std::move(library), space.data, bytes);
    attention = made.get();
  }
  ~FusedStream() {
    wait();
    cudaStreamDestroy(handle);
  }
  void wait() const { EXPECT_EQ(cudaStreamSynchronize(handle), cudaSuccess); }
  OnDevice<unsigned char> space;
  std::unique_ptr<FusedAttention> made;
};

/// Tests that need cuDNN, skipped on a GPU machine without it.
class FusedCalls : public testing::Test {
protected:
  void SetUp() override {
    if (std::string why; findCudnn(why).empty())
      GTEST_SKIP() << why;
  }
};
template <typename T> class FusedResults : public FusedCalls {};
TYPED_TEST_SUITE(FusedResults, NarrowTypes);

TYPED_TEST(FusedResults, HaveSumsOfRows) {
  using T = TypeParam;
  Call<T> call(shapeOf(2, 4, 40, 40, 32, true, 2));
  std::vector<int64_t> widths{call.q, call.k, call.v};
  OnDevice<float> sums(Floats(size_t(call.q + call.k + call.v), NAN));
  FusedStream stream;
  const AttentionShape &a = call.a;
  AttentionSums sizes{a.batch, a.heads, a.sequence, a.keySequence, a.headDim, a.valueDim, a.groups};
  std::vector<unsigned char> space(size_t(sizes.scratch()));
  OnDevice<unsigned char> scratch(space);
  stream.scratch = scratch.data;
  stream.scratchBytes = sizes.scratch();
  call.forward(stream);
  call.backward(stream, {sums.data, sums.data + call.q, sums.data + call.q + call.k});
  stream.wait();
  Floats actual = sums.values();
  int64_t first = 0;
  for (int i = 0; i < 3; first += widths[size_t(i++)]) {
    Floats rows = call.gradient(i);
    std::vector<double> wanted(size_t(widths[size_t(i)]), 0.0);
    for (size_t at = 0; at < rows.size(); ++at)
      wanted[at % wanted.size()] += rows[at];
    for (size_t at = 0; at < wanted.size(); ++at)
      EXPECT_NEAR(actual[size_t(first) + at], wanted[at], 1e-4) << i << " " << at;
  }
}

TYPED_TEST(FusedResults, AreAttention) {
  using T = TypeParam;
  struct Case {
    const char *what;
    AttentionShape shape;
  } cases[] = {
      {"one query", shapeOf(1, 1, 1, 5, 64, false)},
      {"an odd sequence", shapeOf(2, 3, 37, 37, 64, true)},
      {"grouped queries", shapeOf(2, 4, 40, 40, 32, true, 2)},
      {"more keys than queries", shapeOf(1, 2, 33, 70, 16, false, 2)},
      {"values of another size", shapeOf(1, 2, 20, 20, 64, false, 1, 32)},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.what);
    FusedStream stream;
    Call<T> call(c.shape);
    call.forward(stream);
    call.backward(stream);
    stream.wait();
    AttentionReference wanted(c.shape, call.qs, call.ks, call.vs);
    EXPECT_LE(wanted.out.excess(call.outs(), kRounding<T>, 1e-4), 0.0);
    Floats lse = call.lse.values();
    for (size_t i = 0; i < lse.size(); ++i)
      EXPECT_NEAR(lse[i], wanted.logSumExp[i], 1e-5 * (1 + std::fabs(wanted.logSumExp[i])));
    AttentionGradients gradients(wanted, call.douts, call.outs());
    // If heads share keys, each head's gradient is rounded before they are added up.
    double shared = c.shape.groups > 1 ? 2 : 1;
    EXPECT_LE(gradients.dq.excess(call.gradient(0), kRounding<T>, 1e-4), 0.0);
    EXPECT_LE(gradients.dk.excess(call.gradient(1), shared * kRounding<T>, 1e-4), 0.0);
    EXPECT_LE(gradients.dv.excess(call.gradient(2), shared * kRounding<T>, 1e-4), 0.0);
    EXPECT_NE(stream.made->text().find(" computes 2 of its shapes"), std::string::npos)
        << stream.made->text();
  }
}

/// Without the gradients of scores in the workspace, which needs dQ in float instead.
TYPED_TEST(FusedResults, NeedNotBeDeterministic) {
  using T = TypeParam;
  AttentionShape shape = shapeOf(2, 4, 140, 140, 32, true, 2);
#if !defined(PARTITA_TEST_ON_GPU)
  int64_t before = simulated::cudnnCounters().unordered;
#endif
  int64_t bytes = 4 * shape.batch * shape.heads * shape.sequence * shape.headDim;
  int64_t shared = 4 * shape.batch * shape.heads * shape.keySequence * shape.headDim;
  FusedStream stream(AttentionBy::Nondeterministic, bytes + shared + 8192);
  Call<T> call(shape);
  call.forward(stream);
  call.backward(stream);
  stream.wait();
  AttentionReference wanted(shape, call.qs, call.ks, call.vs);
  EXPECT_LE(wanted.out.excess(call.outs(), kRounding<T>, 1e-4), 0.0);
  AttentionGradients gradients(wanted, call.douts, call.outs());
  EXPECT_LE(gradients.dq.excess(call.gradient(0), kRounding<T>, 1e-4), 0.0);
  EXPECT_LE(gradients.dk.excess(call.gradient(1), 2 * kRounding<T>, 1e-4), 0.0);
  EXPECT_LE(gradients.dv.excess(call.gradient(2), 2 * kRounding<T>, 1e-4), 0.0);
  EXPECT_NE(stream.made->text().find(" computes 2 of its shapes, nondeterministic"),
            std::string::npos)
      << stream.made->text();
#if !defined(PARTITA_TEST_ON_GPU)
  EXPECT_EQ(simulated::cudnnCounters().unordered - before, 2);
  FusedStream ordered(AttentionBy::Auto, 1 << 22); // by default never
  Call<T> again(shape);
  again.forward(ordered);
  again.backward(ordered);
  ordered.wait();
  EXPECT_EQ(simulated::cudnnCounters().unordered - before, 2);
#endif
}

TEST_F(FusedCalls, WithoutLogSumExp) {
  FusedStream stream;
  Call<BFloat16> call(shapeOf(1, 2, 24, 24, 64, true)), saved(call.a);
  const BFloat16 *in = call.qkv.data;
  attentionForward(stream, call.plain(call.out.data), nullptr, call.part(in, 0), call.part(in, 1),
                   call.part(in, 2), call.a);
  saved.forward(stream);
  stream.wait();
  EXPECT_EQ(difference(call.out.values(), saved.outs()), -1);
}

/// A counter of cuDNN's calls, which the real one does not report.
struct CountLaunches {
#if defined(PARTITA_TEST_ON_GPU)
  void expect(int64_t) const {}
  static constexpr double kOfOtherKernels = 0x1p-6; ///< a smaller shape may use another kernel
#else
  static constexpr double kOfOtherKernels = 0.0;
  int64_t before = simulated::cudnnCounters().executions;
  void expect(int64_t launches) const {
    EXPECT_EQ(simulated::cudnnCounters().executions - before, launches);
  }
#endif
};

/// Splitting by sequences, then by heads of one, gives the same bits.
TEST_F(FusedCalls, AreMadeInChunks) {
  FusedStream full;
  Call<BFloat16> call(shapeOf(4, 8, 20, 20, 32, true, 2));
  call.forward(full);
  call.backward(full);
  full.wait();
  // One head of one sequence keeps 128 x 128 gradients of scores, plus the memory for heads that
  // share keys.
  int64_t head = 2 * 128 * 128 + 4 * 20 * 32;
  struct Space {
    int64_t heads, launches; ///< heads that fit into the workspace; launches in both passes
  };
  for (auto [heads, launches] : {Space{17, 3}, {8, 5}, {3, 17}, {2, 17}}) {
    SCOPED_TRACE(heads);
    CountLaunches count;
    FusedStream stream(AttentionBy::Cudnn, heads * head + 8192);
    Call<BFloat16> again(call.a);
    again.forward(stream);
    again.backward(stream);
    stream.wait();
    count.expect(launches);
    EXPECT_CLOSE(again.outs(), widen(call.outs()), count.kOfOtherKernels);
    for (int i = 0; i < 3; ++i)
      EXPECT_CLOSE(again.gradient(i), widen(call.gradient(i)), count.kOfOtherKernels);
  }
}

/// Fifteen floats of statistics per sequence: the second sequence's are not 16-byte aligned.
TEST_F(FusedCalls, AreNotCutWhereAlignmentForbids) {
  Call<BFloat16> call(shapeOf(2, 3, 5, 5, 32, true));
  FusedStream enough(AttentionBy::Cudnn, 1 << 20);
#ifndef PARTITA_TEST_ON_GPU // the real cuDNN needs less for such small calls
  FusedStream little(AttentionBy::Cudnn, 130'000);
  std::string text = errorOf([&] { call.backward(little); });
  EXPECT_NE(text.find("and no split of the call needs less"), std::string::npos) << text;
#endif
  call.forward(enough);
  EXPECT_EQ(errorOf([&] { call.backward(enough); }), "");
  enough.wait();
}

TEST_F(FusedCalls, AreCaptured) {
  FusedStream stream;
  Call<BFloat16> call(shapeOf(2, 2, 24, 24, 64, true)), again(call.a);
  call.forward(stream);
  call.backward(stream);
  cudaGraph_t graph;
  cudaGraphExec_t step;
  ASSERT_EQ(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  again.forward(stream);
  again.backward(stream);
  ASSERT_EQ(cudaStreamEndCapture(stream.handle, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&step, graph, 0), cudaSuccess);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(cudaGraphLaunch(step, stream.handle), cudaSuccess);
  stream.wait();
  EXPECT_EQ(difference(again.out.values(), call.outs()), -1);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(difference(again.gradient(i), call.gradient(i)), -1);
  cudaGraphExecDestroy(step);
  cudaGraphDestroy(graph);
}

/// Calls that the library does not support have the own kernels' bits, and are an error if the
/// library is required.
TEST_F(FusedCalls, OrOwnKernels) {
  AttentionShape window = shapeOf(1, 2, 24, 24, 64, true);
  window.window = 5;
  struct Case {
    AttentionShape shape;
    int64_t bytes;
    const char *why;
  } cases[] = {{window, 1 << 20, "a window"},
               {shapeOf(1, 2, 24, 30, 64, true), 1 << 20, "causal, with other keys than queries"},
               {shapeOf(1, 2, 24, 24, 64, true), 0, "bytes of workspace, of 0"}};
  for (const Case &c : cases) {
    SCOPED_TRACE(c.why);
    FusedStream stream(AttentionBy::Auto, c.bytes), forced(AttentionBy::Cudnn, c.bytes);
    Call<BFloat16> call(c.shape), own(c.shape);
    call.forward(stream);
    call.backward(stream);
    stream.wait();
    Stream plain;
    plain.handle = stream.handle;
    own.forward(plain);
    own.backward(plain);
    stream.wait();
    EXPECT_EQ(difference(call.out.values(), own.outs()), -1);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(difference(call.gradient(i), own.gradient(i)), -1);
    EXPECT_NE(stream.made->text().find(c.why), std::string::npos) << stream.made->text();
    try {
      call.backward(forced);
      FAIL() << "no error";
    } catch (const Error &error) {
      std::string text = error.what();
      EXPECT_EQ(text.find("PARTITA_RT_ATTENTION=cudnn: cuDNN "), 0u) << text;
      EXPECT_NE(text.find("cannot compute attention backward, bfloat16, 1 x "), std::string::npos)
          << text;
      EXPECT_NE(text.find(c.why), std::string::npos) << text;
    }
  }
}

TEST(FusedAttention, IsAskedForSomeCalls) {
  alignas(16) static BFloat16 memory[16];
  alignas(16) static float numbers[8];
  FusedCall good{};
  good.dtype = DType::BFloat16;
  good.shape = shapeOf(1, 2, 8, 8, 64, true);
  good.q = good.k = good.v = good.dout = good.forwardOut = {memory, 1024, 128, 64};
  good.out = good.dq = good.dk = good.dv = {memory, 1024, 128, 64};
  good.logSumExp = good.workspace = numbers;
  auto why = [&](auto change, bool backward = false) {
    FusedCall call = good;
    call.backward = backward;
    change(call);
    return whyNotFused(call);
  };
  EXPECT_EQ(why([](FusedCall &) {}), "");
  EXPECT_EQ(why([](FusedCall &) {}, true), "");
  EXPECT_EQ(why([](FusedCall &c) { c.shape.causal = false, c.shape.keySequence = 9; }), "");
  EXPECT_EQ(why([](FusedCall &c) { c.dtype = DType::Float32; }), "float32");
  EXPECT_EQ(why([](FusedCall &c) { c.bias = true; }), "a bias");
  EXPECT_EQ(why([](FusedCall &c) { c.shape.window = 4; }), "a window");
  EXPECT_EQ(why([](FusedCall &c) { c.shape = withDocuments(c.shape, 4); }), "documents");
  BlockLayout layout{};
  EXPECT_EQ(why([&](FusedCall &c) { c.shape.blocks = {&layout}; }), "a layout of blocks");
  EXPECT_EQ(why([](FusedCall &c) { c.shape = withDropout(c.shape, 0.1); }), "dropout");
  EXPECT_EQ(why([](FusedCall &c) { c.shape.keySequence = 0; }), "nothing to do");
  EXPECT_EQ(why([](FusedCall &c) { c.shape.keySequence = 9; }),
            "causal, with other keys than queries");
  EXPECT_EQ(why([](FusedCall &c) { c.shape.headDim = 264; }), "heads of more than 256 elements");
  EXPECT_EQ(why([](FusedCall &c) { c.shape.valueDim = 60; }),
            "heads that are not a multiple of 8 elements");
  const std::string unaligned = "rows that do not begin at multiples of 16 bytes";
  EXPECT_EQ(why([](FusedCall &c) { c.q.data = memory + 1; }), unaligned);
  EXPECT_EQ(why([](FusedCall &c) { c.out.rowStride = 132; }), unaligned);
  EXPECT_EQ(why([](FusedCall &c) { c.logSumExp = numbers + 1; }), unaligned);
  EXPECT_EQ(why([](FusedCall &c) { c.dv.headStride = 68; }, true), unaligned);
  EXPECT_EQ(why([](FusedCall &c) { c.workspace = numbers + 2; }, true), unaligned);
}

#if !defined(PARTITA_TEST_ON_GPU) // nvcc may find no headers of cuDNN
TEST(FusedAttention, IsNotForAllDevices) {
  FusedShape shape{};
  shape.deterministic = true;
  shape.sequence = shape.keySequence = 2;
  shape.headDim = shape.valueDim = 256;
  EXPECT_NE(whyNotCudnn(shape, 75), nullptr);
  for (int capability : {80, 90, 100, 120})
    EXPECT_EQ(whyNotCudnn(shape, capability), nullptr);
  shape.backward = true;
  EXPECT_NE(whyNotCudnn(shape, 80), nullptr);
  EXPECT_EQ(whyNotCudnn(shape, 90), nullptr);
  EXPECT_NE(whyNotCudnn(shape, 100), nullptr);
  shape.deterministic = false;
  EXPECT_NE(whyNotCudnn(shape, 100), nullptr);
  shape.headDim = shape.valueDim = 128;
  EXPECT_EQ(whyNotCudnn(shape, 100), nullptr);
  shape.deterministic = true;
  EXPECT_NE(whyNotCudnn(shape, 100), nullptr);
  EXPECT_EQ(whyNotCudnn(shape, 86), nullptr);
  shape.sequence = shape.keySequence = 1;
  EXPECT_NE(whyNotCudnn(shape, 90), nullptr);
}
#endif

TEST(FusedAttention, IsChosenByAVariable) {
  const char *name = "PARTITA_RT_ATTENTION";
  unsetenv(name);
  EXPECT_EQ(attentionBy(), AttentionBy::Own);
  EXPECT_EQ(attentionMakers(), "own kernels");
  EXPECT_EQ(fusedWorkspaceBytes(), 0);
  setenv(name, "own", 1);
  EXPECT_EQ(attentionBy(), AttentionBy::Own);
  setenv(name, "tiles", 1);
  EXPECT_EQ(attentionBy(), AttentionBy::Tiles);
  EXPECT_EQ(attentionMakers(), "own kernels, backward by tiles");
  EXPECT_EQ(fusedWorkspaceBytes(), 0);
  setenv(name, "auto", 1);
  EXPECT_EQ(attentionBy(), AttentionBy::Auto);
  setenv(name, "cudnn", 1);
  EXPECT_EQ(attentionBy(), AttentionBy::Cudnn);
  if (std::string why, found = findCudnn(why); !found.empty()) {
    EXPECT_EQ(attentionMakers(), found + " alone");
    EXPECT_EQ(fusedWorkspaceBytes(), kAttentionWorkspace);
  }
  setenv(name, "nondeterministic", 1);
  EXPECT_EQ(attentionBy(), AttentionBy::Nondeterministic);
  if (std::string why, found = findCudnn(why); !found.empty()) {
    EXPECT_EQ(attentionMakers(), found + " where it can, nondeterministic");
    EXPECT_EQ(fusedWorkspaceBytes(), kAttentionWorkspace);
  }
  setenv(name, "flash", 1);
  EXPECT_THROW(attentionBy(), Error);
  unsetenv(name);
}

} // namespace
} // namespace partita_rt::cuda
