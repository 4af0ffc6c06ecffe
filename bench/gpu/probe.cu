// The cost of a training step's matmuls in isolation, one row each: cuBLASLt's first suggestion,
// its fastest one with the epilogue, the fastest matmul with separate kernels for the epilogue, and
// TFLOP/s of the better. For the classifier, four vocabularies: the original one, which leaves an
// odd column over, and padded ones; its matmuls are compared with two that leave one column to the
// second. The layers' matmuls again with operands in 8 bits, on GPUs that multiply those. Then the
// memory-bound kernels: microseconds, and GB/s of the bytes that each must read and write.
//
//   probe [TOKENS WIDTH VOCABULARY HEAD_ROWS]     (32768 768 50257 4096: GPT-2 124M, 32 x 1,024)
//
// Operands are random bfloat16 numbers; zeros would be faster than a step's operands.

#include "bench.cuh"
#include "cuda/matmuls/matmuls.h"
#include "partita_rt/cuda/kernels.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace partita_rt;
using namespace partita_rt::cuda;

namespace {

int64_t rows = 32768, width = 768, vocabulary = 50257, headRows = 4096;

/// A bfloat16 matrix; the largest of the operands serves all matmuls.
struct Matrix {
  BFloat16 *at = nullptr;
  Matrix(int64_t size, uint64_t seed) {
    check(cudaMalloc(reinterpret_cast<void **>(&at), size_t(size) * sizeof(BFloat16)),
          "cudaMalloc");
    randomize(at, size, seed, 1.0f);
  }
  ~Matrix() { cudaFree(at); }
  Matrix(const Matrix &) = delete;
};

template <typename T> struct Zeros {
  T *at = nullptr;
  explicit Zeros(int64_t size) {
    check(cudaMalloc(reinterpret_cast<void **>(&at), size_t(size) * sizeof(T)), "cudaMalloc");
    check(cudaMemset(at, 0, size_t(size) * sizeof(T)), "cudaMemset");
  }
  ~Zeros() { cudaFree(at); }
  Zeros(const Zeros &) = delete;
};

struct Operands {
  int64_t inner = 4 * width, padded = (vocabulary + 63) / 64 * 64;
  Matrix x{rows * inner, 1}, dy{std::max(rows * inner, headRows *padded), 2},
      w{std::max(inner * inner, padded *width), 3}, y{std::max(rows * inner, headRows *padded), 4},
      aux{rows * inner, 5}, bias{padded, 6}, sums{padded, 7};
};

class Probe {
public:
  Probe() {
    check(cudaStreamCreate(&stream.handle), "cudaStreamCreate");
    check(cudaMalloc(&workspace, kMatmulWorkspace), "cudaMalloc");
    check(cudaMalloc(&stream.scratch, kScratch), "cudaMalloc");
    stream.scratchBytes = kScratch;
    check(cudaDeviceSynchronize(), "random numbers");
    matmuls = std::make_unique<Matmuls>(workspace, kMatmulWorkspace);
    stream.matmuls = matmuls.get();
  }
  ~Probe() {
    matmuls.reset();
    cudaFree(workspace);
    cudaFree(stream.scratch);
    cudaStreamDestroy(stream.handle);
  }

  void layers() {
    for (const Layer &l : kinds) {
      double flops = 2.0 * double(rows) * double(l.out) * double(l.in);
      bool up = l.name == std::string("up"), down = l.name == std::string("down");
      time(l.name + std::string(up ? " forward, bias and gelu" : " forward, bias"), flops, [&] {
        if (up)
          gemmBiasGelu(stream, Trans::No, Trans::No, rows, l.out, l.in, o.x.at, l.in, o.w.at, l.out,
                       o.bias.at, o.y.at, l.out, o.aux.at, l.out);
        else
          gemmBias(stream, Trans::No, Trans::No, rows, l.out, l.in, o.x.at, l.in, o.w.at, l.out,
                   o.bias.at, o.y.at, l.out);
      });
      time(l.name + std::string(down ? " dx, gelu's gradient" : " dx"), flops, [&] {
        if (down)
          gemmGeluGrad(stream, Trans::No, Trans::Yes, rows, l.in, l.out, o.dy.at, l.out, o.w.at,
                       l.out, o.aux.at, l.in, o.y.at, l.in);
        else
          gemm(stream, Trans::No, Trans::Yes, rows, l.in, l.out, 1.0f, o.dy.at, l.out, o.w.at,
               l.out, 0.0f, o.y.at, l.in);
      });
      if (down)
        time(l.name + std::string(" dx, gelu's gradient, its sums"), flops, [&] {
          gemmGeluGrad(stream, Trans::No, Trans::Yes, rows, l.in, l.out, o.dy.at, l.out, o.w.at,
                       l.out, o.aux.at, l.in, o.y.at, l.in, o.sums.at);
        });
      time(l.name + std::string(" dw, bias's gradient"), flops, [&] {
        gemmBiasGrad(stream, Cotangent::B, l.in, l.out, rows, o.x.at, l.in, o.dy.at, l.out, o.y.at,
                     l.out, o.sums.at);
      });
    }
  }

  /// Runs the layers' matmuls of 8-bit operands, both read along k: in the forward pass by the
  /// transpose of the weight, which has [out, in]; for the gradients by the operands' transposes.
  void scaledLayers() {
    int device = 0, major = 0, minor = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "the device");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "the device");
    if (10 * major + minor < 89 || rows % 16 != 0 || width % 16 != 0) {
      printf("no matmuls in 8 bits: compute capability %d.%d, %lld x %lld\n", major, minor,
             (long long)rows, (long long)width);
      return;
    }
    Zeros<Float8E4M3> x(rows * o.inner), w(o.inner * o.inner);
    Zeros<Float8E5M2> dy(rows * o.inner);
    Zeros<float> scale(1);
    fill(stream, scale.at, 0x1p-7f, 1);
    quantize(stream, x.at, o.x.at, scale.at, nullptr, rows * o.inner);
    quantize(stream, w.at, o.w.at, scale.at, nullptr, o.inner * o.inner);
    quantize(stream, dy.at, o.dy.at, scale.at, nullptr, rows * o.inner);
    for (const Layer &l : kinds) {
      double flops = 2.0 * double(rows) * double(l.out) * double(l.in);
      auto name = [&](const char *what) { return l.name + std::string(" in 8 bits, ") + what; };
      time(name("forward"), flops, [&] {
        scaledGemm(stream, Trans::No, Trans::Yes, rows, l.out, l.in, x.at, scale.at, w.at, scale.at,
                   o.y.at);
      });
      time(name("dx"), flops, [&] {
        scaledGemm(stream, Trans::No, Trans::Yes, rows, l.in, l.out, dy.at, scale.at, w.at,
                   scale.at, o.y.at);
      });
      time(name("dw"), flops, [&] {
        scaledGemm(stream, Trans::No, Trans::Yes, l.in, l.out, rows, x.at, scale.at, dy.at,
                   scale.at, o.y.at);
      });
    }
  }

  /// Runs the quantization of activations, weights and cotangents.
  void quantization() {
    Zeros<Float8E4M3> y(rows * o.inner), columns(rows * o.inner);
    Zeros<float> scale(1), max(1);
    fill(stream, scale.at, 0x1p-7f, 1);
    for (int64_t in : {width, o.inner}) {
      auto name = [&](const char *what) { return what + std::to_string(in) + " columns"; };
      int64_t n = rows * in;
      measure(name("8 bits, "), 3 * n,
              [&] { quantize(stream, y.at, o.x.at, scale.at, max.at, n); });
      measure(name("8 bits and their transpose, "), 4 * n, [&] {
        quantizeTransposed(stream, y.at, columns.at, o.x.at, scale.at, max.at, nullptr, rows, in);
      });
      measure(name("8 bits, their transpose and sums, "), 4 * n, [&] {
        quantizeTransposed(stream, y.at, columns.at, o.x.at, scale.at, max.at, o.x.at, rows, in);
      });
      measure(name("8 bits, the transpose, "), 3 * n, [&] {
        quantizeTransposed(stream, nullptr, columns.at, o.x.at, scale.at, max.at, nullptr, rows,
                           in);
      });
    }
  }

  /// Runs the classifier's matmuls over a block of rows, with this many columns in memory.
  void head(int64_t columns, int64_t stride, const char *which) {
    double flops = 2.0 * double(headRows) * double(columns) * double(width);
    auto name = [&](const char *what) { return "head " + std::to_string(columns) + which + what; };
    time(name(" logits"), flops, [&] {
      gemm(stream, Trans::No, Trans::Yes, headRows, columns, width, 1.0f, o.x.at, width, o.w.at,
           width, 0.0f, o.y.at, stride);
    });
    time(name(" dx"), flops, [&] {
      gemm(stream, Trans::No, Trans::No, headRows, width, columns, 1.0f, o.dy.at, stride, o.w.at,
           width, 0.0f, o.y.at, width);
    });
    time(name(" dw"), flops, [&] {
      gemm(stream, Trans::Yes, Trans::No, columns, width, headRows, 1.0f, o.dy.at, stride, o.x.at,
           width, 0.0f, o.y.at, width);
    });
  }

  void heads() {
    int64_t packs = vocabulary / 8 * 8, stride = (vocabulary + 7) / 8 * 8;
    head(vocabulary, stride, "");
    if (packs < vocabulary) {
      head(packs, stride, " without the odd columns");
      head(vocabulary - packs, stride, " odd columns alone");
      head(stride, stride, " padded to 8");
    }
    head(o.padded, o.padded, " padded to 64");
  }

  /// Runs norms of all rows, column sums, and the cross-entropy of a block of rows.
  void kernels() {
    Zeros<float> mean(rows), rstd(rows), loss(headRows), dloss(1);
    Zeros<int64_t> labels(headRows);
    int64_t n = rows * width, stride = (vocabulary + 7) / 8 * 8;
    BFloat16 *x = o.x.at, *dy = o.dy.at, *y = o.y.at, *w = o.w.at, *dw = o.sums.at;
    measure("layer norm forward", 4 * n, [&] {
      layerNormForward<BFloat16>(stream, y, mean.at, rstd.at, x, w, o.bias.at, rows, width, 1e-5f);
    });
    for (bool sums : {false, true})
      measure(
          sums ? "layer norm backward, added, its sums" : "layer norm backward, added", 8 * n, [&] {
            layerNormBackward<BFloat16>(stream, y, dw, o.aux.at, sums ? o.bias.at : nullptr, dy, x,
                                        w, mean.at, rstd.at, rows, width, Write::Set, Write::Add);
          });
    for (int64_t times : {1, 3, 4})
      measure("sums of " + std::to_string(times * width) + " columns", 2 * times * n,
              [&] { columnSum(stream, dw, dy, rows, times * width, times * width); });
    measure("cross-entropy and its gradient", 4 * headRows * vocabulary, [&] {
      crossEntropyLossGrad(stream, loss.at, y, dloss.at, 0, labels.at, headRows, vocabulary, stride,
                           -100, 0);
    });
  }

private:
  static constexpr int64_t kScratch = 64 << 20;
  static constexpr int kRuns = 15;
  Stream stream;
  void *workspace = nullptr;
  std::unique_ptr<Matmuls> matmuls;
  Operands o;
  struct Layer {
    const char *name;
    int64_t out, in;
  };
  const Layer kinds[4] = {{"qkv", 3 * width, width},
                          {"projection", width, width},
                          {"up", o.inner, width},
                          {"down", width, o.inner}};

  /// Measures the median of several runs, each with the caches that the previous one left.
  template <typename Run> void measure(const std::string &name, int64_t bytes, Run run) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<float> times;
    for (int i = -2; i < kRuns; ++i) {
      check(cudaEventRecord(begin, stream.handle), "cudaEventRecord");
      run();
      check(cudaEventRecord(end, stream.handle), "cudaEventRecord");
      check(cudaEventSynchronize(end), name.c_str());
      float ms = 0.0f;
      check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
      if (i >= 0)
        times.push_back(ms);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    printf("%-44s %8.1f %8.0f\n", name.c_str(), times[kRuns / 2] * 1e3,
           double(bytes) / times[kRuns / 2] * 1e-6);
    fflush(stdout);
  }

  /// Tunes the matmuls in `run`, and prints a row. The last choice is that of the matmul itself.
  template <typename Run> void time(const std::string &name, double flops, Run run) {
    matmuls->beginRecording();
    run();
    std::vector<Choice> choices = matmuls->tuneRecorded(stream, 5);
    const Choice &c = choices.back();
    auto micro = [](int64_t nanoseconds) {
      return nanoseconds < 0 ? std::string("-") : std::to_string((nanoseconds + 500) / 1000);
    };
    int32_t splits = 0;
    size_t written = 0;
    const Choice &made = c.apart ? choices.front() : c;
    cublasLtMatmulAlgoConfigGetAttribute(&made.algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                         sizeof splits, &written);
    printf("%-44s %8s %8s %8s %10.1f %6d\n", name.c_str(), micro(c.first).c_str(),
           micro(c.oneKernel).c_str(), micro(c.kernelsApart).c_str(),
           flops / double(c.nanoseconds) * 1e-3, splits);
    fflush(stdout);
  }
};

} // namespace

int main(int argc, char **argv) {
  int64_t *values[] = {&rows, &width, &vocabulary, &headRows};
  if (argc != 1 && argc != 5) {
    fprintf(stderr, "usage: probe [TOKENS WIDTH VOCABULARY HEAD_ROWS]\n");
    return 1;
  }
  for (int i = 1; i < argc; ++i)
    if ((*values[i - 1] = atoll(argv[i])) < 8) {
      fprintf(stderr, "%s: a number from 8 is expected\n", argv[i]);
      return 1;
    }
  Probe probe;
  printf("%-44s %8s %8s %8s %10s %6s\n", "microseconds", "first", "one", "apart", "TFLOP/s",
         "splits");
  probe.layers();
  probe.scaledLayers();
  probe.heads();
  printf("%-44s %8s %8s\n", "bound by memory", "us", "GB/s");
  probe.kernels();
  probe.quantization();
}
