// Attention without a matrix of scores against the CPU's, forward and backward; the bits must not
// depend on schedule, storage type or layout.

#include "block_layouts.h"
#include "cuda/attention/attention_mma.cuh"
#include "simulated.h"

#include <utility>

namespace partita_rt::cuda {
namespace {

using partita_rt::widen; // the kernels have another

/// The dimensions of [batch, heads, sequence, keys] that a bias has; Hidden: its first keys are
/// masked.
struct Case {
  AttentionShape shape;
  enum { None, Random, Padding, Hidden } bias = None;
  bool batch = true, heads = true, rows = true, columns = true;
};

AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t keys, int64_t dim,
                       bool causal, int64_t groups = 1, int64_t valueDim = 0, int64_t window = 0) {
  return {batch,  heads,  sequence,
          keys,   dim,    valueDim ? valueDim : dim,
          groups, causal, 1.0f / std::sqrt(float(dim)),
          window};
}

/// Random layouts of two heads, in part with rows without a block.
AttentionShape withBlocks(int32_t size, AttentionShape shape, uint32_t seed) {
  shape.zeroHidden = true;
  LayoutMaker maker(size, int32_t(shape.sequence) / size);
  return maker.addRandom(seed).addRandom(seed + 1).of(shape);
}

const Case kCases[] = {
    {shapeOf(1, 1, 1, 1, 4, true)},
    {shapeOf(2, 2, 33, 33, 8, true)},
    {shapeOf(1, 4, 65, 65, 20, true, 2)},         // grouped queries
    {shapeOf(1, 1, 20, 70, 7, false, 1, 12)},     // values of a different width
    {shapeOf(1, 1, 70, 40, 9, true)},             // queries that see no key
    {shapeOf(1, 1, 40, 40, 130, true)},           // wide heads
    {shapeOf(1, 2, 100, 100, 8, true, 1, 0, 37)}, // a window
    {withDocuments(shapeOf(2, 2, 130, 130, 8, true, 2), 30)},
    {withDocuments(shapeOf(1, 2, 100, 100, 8, true, 1, 0, 37), 30)},
    {withDocuments(shapeOf(2, 2, 70, 70, 8, true), 20), Case::Random, false, true, true, true},
    {shapeOf(2, 2, 33, 50, 8, false), Case::Random},
    {withDropout(shapeOf(2, 4, 65, 65, 20, true, 2), 0.1)},
    {withDropout(shapeOf(2, 2, 33, 50, 8, false), 0.4), Case::Random},
    {shapeOf(1, 4, 33, 40, 130, true, 2), Case::Random, false, true, true, true},
    {shapeOf(2, 2, 33, 40, 8, true, 2), Case::Random, false, true, true, true},
    {shapeOf(2, 2, 40, 70, 8, false), Case::Random, true, false, false, true},
    {shapeOf(1, 2, 40, 40, 8, true), Case::Random, false, true, true, false},
    {shapeOf(2, 1, 33, 40, 8, false), Case::Padding, true, false, false, true},
    {shapeOf(2, 1, 33, 40, 8, true), Case::Hidden, true, false, false, true},
    {withBlocks(16, shapeOf(1, 4, 128, 128, 8, true, 2), 1)},
    {withBlocks(64, shapeOf(1, 2, 256, 256, 8, false), 3)},
    {withBlocks(10, shapeOf(1, 2, 100, 100, 130, true), 5)},
    {withBlocks(1, withDocuments(shapeOf(2, 2, 70, 70, 8, true), 20), 7)},
    {withDropout(withBlocks(15, shapeOf(1, 2, 90, 90, 20, true, 2), 9), 0.1)},
    {withBlocks(16, shapeOf(1, 2, 112, 112, 8, true), 11), Case::Random, false, true, true, true},
    {withBlocks(7, shapeOf(2, 2, 70, 70, 8, false), 13), Case::Random, true, false, false, true},
    {withBlocks(16, shapeOf(1, 1, 48, 48, 8, true), 15), Case::Hidden, true, false, false, true},
};

template <typename T> HeadsOf<T> heads(T *data, int64_t sequence, int64_t heads, int64_t dim) {
  return {data, sequence * heads * dim, heads * dim, dim};
}
template <typename T> const T *constant(T *data) { return data; }

/// The operands and results of one call, in T; unpacked [b, s, h, d] tensors.
template <typename T> struct Call {
  AttentionShape a;
  ScoresOf<const T> bias;
  Tensor<T> q, k, v, dout, out, dq, dk, dv;
  Tensor<float> lse, dbias, workspace;

  static int64_t sizeOfBias(const Case &c) {
    const AttentionShape &a = c.shape;
    return (c.batch ? a.batch : 1) * (c.heads ? a.heads : 1) * (c.rows ? a.sequence : 1) *
           (c.columns ? a.keySequence : 1);
  }
  Call(const Case &c, const Floats *operands, const T *biasData, int64_t offset = 0)
      : a(c.shape), q(operands[0], offset), k(operands[1], offset), v(operands[2], offset),
        dout(operands[3], offset), out(operands[3], offset), dq(operands[0], offset),
        dk(operands[1], offset), dv(operands[2], offset), lse(a.batch * a.heads * a.sequence),
        dbias(c.bias ? sizeOfBias(c) : 0), workspace(attentionBackwardWorkspace(a)) {
    int64_t size = 1;
    auto stride = [&](bool has, int64_t n) { return has ? std::exchange(size, size * n) : 0; };
    bias.columnStride = stride(c.columns, a.keySequence);
    bias.rowStride = stride(c.rows, a.sequence);
    bias.headStride = stride(c.heads, a.heads);
    bias.batchStride = stride(c.batch, a.batch);
    if (c.bias)
      bias.data = biasData;
  }
  /// Calls `run(forward, backward arguments...)` with all tensors.
  template <typename Forward, typename Backward> void run(Forward forward, Backward backward) {
    int64_t kv = a.heads / a.groups;
    auto ofQ = [&](auto *data, int64_t d) { return heads(data, a.sequence, a.heads, d); };
    auto ofK = [&](auto *data, int64_t d) { return heads(data, a.keySequence, kv, d); };
    forward(ofQ(out.data(), a.valueDim), lse.data(), ofQ(q.in(), a.headDim), ofK(k.in(), a.headDim),
            ofK(v.in(), a.valueDim), a, bias);
    Scores gradient{dbias.floats().empty() ? nullptr : dbias.data(), bias.batchStride,
                    bias.headStride, bias.rowStride, bias.columnStride};
    backward(ofQ(dq.data(), a.headDim), ofK(dk.data(), a.headDim), ofK(dv.data(), a.valueDim),
             workspace.data(), ofQ(dout.in(), a.valueDim), ofQ(out.in(), a.valueDim), lse.in(),
             ofQ(q.in(), a.headDim), ofK(k.in(), a.headDim), ofK(v.in(), a.valueDim), a, bias,
             gradient);
  }
  void onCpu() {
    workspace = Tensor<float>(attentionWorkspace(a, kDTypeOf<T>));
    run([](auto... x) { partita_rt::attentionForward(x...); },
        [](auto... x) { partita_rt::attentionBackward(x...); });
  }
  void onGpu() {
    SimulatedStream stream;
    run([&](auto... x) { attentionForward(stream, x...); },
        [&](auto... x) { attentionBackward(stream, x...); });
    EXPECT_TRUE(workspace.marginsKept() && lse.marginsKept() && dbias.marginsKept());
  }
};

template <typename T> struct Operands {
  Floats values[4], bias;
  Narrow<T> narrowBias;
  explicit Operands(const Case &c) {
    const AttentionShape &a = c.shape;
    int64_t nq = a.batch * a.sequence * a.heads,
            nk = a.batch * a.keySequence * (a.heads / a.groups);
    values[0] = randomExact<T>(nq * a.headDim, "q");
    values[1] = randomExact<T>(nk * a.headDim, "k");
    values[2] = randomExact<T>(nk * a.valueDim, "v");
    values[3] = randomExact<T>(nq * a.valueDim, "dout");
    bias = randomExact<T>(Call<T>::sizeOfBias(c), "bias");
    for (size_t i = 0; c.bias >= Case::Padding && i < bias.size(); ++i) {
      bool padding = c.bias == Case::Hidden ? int64_t(i) < a.keySequence : i % 3 == 1;
      bias[i] = padding ? std::numeric_limits<float>::lowest() : 0.0f;
    }
    narrowBias = rounded<T>(bias);
  }
};

template <typename T> class Attention : public testing::Test {};
TYPED_TEST_SUITE(Attention, StorageTypes);

TYPED_TEST(Attention, IsTheCpus) {
  using T = TypeParam;
  int number = 0;
  for (const Case &c : kCases) {
    SCOPED_TRACE(testing::Message() << "case " << number++);
    if (onTensorCores<T>(c.shape))
      continue; // attention_mma_test.cpp; with a bias, attention_step_test.cpp
    Operands<T> o(c);
    Call<float> cpu(c, o.values, o.bias.data()), gpu(c, o.values, o.bias.data());
    gpu.onGpu();
    if (std::is_same_v<T, float>) {
      cpu.onCpu();
      double exact = c.shape.sequence == 1 ? 1e30 : 1e-5; // a softmax of one key is constant
      EXPECT_NEAR_ALL(gpu.out, cpu.out.floats(), 3e-6);
      EXPECT_NEAR_ALL(gpu.dq, cpu.dq.floats(), exact);
      EXPECT_NEAR_ALL(gpu.dk, cpu.dk.floats(), exact);
      EXPECT_NEAR_ALL(gpu.dv, cpu.dv.floats(), 1e-5);
      for (size_t i = 0; i < cpu.lse.floats().size(); ++i) {
        float wanted = cpu.lse.in()[i], actual = gpu.lse.in()[i];
        EXPECT_TRUE(actual == wanted ||
                    std::fabs(actual - wanted) <= 1e-5f * (1 + std::fabs(wanted)))
            << actual << " " << wanted;
      }
      if (c.bias == Case::Random && c.columns)
        EXPECT_NEAR_ALL(gpu.dbias, cpu.dbias.floats(), 1e-5);
      for (float each : gpu.dbias.floats()) // a term that is equal for all keys changes nothing
        EXPECT_LE(c.columns ? 0.0f : std::fabs(each), 1e-5f);
    }
    // All are compared with the first float result: the backward pass reads `out` in T.
    Tensor<T> outOfT(gpu.out.floats());
    Call<float> reference(c, o.values, o.bias.data());
    SimulatedStream stream;
    reference.run(
        [&](auto out, auto... x) {
          attentionForward(stream, out, x...);
          Floats narrow = outOfT.floats();
          std::copy(narrow.begin(), narrow.end(), out.data);
        },
        [&](auto... x) { attentionBackward(stream, x...); });
    inEveryOrder([&] {
      Call<T> call(c, o.values, o.narrowBias.data(), 1);
      if (c.bias >= Case::Padding && !std::is_same_v<T, float>)
        return; // the lowest float is not representable in T
      call.onGpu();
      EXPECT_BITS(call.out, gpu.out.floats());
      EXPECT_BITS(call.lse, gpu.lse.floats());
      EXPECT_BITS(call.dq, reference.dq.floats());
      EXPECT_BITS(call.dk, reference.dk.floats());
      EXPECT_BITS(call.dv, reference.dv.floats());
      EXPECT_BITS(call.dbias, reference.dbias.floats());
    });
  }
}

TEST(Attention, QueriesThatSeeNothingAreNotANumberOrZero) {
  AttentionShape a = shapeOf(1, 1, 2, 3, 4, false);
  Floats q = randomFloats(8, "q"), k = randomFloats(12, "k"), v = randomFloats(12, "v"), out(8),
         lse(2), bias(6, 0.0f);
  std::fill(bias.begin(), bias.begin() + 3, -INFINITY);
  for (bool zero : {false, true}) {
    a.zeroHidden = zero;
    attentionForward(SimulatedStream(), heads(out.data(), 2, 1, 4), lse.data(),
                     heads(constant(q.data()), 2, 1, 4), heads(constant(k.data()), 3, 1, 4),
                     heads(constant(v.data()), 3, 1, 4), a, {bias.data(), 0, 0, 3, 1});
    EXPECT_EQ(std::isnan(out[0]), !zero);
    EXPECT_EQ(out[3] == 0.0f, zero);
    EXPECT_EQ(std::isnan(lse[0]), !zero);
    EXPECT_FALSE(std::isnan(out[4]));
  }
}

TEST(Attention, PackedProjections) {
  AttentionShape a = shapeOf(2, 3, 37, 37, 8, true);
  int64_t h = 3 * 8, rows = 2 * 37;
  Floats qkv = randomFloats(rows * 3 * h, "qkv"), dout = randomFloats(rows * h, "dout"),
         out(rows * h), cpuOut(out), lse(2 * 3 * 37), dqkv(qkv.size(), NAN), cpuGradient(dqkv),
         workspace(attentionBackwardWorkspace(a));
  auto packed = [&](auto *data, int i) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data + i * h, 37 * 3 * h, 3 * h, 8};
  };
  const float *all = qkv.data(), *g = dout.data(), *o = out.data();
  partita_rt::attentionForward(heads(cpuOut.data(), 37, 3, 8), lse.data(), packed(all, 0),
                               packed(all, 1), packed(all, 2), a);
  attentionForward(SimulatedStream(), heads(out.data(), 37, 3, 8), lse.data(), packed(all, 0),
                   packed(all, 1), packed(all, 2), a);
  EXPECT_CLOSE(out, widen(cpuOut), 3e-6);
  partita_rt::attentionBackward(packed(cpuGradient.data(), 0), packed(cpuGradient.data(), 1),
                                packed(cpuGradient.data(), 2), workspace.data(), heads(g, 37, 3, 8),
                                heads(o, 37, 3, 8), lse.data(), packed(all, 0), packed(all, 1),
                                packed(all, 2), a);
  attentionBackward(SimulatedStream(), packed(dqkv.data(), 0), packed(dqkv.data(), 1),
                    packed(dqkv.data(), 2), workspace.data(), heads(g, 37, 3, 8),
                    heads(o, 37, 3, 8), lse.data(), packed(all, 0), packed(all, 1), packed(all, 2),
                    a);
  EXPECT_CLOSE(dqkv, widen(cpuGradient), 1e-5);
}

/// Ids of three tiles of the kernel's positions, and some more.
TEST(Documents, StartWhereTheIdChanges) {
  constexpr int64_t rows = 3, width = 3 * 1024 + 100;
  std::vector<int64_t> ids;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0, id = 100 * row; i < width; ++i) {
      if (row == 0 ? i % 1024 == 1023 : mix64(uint64_t(row * width + i)) % 100 == 0)
        id += row == 2 ? -1 : 5; // ids may also fall
      ids.push_back(id);
    }
  std::vector<int32_t> wanted(ids.size()), starts(ids.size(), -1);
  partita_rt::documentStarts(wanted.data(), ids.data(), rows, width);
  SimulatedStream stream;
  inEveryOrder([&] {
    std::fill(starts.begin(), starts.end(), -1);
    documentStarts(stream, starts.data(), ids.data(), rows, width);
    EXPECT_EQ(starts, wanted);
    EXPECT_EQ(stream.faults.kind, Fault::None);
  });
  std::vector<int32_t> narrow(ids.begin(), ids.end());
  documentStarts(stream, starts.data(), narrow.data(), rows, width);
  EXPECT_EQ(starts, wanted);
  ids[size_t(width) + 3000] = ids[size_t(width)]; // of the first tile
  std::string error =
      errorOf([&] { partita_rt::documentStarts(wanted.data(), ids.data(), rows, width); });
  documentStarts(stream, starts.data(), ids.data(), rows, width);
  EXPECT_EQ(errorOf([&] { check(stream.faults); }), error);
  EXPECT_NE(error, "");
}

TEST(Documents, StartBehindAToken) {
  constexpr int64_t rows = 3, width = 2 * 1024 + 100;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows * width; ++i) // one row has no such token at all
    ids.push_back(i / width == 1 ? 3 : int64_t(mix64(uint64_t(i)) % (i / width == 0 ? 4 : 500)));
  std::vector<int32_t> wanted(ids.size()), starts(ids.size(), -1);
  partita_rt::documentStartsAfter(2, wanted.data(), ids.data(), rows, width);
  SimulatedStream stream;
  inEveryOrder([&] {
    std::fill(starts.begin(), starts.end(), -1);
    documentStartsAfter(stream, 2, starts.data(), ids.data(), rows, width);
    EXPECT_EQ(starts, wanted);
  });
  std::vector<int32_t> narrow(ids.begin(), ids.end());
  documentStartsAfter(stream, 2, starts.data(), narrow.data(), rows, width);
  EXPECT_EQ(starts, wanted);
}

TEST(Attention, HeadsTooWide) {
  float *none = nullptr;
  EXPECT_EQ(errorOf([&] {
              attentionForward(SimulatedStream(), heads(none, 1, 1, 257), none,
                               heads(constant(none), 1, 1, 257), heads(constant(none), 1, 1, 257),
                               heads(constant(none), 1, 1, 257), shapeOf(1, 1, 1, 1, 257, true));
            }),
            "attention: heads of 257 elements, at most 256 are possible");
}

} // namespace
} // namespace partita_rt::cuda
