// The interface that partita_rt/cuda/launch.cuh requires to compile kernels without nvcc: simt runs
// them, as entries of simulated streams.

#ifndef PARTITA_TEST_WITHOUT_NVCC_LAUNCH_H
#define PARTITA_TEST_WITHOUT_NVCC_LAUNCH_H

#include "simulated/launch.h"

namespace without_nvcc {

using simt::dynamicShared;

template <typename... P, typename... A>
void launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
            cudaStream_t stream, A &&...arguments) {
  simulated::launch({name, grid, block, shared}, stream, kernel, static_cast<A &&>(arguments)...);
}

} // namespace without_nvcc

#endif // PARTITA_TEST_WITHOUT_NVCC_LAUNCH_H
