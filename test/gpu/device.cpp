// Prints one JSON line about the CUDA stack and the first GPU: versions, name, memory,
// multiprocessors.

#include <cublasLt.h>
#include <cuda_runtime.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <cstdio>

int main() {
  int runtime = 0, driver = 0, nccl = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
#ifdef NCCL_MAJOR
  ncclGetVersion(&nccl);
#endif
  cudaDeviceProp gpu;
  if (cudaError_t error = cudaGetDeviceProperties(&gpu, 0); error != cudaSuccess) {
    std::fprintf(stderr, "no GPU can be used: %s\n", cudaGetErrorString(error));
    return 1;
  }
  std::printf(
      "{\"gpu\": \"%s\", \"capability\": \"%d.%d\", \"bytes\": %zu, \"multiprocessors\": %d, "
      "\"cuda_runtime\": %d, \"cuda_driver\": %d, \"cublaslt\": %zu, \"nccl\": %d}\n",
      gpu.name, gpu.major, gpu.minor, gpu.totalGlobalMem, gpu.multiProcessorCount, runtime, driver,
      cublasLtGetVersion(), nccl);
}
