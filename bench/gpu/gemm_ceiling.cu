// The matrix products of a model's training step and nothing else, back to back by cuBLASLt, each
// by the fastest of its suggestions: what the whole step is measured against. bfloat16, random
// operands; one JSON line with milliseconds, tokens/s and TFLOP/s.
//
//   gemm_ceiling TOKENS LAYERS VOCABULARY WIDTH  OUTxIN...      the products of a layer, forward;
//   the head is VOCABULARYxWIDTH

#include "bench.cuh"
#include "cuda/products/products.h"
#include "partita_rt/cuda/kernels.h"

#include <algorithm>
#include <vector>

using namespace partita_rt;
using namespace partita_rt::cuda;

namespace {

BFloat16 *numbers(int64_t n) {
  BFloat16 *x = nullptr;
  check(cudaMalloc(&x, size_t(n) * sizeof(BFloat16)), "cudaMalloc");
  randomize(x, n, 0, 1.0f);
  return x;
}

struct Layer {
  int64_t out, in;
};

/// y = x w, and of the backward pass dx = dy w^T, dw = x^T dy.
void products(const Stream &stream, int64_t tokens, Layer l, BFloat16 *x, BFloat16 *w,
              BFloat16 *y) {
  gemm(stream, Trans::No, Trans::No, tokens, l.out, l.in, 1.0f, x, l.in, w, l.out, 0.0f, y, l.out);
  gemm(stream, Trans::No, Trans::Yes, tokens, l.in, l.out, 1.0f, y, l.out, w, l.out, 0.0f, x, l.in);
  gemm(stream, Trans::Yes, Trans::No, l.in, l.out, tokens, 1.0f, x, l.in, y, l.out, 0.0f, w, l.out);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: gemm_ceiling TOKENS LAYERS VOCABULARY WIDTH OUTxIN...\n");
    return 1;
  }
  int64_t tokens = atoll(argv[1]), layers = atoll(argv[2]);
  std::vector<Layer> block;
  Layer head{atoll(argv[3]), atoll(argv[4])};
  int64_t mostIn = head.in, mostOut = head.out, mostWeight = head.in * head.out;
  for (int i = 5; i < argc; ++i) {
    char *end = nullptr;
    Layer layer{strtoll(argv[i], &end, 10), 0};
    layer.in = *end == 'x' ? atoll(end + 1) : 0;
    if (layer.out < 1 || layer.in < 1) {
      fprintf(stderr, "%s: OUTxIN is expected\n", argv[i]);
      return 1;
    }
    block.push_back(layer);
    mostIn = std::max(mostIn, layer.in);
    mostOut = std::max(mostOut, layer.out);
    mostWeight = std::max(mostWeight, layer.in * layer.out);
  }
  BFloat16 *x = numbers(tokens * mostIn), *w = numbers(mostWeight), *y = numbers(tokens * mostOut);
  void *workspace = nullptr;
  check(cudaMalloc(&workspace, kProductsWorkspace), "cudaMalloc");
  Products chosen(workspace, kProductsWorkspace);
  Stream stream;
  stream.products = &chosen;
  chosen.beginRecording();
  for (Layer layer : block)
    products(stream, tokens, layer, x, w, y);
  products(stream, tokens, head, x, w, y);
  chosen.tuneRecorded(stream, 5);
  double work = 6.0 * double(head.in * head.out);
  for (Layer layer : block)
    work += 6.0 * double(layers) * double(layer.in * layer.out);
  auto step = [&] {
    for (int64_t i = 0; i < layers; ++i)
      for (Layer layer : block)
        products(stream, tokens, layer, x, w, y);
    products(stream, tokens, head, x, w, y);
  };
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int turn = 0; turn < 8; ++turn) {
    // What is multiplied must stay finite: fresh numbers each turn.
    randomize(x, tokens * mostIn, 0, 1.0f);
    randomize(w, mostWeight, 0, 1.0f);
    check(cudaEventRecord(begin), "cudaEventRecord");
    step();
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "a step of products");
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (turn >= 3)
      times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  double ms = times[times.size() / 2];
  printf("{\"milliseconds\": %.3f, \"tokens_per_second\": %.0f, \"tflops\": %.1f}\n", ms,
         double(tokens) / ms * 1e3, work * double(tokens) / ms * 1e-9);
}
