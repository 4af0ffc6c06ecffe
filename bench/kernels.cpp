// Rates of the runtime's kernels on one core, at the sizes of a 6-layer, 384-wide GPT-2 with batch
// 8 x 256 (bench/kernels runs it). GEMM comes first, as the yardstick for attention.

#include "adamw.h"
#include <partita_rt/partita_rt.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <vector>

using namespace partita_rt;

extern "C" void openblas_set_num_threads(int);

namespace {

/// Returns this thread's CPU time. Callers take the best of several runs, since other processes can
/// only slow a run down.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double seconds(const std::function<void()> &body) {
  double best = 1e30, begin = now();
  for (int run = 0; run < 5 || (run < 200 && now() - begin < 0.3); ++run) {
    double start = now();
    body();
    best = std::min(best, now() - start);
  }
  return best;
}

void line(const char *name, double time, double flops, double bytes) {
  std::printf("%-44s %9.3f ms", name, time * 1e3);
  if (flops > 0)
    std::printf("  %7.1f GFLOP/s", flops / time * 1e-9);
  if (bytes > 0)
    std::printf("  %7.1f GB/s", bytes / time * 1e-9);
  std::printf("\n");
}

std::vector<float> random(int64_t n, double std = 1.0) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    values[size_t(i)] = float(standardNormal(1, uint64_t(i)) * std);
  return values;
}

void benchGemm(int64_t m, int64_t n, int64_t k) {
  auto a = random(m * k), b = random(n * k), c = random(m * n), bias = random(n);
  char name[64];
  struct {
    const char *text;
    Trans ta, tb;
  } kinds[] = {
      {"NN", Trans::No, Trans::No}, {"NT", Trans::No, Trans::Yes}, {"TN", Trans::Yes, Trans::No}};
  for (auto kind : kinds) {
    int64_t lda = kind.ta == Trans::No ? k : m, ldb = kind.tb == Trans::No ? n : k;
    std::snprintf(name, sizeof(name), "gemm %s %lldx%lldx%lld", kind.text, (long long)m,
                  (long long)n, (long long)k);
    line(name, seconds([&] {
           gemm(kind.ta, kind.tb, m, n, k, 1.0f, a.data(), lda, b.data(), ldb, 0.0f, c.data(), n);
         }),
         2.0 * m * n * k, 0);
  }
  std::snprintf(name, sizeof(name), "gemmBias NN %lldx%lldx%lld", (long long)m, (long long)n,
                (long long)k);
  line(name, seconds([&] {
         gemmBias(Trans::No, Trans::No, m, n, k, a.data(), k, b.data(), n, bias.data(), c.data(),
                  n);
       }),
       2.0 * m * n * k, 0);
}

void benchAttention(int64_t batch, int64_t heads, int64_t s, int64_t d) {
  int64_t h = heads * d, rows = batch * s;
  auto qkv = random(rows * 3 * h), out = random(rows * h), dout = random(rows * h), dqkv = qkv;
  std::vector<float> lse(size_t(batch * heads * s)), delta(lse);
  AttentionShape shape{batch, heads, s, s, d, d, 1, true, 0.125f};
  auto part = [&](auto *data, int i) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data + i * h, s * 3 * h, 3 * h, d};
  };
  auto full = [&](auto *data) {
    return HeadsOf<std::remove_pointer_t<decltype(data)>>{data, s * h, h, d};
  };
  const float *in = qkv.data(), *o = out.data(), *g = dout.data();
  double pairs = double(batch) * heads * s * (s + 1) / 2 * d;
  char name[64];
  std::snprintf(name, sizeof(name), "attention forward %lldx%lldx%lldx%lld", (long long)batch,
                (long long)heads, (long long)s, (long long)d);
  line(name, seconds([&] {
         attentionForward(full(out.data()), lse.data(), part(in, 0), part(in, 1), part(in, 2),
                          shape);
       }),
       4.0 * pairs, 0);
  std::snprintf(name, sizeof(name), "attention backward %lldx%lldx%lldx%lld", (long long)batch,
                (long long)heads, (long long)s, (long long)d);
  line(name, seconds([&] {
         attentionBackward(part(dqkv.data(), 0), part(dqkv.data(), 1), part(dqkv.data(), 2),
                           delta.data(), full(g), full(o), lse.data(), part(in, 0), part(in, 1),
                           part(in, 2), shape);
       }),
       10.0 * pairs, 0);
}

void benchRows(int64_t rows, int64_t width) {
  auto x = random(rows * width), y = x, dy = x, w = random(width), b = random(width), dw = w,
       db = b;
  std::vector<float> mean(static_cast<size_t>(rows)), rstd(mean);
  double bytes = 4.0 * rows * width;
  line("layer norm forward", seconds([&] {
         layerNormForward(y.data(), mean.data(), rstd.data(), x.data(), w.data(), b.data(), rows,
                          width, 1e-5f);
       }),
       0, 2 * bytes);
  line("layer norm backward", seconds([&] {
         layerNormBackward(y.data(), dw.data(), db.data(), nullptr, dy.data(), x.data(), w.data(),
                           mean.data(), rstd.data(), rows, width, Write::Set);
       }),
       0, 3 * bytes);
  line("column sum", seconds([&] { columnSum(dw.data(), x.data(), rows, width, width); }), 0,
       bytes);
  float *__restrict out = y.data();
  const float *__restrict in = x.data();
  line("gelu (emitted loop, tanh)", seconds([&] {
         for (int64_t i = 0; i < rows * width; ++i)
           out[i] = 0.5f * in[i] *
                    (1.0f + tanhf(0.7978846f * (in[i] + 0.044715f * in[i] * in[i] * in[i])));
       }),
       0, 2 * bytes);
}

void benchCrossEntropy(int64_t rows, int64_t vocabulary) {
  auto logits = random(rows * vocabulary);
  std::vector<float> loss(static_cast<size_t>(rows)), lse(loss), seed(1, 1.0f),
      dlogits(logits.size());
  std::vector<int64_t> labels(static_cast<size_t>(rows), vocabulary / 2);
  char name[64];
  std::snprintf(name, sizeof(name), "cross-entropy forward %lldx%lld", (long long)rows,
                (long long)vocabulary);
  line(name, seconds([&] {
         crossEntropyForward(loss.data(), lse.data(), logits.data(), labels.data(), rows,
                             vocabulary, vocabulary, -100);
       }),
       0, 4.0 * rows * vocabulary);
  std::snprintf(name, sizeof(name), "cross-entropy backward %lldx%lld", (long long)rows,
                (long long)vocabulary);
  line(name, seconds([&] {
         crossEntropyBackward(dlogits.data(), seed.data(), 0, logits.data(), lse.data(),
                              labels.data(), rows, vocabulary, vocabulary, -100);
       }),
       0, 8.0 * rows * vocabulary);
}

} // namespace

int main() {
  openblas_set_num_threads(1);
  benchGemm(2048, 1152, 384);
  benchGemm(2048, 384, 384);
  benchGemm(2048, 1536, 384);
  benchGemm(2048, 384, 1536);
  benchGemm(384, 1536, 2048);
  benchGemm(1024, 1024, 1024);
  benchAttention(8, 6, 256, 64);
  benchAttention(1, 12, 1024, 64);
  benchRows(2048, 384);
  benchCrossEntropy(2048, 256);
  benchCrossEntropy(256, 50257);
  int64_t n = 10'000'000;
  auto p = random(n), m = random(n), v = random(n), g = random(n);
  for (float &value : v)
    value *= value;
  line("adamw", seconds([&] {
         adamw(p.data(), m.data(), v.data(), g.data(), n, 1e-5, 10, 0.9, 0.999, 1e-8, 0.1, 1);
       }),
       0, 28.0 * double(n));
  volatile double sink = 0;
  line("sum of squares", seconds([&] { sink = sumOfSquares(g.data(), n); }), 0, 4.0 * double(n));
}
