// A stream for the tests of matmuls and of functions that use them.

#ifndef PARTITA_TEST_RUNTIME_CUDA_MATMULS_STREAM_H
#define PARTITA_TEST_RUNTIME_CUDA_MATMULS_STREAM_H

#include "simulated.h"

#include "cuda/matmuls/matmuls.h"

#include <functional>

namespace partita_rt::cuda {

/// A stream with matmuls and its own workspace.
struct MatmulsStream : SimulatedStream {
  explicit MatmulsStream(int64_t scratchBytes = 1 << 20, int64_t workspaceBytes = kMatmulWorkspace)
      : SimulatedStream(scratchBytes), space(new Line[size_t(workspaceBytes) / sizeof(Line)]),
        made(space.get(), workspaceBytes) {
    matmuls = &made;
  }
  struct alignas(256) Line {
    unsigned char bytes[256];
  };
  std::unique_ptr<Line[]> space; // never written, so its pages cost no time
  Matmuls made;
};

/// A small matmul.
inline void makeOne(Stream &stream, Tensor<float> &a, Tensor<float> &b, Tensor<float> &c) {
  gemm(stream, Trans::No, Trans::No, 8, 8, 16, 1.0f, a.in(), 16, b.in(), 8, 0.0f, c.data(), 8);
}

#if !defined(PARTITA_TEST_ON_GPU)
/// How many matmuls `body` makes by the simulated cuBLASLt's algorithm.
inline int64_t counted(simulated::Algorithm algorithm, const std::function<void()> &body) {
  int64_t before = simulated::matmulsBy(algorithm);
  body();
  return simulated::matmulsBy(algorithm) - before;
}
#endif

} // namespace partita_rt::cuda

#endif // PARTITA_TEST_RUNTIME_CUDA_MATMULS_STREAM_H
