// Kernels with one mistake each, and one without, run by test/Support/simt under AddressSanitizer:
// no mistake of a kernel may go unnoticed.
//
//   partita_rt_simt_mistakes none|global|shared|barrier

#include "simt/simt.h"

#include <cstdio>
#include <memory>
#include <string>

/// y[i] = the x of the block's threads, in reverse order. beyond: one element too many in global or
/// shared memory. ragged: the last warp leaves before the barrier.
__global__ void reverse(float *y, const float *x, int beyondGlobal, int beyondShared, bool ragged) {
  auto *shared = reinterpret_cast<float *>(simt::dynamicShared());
  int i = int(threadIdx.x), n = int(blockDim.x);
  shared[i + beyondShared] = x[i];
  if (ragged && i >= 32)
    return;
  __syncthreads();
  y[i + beyondGlobal] = shared[n - 1 - i];
}

int main(int argc, char **argv) {
  std::string mistake = argc > 1 ? argv[1] : "none";
  constexpr int n = 64;
  std::unique_ptr<float[]> x(new float[n]), y(new float[n]);
  for (int i = 0; i < n; ++i)
    x[i] = float(i);
  try {
    for (int run = 0; run < 3; ++run) // an abandoned kernel leaves nothing behind
      simt::launch({"reverse", 1, n, n * sizeof(float)}, reverse, y.get(), x.get(),
                   mistake == "global", mistake == "shared", mistake == "barrier" && run == 1);
  } catch (const simt::LaunchError &error) {
    std::printf("error: %s\n", error.what());
    simt::launch({"reverse", 1, n, n * sizeof(float)}, reverse, y.get(), x.get(), 0, 0, false);
  }
  for (int i = 0; i < n; ++i)
    if (y[i] != float(n - 1 - i)) {
      std::printf("element %d is %g\n", i, y[i]);
      return 1;
    }
  std::printf("done\n");
}
