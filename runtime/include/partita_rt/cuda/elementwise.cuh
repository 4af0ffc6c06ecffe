// Elementwise kernels: each thread handles one pack of N consecutive elements of every operand.
// `Body` is a struct with operator()(int64_t first, int count) const, which loads and stores
// through pack.cuh; emitted kernels are such structs too.

#ifndef PARTITA_RT_CUDA_ELEMENTWISE_CUH
#define PARTITA_RT_CUDA_ELEMENTWISE_CUH

#include "partita_rt/cuda/pack.cuh"

namespace partita_rt::cuda {

constexpr int kElementwiseThreads = 256;

template <int N, typename Body>
__global__ void __launch_bounds__(kElementwiseThreads) elementwise(int64_t n, Body body) {
  int64_t first = globalThread() * N;
  if (first < n)
    body(first, int(least(n - first, N)));
}

template <int N, typename Body>
void launchElementwise(const Stream &stream, int64_t n, const Body &body) {
  if (n > 0)
    PARTITA_RT_LAUNCH((elementwise<N, Body>), gridOf(ceilDiv(n, int64_t(N) * kElementwiseThreads)),
                      kElementwiseThreads, 0, stream, n, body);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_ELEMENTWISE_CUH
