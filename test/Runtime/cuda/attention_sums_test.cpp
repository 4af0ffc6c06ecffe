// Sums of rows of attention's gradients: of what kernels have stored, bit for bit those of columnSum;
// of what tensor cores have not rounded yet, see attention_mma_test.cpp and attention_wgmma_test.cpp.

#include "attention_calls.h"
#include "cuda/attention/attention_sums.cuh"

namespace partita_rt::cuda {
namespace {

/// Gradients of random values, and where their sums go.
template <typename T> struct Gradients {
  AttentionShape a;
  AttentionSums sizes = sumsOf(a);
  int64_t rows = a.batch * a.sequence, keyRows = a.batch * a.keySequence, key = sizes.keyColumn(),
          value = sizes.valueColumn(), columns = sizes.columns();
  Floats dq = randomExact<T>(rows * key, "dq"), dk = randomExact<T>(keyRows * (value - key), "dk"),
         dv = randomExact<T>(keyRows * (columns - value), "dv");

  /// columnSum of the three side by side; the shorter ones end with rows of zeros.
  template <typename Y> Floats columnSums() const {
    int64_t most = std::max(rows, keyRows);
    Tensor<T> all(Floats(size_t(most * columns), 0.0f));
    auto place = [&](const Floats &from, int64_t first, int64_t end) {
      for (size_t i = 0; i < from.size(); ++i)
        all.data()[int64_t(i) / (end - first) * columns + first + int64_t(i) % (end - first)] =
            T(from[i]);
    };
    place(dq, 0, key);
    place(dk, key, value);
    place(dv, value, columns);
    Tensor<Y> sums(columns);
    columnSum(SimulatedStream(columnSumScratch(most, columns)), sums.data(), all.in(), most,
              columns, columns);
    return sums.floats();
  }
};

/// [batch, positions, heads, dim] in another order of dimensions, or with gaps between rows and heads.
enum class Layout { Plain, HeadsFirst, Apart };

template <typename T>
Tensor<T> laidOut(const Floats &x, HeadsOf<T> &to, Layout layout, int64_t batch, int64_t positions,
                  int64_t heads, int64_t dim) {
  int64_t gap = layout == Layout::Apart ? 3 : 0, head = dim + gap, row = heads * head + gap;
  if (layout == Layout::HeadsFirst)
    to = {nullptr, heads * positions * dim, dim, positions * dim};
  else
    to = {nullptr, positions * row + gap, row, head};
  Tensor<T> tensor(Floats(size_t(batch * std::max<int64_t>(to.batchStride, 1)), NAN), 1);
  to.data = tensor.data();
  for (int64_t i = 0; i < int64_t(x.size()); ++i) {
    int64_t d = i % dim, h = i / dim % heads, s = i / (dim * heads) % positions,
            b = i / (dim * heads * positions);
    to.data[b * to.batchStride + s * to.rowStride + h * to.headStride + d] = T(x[size_t(i)]);
  }
  return tensor;
}

template <typename T> class AttentionSumsOf : public testing::Test {};
TYPED_TEST_SUITE(AttentionSumsOf, StorageTypes);

TYPED_TEST(AttentionSumsOf, StoredRowsAreColumnSums) {
  using T = TypeParam;
  for (const AttentionShape &a :
       {shapeOf(2, 3, 37, 37, 8, true), shapeOf(1, 4, 300, 300, 20, true, 2, 12),
        shapeOf(3, 2, 40, 9, 7, false), shapeOf(1, 1, 1, 1, 1, true), shapeOf(2, 1, 0, 5, 8, false),
        shapeOf(1, 2, 5, 0, 8, false)}) {
    Gradients<T> g{a};
    Floats wanted = g.template columnSums<T>(), wantedFloats = g.template columnSums<float>();
    int64_t kv = a.heads / a.groups;
    for (Layout layout : {Layout::Plain, Layout::HeadsFirst, Layout::Apart})
      inEveryOrder([&] {
        HeadsOf<T> dq, dk, dv;
        auto q = laidOut(g.dq, dq, layout, a.batch, a.sequence, a.heads, a.headDim);
        auto k = laidOut(g.dk, dk, layout, a.batch, a.keySequence, kv, a.headDim);
        auto v = laidOut(g.dv, dv, layout, a.batch, a.keySequence, kv, a.valueDim);
        Tensor<T> sums(g.columns, 1);
        Tensor<float> dqSums(g.key), dvSums(g.columns - g.value), scratch(g.sizes.scratch() / 4);
        SimulatedStream stream;
        T *packed = sums.data();
        RowSumsOf<T> adjacent{packed, packed + g.key, packed + g.value};
        sumStoredRows(stream, adjacent, scratch.data(), a, dq, dk, dv);
        EXPECT_BITS(sums, wanted);
        // Apart, in float, and without those of dk.
        sumStoredRows(stream, RowSumsOf<T>{dqSums.data(), nullptr, dvSums.data()}, scratch.data(),
                      a, dq, dk, dv);
        EXPECT_BITS(dqSums, Floats(wantedFloats.begin(), wantedFloats.begin() + g.key));
        EXPECT_BITS(dvSums, Floats(wantedFloats.begin() + g.value, wantedFloats.end()));
        EXPECT_TRUE(sums.marginsKept() && scratch.marginsKept() && dqSums.marginsKept() &&
                    dvSums.marginsKept());
      });
  }
}

/// Heads of 130 elements are not for tensor cores.
TYPED_TEST(AttentionSumsOf, PortableKernels) {
  using T = TypeParam;
  AttentionShape a = shapeOf(2, 2, 40, 40, 130, true, 2);
  Call<T> call(a);
  call.forward(By::Any);
  call.backward(By::Any);
  Gradients<T> g{a};
  g.dq = call.dq.floats();
  g.dk = call.dk.floats();
  g.dv = call.dv.floats();
  Floats wanted = g.template columnSums<float>();
  EXPECT_BITS(call.dqSums, Floats(wanted.begin(), wanted.begin() + g.key));
  EXPECT_BITS(call.dkSums, Floats(wanted.begin() + g.key, wanted.begin() + g.value));
  EXPECT_BITS(call.dvSums, Floats(wanted.begin() + g.value, wanted.end()));
}

} // namespace
} // namespace partita_rt::cuda
