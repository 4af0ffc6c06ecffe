// Calls attention on tensor cores with the kernels that a test names.

#ifndef PARTITA_TEST_RUNTIME_CUDA_ATTENTION_CALLS_H
#define PARTITA_TEST_RUNTIME_CUDA_ATTENTION_CALLS_H

#include "attention_reference.h"
#include "cuda/attention/attention_mma.cuh"
#include "cuda/attention/attention_sums.cuh"
#include "simulated.h"

#include <memory>
#include <utility>

#if defined(PARTITA_TEST_ON_GPU)
#include "../../gpu/unit/on_device.h"
#endif

namespace partita_rt::cuda {

/// Half the relative distance between neighbouring numbers of T.
template <typename T> constexpr double kRounding = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;

struct Case {
  const char *what;
  AttentionShape shape;
};

inline AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t keys,
                              int64_t dim, bool causal, int64_t groups = 1, int64_t valueDim = 0,
                              int64_t window = 0) {
  return {batch,  heads,  sequence,
          keys,   dim,    valueDim ? valueDim : dim,
          groups, causal, 1.0f / std::sqrt(float(dim)),
          window};
}

/// Mma, Wgmma: the backward pass by tiles; Heads: jointly by heads, in fewer blocks than there are heads; Turns, MmaTurns:
/// jointly by turns, with fewer slots than heads, if there are more than two, and with two heads together, if there are
/// more than four; MmaAny: as attentionBackwardMma chooses; Any: as attentionBackward does.
enum class By { Mma, MmaTurns, MmaAny, Wgmma, Heads, Turns, Any };
inline bool isByGroups(By by) { return by == By::Wgmma || by == By::Heads || by == By::Turns; }

/// Operands in a GPU's memory: its copy engine fetches tiles, and additions happen in its L2 cache, neither of
/// which NVIDIA promises for the host's memory, where the tests' tensors are on a GPU.
class DeviceCopies {
#if defined(PARTITA_TEST_ON_GPU)
  std::vector<std::unique_ptr<on_device::Copy>> copies;

public:
  template <typename P> P *of(P *host, int64_t count) {
    copies.push_back(std::make_unique<on_device::Copy>(host, count * int64_t(sizeof(P))));
    return static_cast<P *>(copies.back()->get());
  }
  ~DeviceCopies() {
    for (const auto &each : copies)
      each->copyBack();
  }
#else
public:
  template <typename P> P *of(P *host, int64_t) { return host; }
#endif
};

/// The operands and results of one call. Heads are unpacked.
template <typename T> struct Call {
  AttentionShape a;
  int64_t kvHeads = a.heads / a.groups;
  int64_t qWidth = a.heads * a.headDim, kWidth = kvHeads * a.headDim, vWidth = kvHeads * a.valueDim,
          outWidth = a.heads * a.valueDim;
  Tensor<T> q, k, v, dout, out, dq, dk, dv;
  Tensor<float> lse, workspace, partials, dqSums, dkSums, dvSums;
  bool hasSums = true; ///< of rows, by a backward pass on tensor cores

  /// offset: of 16-bit tensors, in elements from a pack's boundary; alignsDq: dq is not off it.
  Call(const AttentionShape &shape, int64_t offset = 0, bool alignsDq = false)
      : a(shape), q(randomExact<T>(a.batch * a.sequence * qWidth, "q"), offset),
        k(randomExact<T>(a.batch * a.keySequence * kWidth, "k"), offset),
        v(randomExact<T>(a.batch * a.keySequence * vWidth, "v"), offset),
        dout(randomExact<T>(a.batch * a.sequence * outWidth, "dout"), offset),
        out(a.batch * a.sequence * outWidth, offset),
        dq(a.batch * a.sequence * qWidth, alignsDq ? 0 : offset),
        dk(a.batch * a.keySequence * kWidth, offset), dv(a.batch * a.keySequence * vWidth, offset),
        lse(a.batch * a.heads * a.sequence), workspace(attentionBackwardWorkspace(a)),
        partials(sumsOf(a).scratch() / 4), dqSums(qWidth), dkSums(kWidth), dvSums(vWidth) {}

  template <typename P> static HeadsOf<P> of(P *data, int64_t rows, int64_t width, int64_t dim) {
    return {data, rows * width, width, dim};
  }
  template <typename P>
  HeadsOf<P> of(DeviceCopies &gpu, P *data, int64_t rows, int64_t width, int64_t dim) const {
    return of(gpu.of(data, a.batch * rows * width), rows, width, dim);
  }
  HeadsOf<const T> qHeads(DeviceCopies &gpu) const {
    return of(gpu, q.in(), a.sequence, qWidth, a.headDim);
  }
  HeadsOf<const T> kHeads(DeviceCopies &gpu) const {
    return of(gpu, k.in(), a.keySequence, kWidth, a.headDim);
  }
  HeadsOf<const T> vHeads(DeviceCopies &gpu) const {
    return of(gpu, v.in(), a.keySequence, vWidth, a.valueDim);
  }

  bool backwardJointly(const Stream &stream, const MmaBackward<T> &call, By by) {
    AttentionWork work = attentionWork(a, kDTypeOf<T>);
    bool turns = by != By::Heads;
    int64_t heads = a.batch * kvHeads, blocks = turns ? 5 : (heads + 1) / 2;
    int64_t slots = !turns ? 0 : heads > 4 ? 4 : heads == 2 ? 2 : 1;
    int64_t counters = turns ? attentionTurnCounters(work, slots) : 0;
    int64_t floats = (turns ? slots : blocks) * attentionHeadSums(work);
    Tensor<float> sums(Floats(size_t(floats + counters), NAN));
    bool done;
    {
      DeviceCopies gpu;
      float *space = gpu.of(sums.data(), floats + counters);
      done = by == By::MmaTurns ? attentionBackwardMmaJoint(stream, call, space, slots, blocks)
                                : attentionBackwardWgmmaJoint(stream, call, space, slots, blocks);
    }
    int64_t keys = by == By::MmaTurns ? attentionMmaTileKeys(a.headDim) : kAttentionTileKeys;
    for (int64_t slot = 0; done && slot < slots; ++slot) { // each tile of keys is computed once
      uint32_t finished;
      std::memcpy(&finished, sums.in() + floats + 1 + slot, sizeof(finished));
      EXPECT_EQ(finished, ceilDiv(heads - slot, slots) * ceilDiv(a.keySequence, keys)) << slot;
    }
    return done && sums.marginsKept();
  }
  /// Returns false if the kernels do not support this call.
  bool forward(By by) {
    SimulatedStream stream;
    DeviceCopies gpu;
    HeadsOf<T> to = of(gpu, out.data(), a.sequence, outWidth, a.valueDim);
    HeadsOf<const T> q = qHeads(gpu), k = kHeads(gpu), v = vHeads(gpu);
    if constexpr (sizeof(T) == 2) { // tensor cores have no kernels for float
      if (isByGroups(by))
        return attentionForwardWgmma(stream, to, lse.data(), q, k, v, a);
      if (by == By::Mma || by == By::MmaTurns || by == By::MmaAny)
        return attentionForwardMma(stream, to, lse.data(), q, k, v, a), true;
    }
    attentionForward(stream, to, lse.data(), q, k, v, a);
    return true;
  }
  bool backward(By by) {
    SimulatedStream stream(by == By::Any ? sumsOf(a).scratch() : 0);
    DeviceCopies gpu;
    HeadsOf<T> dqHeads = of(gpu, dq.data(), a.sequence, qWidth, a.headDim);
    HeadsOf<T> dkHeads = of(gpu, dk.data(), a.keySequence, kWidth, a.headDim);
    HeadsOf<T> dvHeads = of(gpu, dv.data(), a.keySequence, vWidth, a.valueDim);
    HeadsOf<const T> doutHeads = of(gpu, dout.in(), a.sequence, outWidth, a.valueDim);
    HeadsOf<const T> from = of(gpu, out.in(), a.sequence, outWidth, a.valueDim);
    HeadsOf<const T> q = qHeads(gpu), k = kHeads(gpu), v = vHeads(gpu);
    float *space = gpu.of(workspace.data(), attentionBackwardWorkspace(a));
    MmaBackward<T> call{dqHeads, dkHeads, dvHeads, space, doutHeads, from, lse.in(), q, k, v, a};
    RowSumsOf<T> sums{dqSums.data(), dkSums.data(), dvSums.data()};
    if (by == By::Any) {
      attentionBackward(stream, dqHeads, dkHeads, dvHeads, space, doutHeads, from, lse.in(), q, k,
                        v, a, {}, {}, sums);
      return true;
    }
    if constexpr (sizeof(T) == 2) {
      if (hasSums)
        call.sums = {partials.data(), sumsOf(a)};
      if (by == By::Mma)
        attentionBackwardMmaByTiles(stream, call);
      else if (by == By::MmaAny)
        attentionBackwardMma(stream, call);
      else if (by == By::Wgmma ? !attentionBackwardWgmmaByTiles(stream, call)
                               : !backwardJointly(stream, call, by))
        return false;
      if (hasSums)
        addPartialRowSums(stream, sums, partials.in(), a);
    }
    return true;
  }
};

/// Calls body(offset) in every order, first with tensors at addresses that many elements after a
/// pack's boundary; once for Half, which uses the same kernel.
template <typename T, typename Body> void inOrders(int64_t offset, Body body) {
  if (std::is_same_v<T, Half>)
    return body(offset);
  inEveryOrder([&, offset]() mutable { body(std::exchange(offset, 0)); });
}

/// Compares with sums in double, and the bits of all orders.
template <typename T> void checkForward(const Case &c, By by, int64_t offset) {
  SCOPED_TRACE(c.what);
  Call<T> call(c.shape);
  ASSERT_TRUE(call.forward(by));
  AttentionReference wanted(c.shape, call.q.floats(), call.k.floats(), call.v.floats());
  // Every probability is rounded once, and the result.
  EXPECT_LE(wanted.out.excess(call.out.floats(), kRounding<T>, 1e-4), 0.0);
  EXPECT_TRUE(call.out.marginsKept() && call.lse.marginsKept());
  for (size_t i = 0; i < wanted.logSumExp.size(); ++i) {
    float actual = call.lse.in()[i], exact = float(wanted.logSumExp[i]);
    EXPECT_TRUE(actual == exact || std::fabs(actual - exact) <= 2e-6f * (1 + std::fabs(exact)))
        << i << ": " << actual << " " << exact;
  }
  inOrders<T>(offset, [&](int64_t offset) {
    Call<T> again(c.shape, offset);
    ASSERT_TRUE(again.forward(by));
    EXPECT_BITS(again.out, call.out.floats());
    EXPECT_BITS(again.lse, call.lse.floats());
  });
}

/// Expects sums of the rows of a gradient before rounding: of those after rounding, within all their roundings.
template <typename T>
void expectSums(const Tensor<float> &sums, const Tensor<T> &gradient, const char *what) {
  Floats rows = gradient.floats(), actual = sums.floats();
  std::vector<double> sum(actual.size()), magnitude(actual.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    sum[i % sum.size()] += rows[i];
    magnitude[i % sum.size()] += std::fabs(rows[i]);
  }
  for (size_t i = 0; i < sum.size(); ++i)
    EXPECT_LE(std::fabs(actual[i] - sum[i]),
              kRounding<T> * magnitude[i] + 1e-4 * std::max(1.0, magnitude[i]))
        << what << " " << i;
  EXPECT_TRUE(sums.marginsKept());
}

template <typename T> void checkBackward(const Case &c, By by, int64_t offset) {
  SCOPED_TRACE(c.what);
  Call<T> call(c.shape);
  ASSERT_TRUE(call.forward(by) && call.backward(by));
  AttentionReference forward(c.shape, call.q.floats(), call.k.floats(), call.v.floats());
  AttentionGradients wanted(forward, call.dout.floats(), call.out.floats());
  // Every probability, or gradient of a score, is rounded once, and the result.
  EXPECT_LE(wanted.dq.excess(call.dq.floats(), kRounding<T>, 1e-4), 0.0);
  EXPECT_LE(wanted.dk.excess(call.dk.floats(), kRounding<T>, 1e-4), 0.0);
  EXPECT_LE(wanted.dv.excess(call.dv.floats(), kRounding<T>, 1e-4), 0.0);
  EXPECT_TRUE(call.dq.marginsKept() && call.dk.marginsKept() && call.dv.marginsKept() &&
              call.workspace.marginsKept() && call.partials.marginsKept());
  expectSums(call.dqSums, call.dq, "dq");
  expectSums(call.dkSums, call.dk, "dk");
  expectSums(call.dvSums, call.dv, "dv");
  inOrders<T>(offset, [&](int64_t offset) {
    Call<T> again(c.shape, offset, /*alignsDq=*/by == By::MmaTurns);
    std::copy_n(call.out.in(), call.out.values().size(), again.out.data());
    std::copy_n(call.lse.in(), call.lse.values().size(), again.lse.data());
    ASSERT_TRUE(again.backward(by));
    EXPECT_BITS(again.dq, call.dq.floats());
    EXPECT_BITS(again.dk, call.dk.floats());
    EXPECT_BITS(again.dv, call.dv.floats());
    EXPECT_BITS(again.dqSums, call.dqSums.floats());
    EXPECT_BITS(again.dkSums, call.dkSums.floats());
    EXPECT_BITS(again.dvSums, call.dvSums.floats());
  });
}

/// The first `others` keys and values are not a number: 0 times one would be none either. The last
/// `rest` queries, none of which sees these keys, and their gradients must not change.
template <typename T>
void checkAreNotRead(By by, const AttentionShape &a, int64_t others, int64_t rest) {
  const int64_t dim = a.headDim;
  Call<T> clean(a), call(a);
  std::fill_n(call.k.data(), others * dim, T(NAN));
  std::fill_n(call.v.data(), others * dim, T(NAN));
  for (Call<T> *each : {&clean, &call})
    ASSERT_TRUE(each->forward(by) && each->backward(by));
  auto last = [&](const Tensor<T> &x) {
    Floats all = x.floats();
    return Floats(all.end() - rest * dim, all.end());
  };
  EXPECT_TRUE(std::isnan(call.out.floats()[0]));
  EXPECT_EQ(last(call.out), last(clean.out));
  EXPECT_EQ(last(call.dq), last(clean.dq));
  if (!a.causal) // gradients of the later keys are of queries that are not a number
    return;
  EXPECT_EQ(last(call.dk), last(clean.dk));
  EXPECT_EQ(last(call.dv), last(clean.dv));
}

/// Keys of the first of two documents. Tiles are of at most 128 rows. Without a causal mask, queries of a document
/// see the later ones.
template <typename T> void checkOthersAreNotRead(By by, int64_t dim, bool causal) {
  constexpr int64_t s = 384, rest = 256; // of the second document
  AttentionShape a = shapeOf(1, 1, s, s, dim, causal);
  std::vector<int32_t> firsts(size_t(s), 0);
  std::fill(firsts.end() - rest, firsts.end(), int32_t(s - rest));
  a.firstKeys = firsts.data();
  checkAreNotRead<T>(by, a, s - rest, rest);
}

/// Keys outside of the last queries' windows; with the wider one, query 256 sees keys from 128 on.
template <typename T> void checkOutsideOfWindowsIsNotRead(By by, int64_t dim) {
  for (int64_t window : {34, 129}) {
    SCOPED_TRACE(window);
    checkAreNotRead<T>(by, shapeOf(1, 1, 384, 384, dim, true, 1, 0, window), 128, 128);
  }
}

} // namespace partita_rt::cuda

#endif // PARTITA_TEST_RUNTIME_CUDA_ATTENTION_CALLS_H
