// The matmuls of a model's training step and nothing else, back to back on cuBLASLt, each with the
// fastest of its suggestions: an upper bound for the full step. bfloat16; prints one JSON line with
// milliseconds, tokens/s and TFLOP/s.
//
//   gemm_ceiling TOKENS LAYERS VOCABULARY WIDTH  OUTxIN...      the matmuls of a layer, forward;
//   the head is VOCABULARYxWIDTH
//
// Included: per weight, the forward matmul and two backward ones, once per layer, and the head's.
// Excluded: attention's own matmuls, and anything else that a matmul's kernel does. A step of
// Partita has bias, GELU, residuals and bias gradients as epilogues of these same matmuls; here
// they are plain, which saves the step's time but not a matmul's.
//
// Everything possible is in their favour. Leading dimensions are multiples of 8, and so are the
// head's extents, which suits tensor cores best: GPT-2's 50257 columns are multiplied as 50264 and
// counted as 50257 (Partita multiplies 50304). The head's logits are computed for all tokens
// at once, as far as they fit, and its weight is the embedding's table. All layers share their
// operands, so a small weight may still be in the cache.
//
// Operands are random numbers that no matmul overwrites: a GPU that multiplies infinities or NaNs
// draws less power, and its clocks are higher.

#include "bench.cuh"
#include "cuda/matmuls/matmuls.h"
#include "partita_rt/cuda/kernels.h"
#include "partita_rt/cuda/shapes.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace partita_rt;
using namespace partita_rt::cuda;

namespace {

/// Rows of logits per matmul: 6.6 GB of logits, and as much of their gradients.
constexpr int64_t kHeadRows = 65536;

int64_t padded(int64_t columns) { return classifierStride(columns); }

struct Layer {
  int64_t out, in;
};

struct Matrix {
  BFloat16 *at = nullptr;
  int64_t size = 0;

  void needs(int64_t rows, int64_t columns) { size = std::max(size, rows * padded(columns)); }
  void allocate() {
    void *memory = nullptr;
    check(cudaMalloc(&memory, size_t(size) * sizeof(BFloat16)), "cudaMalloc");
    at = static_cast<BFloat16 *>(memory);
  }
};

/// Operands, which are never overwritten, and results: each with as many elements as the largest
/// layer's.
struct Step {
  int64_t tokens = 0, layers = 0;
  std::vector<Layer> block;
  Layer head{0, 0};
  Matrix x, w, dy;  ///< operands
  Matrix y, dx, dw; ///< results

  int64_t headRows() const { return std::min(tokens, kHeadRows); }

  void allocate() {
    for (Layer l : block) {
      x.needs(tokens, l.in);
      w.needs(l.in, l.out);
      dy.needs(tokens, l.out);
    }
    x.needs(tokens, head.in);
    w.needs(padded(head.out), head.in);
    dy.needs(headRows(), head.out);
    dx.size = x.size, dw.size = w.size, y.size = dy.size;
    uint64_t seed = 0;
    for (Matrix *matrix : {&x, &w, &dy, &dx, &dw, &y}) {
      matrix->allocate();
      randomize(matrix->at, matrix->size, ++seed, 1.0f);
    }
  }

  /// Computes y = x w, and for the backward pass dx = dy w^T, dw = x^T dy.
  void multiply(const Stream &stream, Layer l) const {
    int64_t in = padded(l.in), out = padded(l.out);
    gemm(stream, Trans::No, Trans::No, tokens, l.out, l.in, 1.0f, x.at, in, w.at, out, 0.0f, y.at,
         out);
    gemm(stream, Trans::No, Trans::Yes, tokens, l.in, l.out, 1.0f, dy.at, out, w.at, out, 0.0f,
         dx.at, in);
    gemm(stream, Trans::Yes, Trans::No, l.in, l.out, tokens, 1.0f, x.at, in, dy.at, out, 0.0f,
         dw.at, out);
  }

  /// Does the same with w transposed, as in the embedding, and full packs of the vocabulary; later
  /// rows add to dw.
  void multiplyHead(const Stream &stream) const {
    int64_t in = padded(head.in), out = padded(head.out);
    for (int64_t first = 0; first < tokens; first += headRows()) {
      int64_t rows = std::min(headRows(), tokens - first);
      gemm(stream, Trans::No, Trans::Yes, rows, out, head.in, 1.0f, x.at + first * in, in, w.at, in,
           0.0f, y.at, out);
      gemm(stream, Trans::No, Trans::No, rows, head.in, out, 1.0f, dy.at, out, w.at, in, 0.0f,
           dx.at + first * in, in);
      gemm(stream, Trans::Yes, Trans::No, out, head.in, rows, 1.0f, dy.at, out, x.at + first * in,
           in, first > 0 ? 1.0f : 0.0f, dw.at, in);
    }
  }

  void run(const Stream &stream, int64_t times) const {
    for (int64_t i = 0; i < times; ++i)
      for (Layer layer : block)
        multiply(stream, layer);
    multiplyHead(stream);
  }

  double flops() const {
    double work = 6.0 * double(head.in * head.out);
    for (Layer layer : block)
      work += 6.0 * double(layers) * double(layer.in * layer.out);
    return work * double(tokens);
  }
};

Step read(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: gemm_ceiling TOKENS LAYERS VOCABULARY WIDTH OUTxIN...\n");
    exit(1);
  }
  Step step;
  step.tokens = atoll(argv[1]), step.layers = atoll(argv[2]);
  step.head = {atoll(argv[3]), atoll(argv[4])};
  for (int i = 5; i < argc; ++i) {
    char *end = nullptr;
    Layer layer{strtoll(argv[i], &end, 10), 0};
    layer.in = *end == 'x' ? atoll(end + 1) : 0;
    if (layer.out < 1 || layer.in < 1) {
      fprintf(stderr, "%s: OUTxIN is expected\n", argv[i]);
      exit(1);
    }
    step.block.push_back(layer);
  }
  return step;
}

/// Fails on infinities in a result: operands then contain some, and the time is meaningless.
void checkFinite(const Matrix &matrix, const char *name) {
  std::vector<BFloat16> some(size_t(std::min<int64_t>(matrix.size, 1 << 20)));
  check(cudaMemcpy(some.data(), matrix.at, some.size() * sizeof(BFloat16), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  for (BFloat16 each : some)
    if (!std::isfinite(float(each))) {
      fprintf(stderr, "%s is not finite\n", name);
      exit(1);
    }
}

float median(std::vector<float> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  Step step = read(argc, argv);
  step.allocate();
  Stream stream;
  check(cudaStreamCreate(&stream.handle), "cudaStreamCreate");
  check(cudaDeviceSynchronize(), "random numbers");
  void *workspace = nullptr;
  check(cudaMalloc(&workspace, kMatmulWorkspace), "cudaMalloc");
  Matmuls chosen(workspace, kMatmulWorkspace);
  stream.matmuls = &chosen;
  chosen.beginRecording();
  step.run(stream, 1);
  chosen.tuneRecorded(stream, 5);
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int turn = 0; turn < 8; ++turn) {
    check(cudaEventRecord(begin, stream.handle), "cudaEventRecord");
    step.run(stream, step.layers);
    check(cudaEventRecord(end, stream.handle), "cudaEventRecord");
    check(cudaEventSynchronize(end), "a step of matmuls");
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (turn >= 3)
      times.push_back(ms);
  }
  checkFinite(step.y, "y");
  checkFinite(step.dx, "dx");
  checkFinite(step.dw, "dw");
  double ms = median(times);
  printf("{\"milliseconds\": %.3f, \"tokens_per_second\": %.0f, \"tflops\": %.1f}\n", ms,
         double(step.tokens) / ms * 1e3, step.flops() / ms * 1e-9);
}
