// Attention on a GPU, with own kernels and with cuDNN, if present. First, on small shapes: the
// distance from the float kernel, which must be that of 16-bit roundings, and whether a second call
// gives the same bits. Then time and TFLOP/s, forward and backward, for GPT-2's and LLaMA's shapes.
// Needs only nvcc, a driver and runtime/; run as bench/gpu/attention [DEVICE].
//
//   make -C runtime/cuda OUT=$PWD/lib ARCH=sm_90
//   nvcc -std=c++17 -O3 -arch=sm_90 -I runtime/include -I runtime -o attention \
//     bench/gpu/attention.cu lib/libpartita_rt_cuda_sm_90.a -ldl
//
// Work is counted as in FlashAttention's benchmarks: 4 b h s s d operations forward, half of it if
// causal, backward 2.5 times as many: five matmuls for two, as many as the joint pass has; two launches by
// tiles have seven.

#include "bench.cuh"
#include "cuda/attention/attention_mma.cuh"
#include "cuda/attention/fused_attention.h"
#include "partita_rt/cuda/kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace partita_rt;
using namespace partita_rt::cuda;

namespace {

template <typename T> struct Array {
  T *data = nullptr;
  int64_t n;
  explicit Array(int64_t n) : n(n) {
    check(cudaMalloc(&data, size_t(n) * sizeof(T)), "cudaMalloc");
  }
  Array(int64_t n, uint64_t seed) : Array(n) {
    randomize(data, n, seed, 3.4641016f); // variance 1
  }
  Array(const Array &) = delete;
  ~Array() { cudaFree(data); }
  std::vector<T> onHost() const {
    std::vector<T> x(static_cast<size_t>(n));
    check(cudaMemcpy(x.data(), data, x.size() * sizeof(T), cudaMemcpyDeviceToHost), "results");
    return x;
  }
};

/// The operands of one call, q, k and v separate.
template <typename T> struct Call {
  AttentionShape a;
  int64_t kvHeads = a.heads / a.groups, d = a.headDim;
  Array<T> q, k, v, dout, out, dq, dk, dv;
  Array<float> lse, workspace;
  Stream stream;

  explicit Call(const AttentionShape &shape, FusedAttention *fused = nullptr)
      : a(shape), q(queries(), 1), k(keys(), 2), v(keys(), 3), dout(queries(), 4), out(queries()),
        dq(queries()), dk(keys()), dv(keys()), lse(a.batch * a.heads * a.sequence),
        workspace(attentionBackwardWorkspace(a)) {
    stream.attention = fused;
  }
  int64_t queries() const { return a.batch * a.sequence * a.heads * d; }
  int64_t keys() const { return a.batch * a.keySequence * kvHeads * d; }
  template <typename P> HeadsOf<P> ofQ(P *p) const {
    return {p, a.sequence * a.heads * d, a.heads * d, d};
  }
  template <typename P> HeadsOf<P> ofK(P *p) const {
    return {p, a.keySequence * kvHeads * d, kvHeads * d, d};
  }
  static const T *in(const Array<T> &x) { return x.data; }
  void forward() {
    attentionForward(stream, ofQ(out.data), lse.data, ofQ(in(q)), ofK(in(k)), ofK(in(v)), a);
  }
  void backward() {
    attentionBackward(stream, ofQ(dq.data), ofK(dk.data), ofK(dv.data), workspace.data,
                      ofQ(in(dout)), ofQ(in(out)), lse.data, ofQ(in(q)), ofK(in(k)), ofK(in(v)), a);
  }
  /// Calls one form of the backward pass; false: this GPU has none.
  template <typename Form> bool backwardBy(Form form) {
    return form(stream, MmaBackward<T>{ofQ(dq.data), ofK(dk.data), ofK(dv.data), workspace.data,
                                       ofQ(in(dout)), ofQ(in(out)), lse.data, ofQ(in(q)),
                                       ofK(in(k)), ofK(in(v)), a});
  }
};

/// Returns the max distance from the float kernel's numbers, relative to the largest of them.
template <typename T> double distance(const Array<T> &actual, const Array<float> &wanted) {
  std::vector<T> x = actual.onHost();
  std::vector<float> y = wanted.onHost();
  double most = 0.0, largest = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    double each = std::fabs(double(float(x[i])) - double(y[i]));
    most = std::isnan(each) ? INFINITY : std::max(most, each);
    largest = std::max(largest, std::fabs(double(y[i])));
  }
  return most / largest;
}

template <typename T>
bool compare(const char *type, const AttentionShape &shape, double rounding,
             FusedAttention *fused) {
  Call<T> call(shape, fused), again(shape, fused);
  Call<float> wanted(shape);
  call.forward();
  call.backward();
  again.forward();
  again.backward();
  wanted.forward();
  wanted.backward();
  double far = std::max({distance(call.out, wanted.out), distance(call.dq, wanted.dq),
                         distance(call.dk, wanted.dk), distance(call.dv, wanted.dv)});
  auto same = [](const Array<T> &x, const Array<T> &y) {
    std::vector<T> a = x.onHost(), b = y.onHost();
    return memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
  };
  bool repeats = same(call.dq, again.dq) && same(call.dk, again.dk) && same(call.dv, again.dv);
  bool good = far <= 4 * rounding && repeats;
  printf(
      "%-5s %-8s %4lld queries %4lld keys, heads %lld of %3lld, groups %lld%s: %.2f roundings%s\n",
      fused ? "cuDNN" : "own", type, (long long)shape.sequence, (long long)shape.keySequence,
      (long long)shape.heads, (long long)shape.headDim, (long long)shape.groups,
      shape.causal ? ", causal" : "", far / rounding,
      good      ? ""
      : repeats ? "  WRONG"
                : "  OTHER BITS");
  return good;
}

/// Returns the median of several runs in milliseconds.
template <typename Body> double milliseconds(Body body) {
  constexpr int kWarmup = 5, kTurns = 21;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int i = 0; i < kWarmup + kTurns; ++i) {
    check(cudaEventRecord(begin), "event");
    body();
    check(cudaEventRecord(end), "event");
    check(cudaEventSynchronize(end), "kernels");
    float time;
    check(cudaEventElapsedTime(&time, begin, end), "event");
    if (i >= kWarmup)
      times.push_back(time);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + kTurns / 2, times.end());
  return times[kTurns / 2];
}

AttentionShape shapeOf(int64_t batch, int64_t heads, int64_t sequence, int64_t keys, int64_t dim,
                       bool causal, int64_t groups = 1) {
  return {batch, heads, sequence, keys, dim, dim, groups, causal, 1.0f / std::sqrt(float(dim))};
}

void measure(const char *name, const AttentionShape &shape, FusedAttention *fused) {
  Call<BFloat16> call(shape, fused);
  double work = 4e-9 * double(shape.batch * shape.heads) * double(shape.sequence) *
                double(shape.keySequence) * double(shape.headDim) * (shape.causal ? 0.5 : 1.0);
  double forward = milliseconds([&] { call.forward(); });
  double backward = milliseconds([&] { call.backward(); });
  printf("%-24s %-5s forward %8.3f ms %6.1f TFLOP/s   backward %8.3f ms %6.1f TFLOP/s\n", name,
         fused ? "cuDNN" : "own", forward, work / forward, backward, 2.5 * work / backward);
  if (fused || attentionJointSlots(attentionWork(shape, DType::BFloat16)) == 0)
    return;
  // The forms that others replace here, on any GPU since sm_80.
  auto measureForm = [&](const char *form, auto run) {
    if (!call.backwardBy(run))
      return;
    double time = milliseconds([&] { call.backwardBy(run); });
    printf("%-24s %-5s %40s backward %8.3f ms %6.1f TFLOP/s\n", name, "own", form, time,
           2.5 * work / time);
  };
  measureForm("in two launches, by tiles:", [](const Stream &stream, const auto &operands) {
    return attentionBackwardWgmmaByTiles(stream, operands);
  });
  measureForm("by mma.sync:", [](const Stream &stream, const auto &operands) {
    return attentionBackwardMma(stream, operands), true;
  });
  measureForm("by mma.sync, by tiles:", [](const Stream &stream, const auto &operands) {
    return attentionBackwardMmaByTiles(stream, operands), true;
  });
}

} // namespace

int main(int argc, char **argv) {
  check(cudaSetDevice(argc > 1 ? atoi(argv[1]) : 0), "cudaSetDevice");
  std::string why;
  std::unique_ptr<FusedLibrary> library = openCudnn(why);
  std::vector<std::unique_ptr<FusedAttention>> makers(1); // null: own kernels
  Array<unsigned char> workspace(kAttentionWorkspace);
  if (library)
    makers.push_back(std::make_unique<FusedAttention>(AttentionBy::Auto, std::move(library),
                                                      workspace.data, workspace.n));
  else
    printf("cuDNN is left out: %s\n", why.c_str());
  bool good = true;
  for (const auto &maker : makers)
    for (int64_t dim : {64, 80, 96, 128}) {
      for (AttentionShape shape :
           {shapeOf(2, 4, 333, 333, dim, true, 2), shapeOf(1, 2, 100, 259, dim, false)}) {
        good &= compare<BFloat16>("bfloat16", shape, 0x1p-8, maker.get());
        good &= compare<Half>("float16", shape, 0x1p-11, maker.get());
      }
    }
  for (int64_t dim : {64, 128}) // jointly: by heads, by turns
    for (AttentionShape shape :
         {shapeOf(4, 33, 333, 333, dim, true), shapeOf(8, 16, 1024, 1024, dim, true, 2)})
      good &= compare<BFloat16>("bfloat16", shape, 0x1p-8, nullptr);
  struct Shape {
    const char *name;
    AttentionShape shape;
  } shapes[] = {{"GPT-2 124M, 32 x 1024", shapeOf(32, 12, 1024, 1024, 64, true)},
                {"GPT-2 124M, 8 x 1024", shapeOf(8, 12, 1024, 1024, 64, true)},
                {"GPT-2 1.5B, 8 x 1024", shapeOf(8, 25, 1024, 1024, 64, true)},
                {"LLaMA 1B, 4 x 4096", shapeOf(4, 32, 4096, 4096, 64, true, 4)},
                {"LLaMA 8B, 2 x 8192", shapeOf(2, 32, 8192, 8192, 128, true, 4)},
                {"not causal, 4 x 4096", shapeOf(4, 16, 4096, 4096, 128, false)}};
  for (const Shape &each : shapes)
    for (const auto &maker : makers)
      measure(each.name, each.shape, maker.get());
  if (makers.size() > 1)
    printf("%s\n", makers[1]->text().c_str());
  return good ? 0 : 1;
}
