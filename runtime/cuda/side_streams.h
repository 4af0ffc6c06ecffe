// Branches of a captured step that nothing in it waits for.

#ifndef PARTITA_RT_CUDA_SIDE_STREAMS_H
#define PARTITA_RT_CUDA_SIDE_STREAMS_H

#include "cuda/cuda.h"
#include "partita_rt/cuda/device.h"

namespace partita_rt::cuda {

/// Makes the compute stream wait for those of device.sideStreams that its capture has forked to. To
/// be called last in a capture, which CUDA refuses to end while a fork is not joined.
inline void joinSideStreams(const Device &device) {
  for (cudaStream_t side : device.sideStreams) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    checkCuda(cudaStreamIsCapturing(side, &status), "cudaStreamIsCapturing");
    if (status == cudaStreamCaptureStatusNone)
      continue;
    cudaEvent_t end = nullptr;
    checkCuda(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreate");
    checkCuda(cudaEventRecord(end, side), "cudaEventRecord");
    checkCuda(cudaStreamWaitEvent(device.stream.handle, end, 0), "cudaStreamWaitEvent");
    cudaEventDestroy(end);
  }
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_SIDE_STREAMS_H
