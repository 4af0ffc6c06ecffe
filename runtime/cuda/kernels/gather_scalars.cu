// Passes scalars of a step to its host (partita_rt/cuda/host_update.h): one thread each.

#include "partita_rt/cuda/host_update.h"
#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

namespace {

struct Scalars {
  Scalar list[kHostScalars] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
};

__global__ void __launch_bounds__(kWarp) gather(double *to, Scalars scalars, int count) {
  if (int(threadIdx.x) < count)
    to[threadIdx.x] = scalars.list[threadIdx.x].read();
  __threadfence_system();
}

} // namespace

void gatherScalars(const Stream &stream, double *to, std::initializer_list<Scalar> scalars) {
  Scalars given;
  int count = 0;
  for (const Scalar &scalar : scalars) {
    if (count == kHostScalars)
      fail("an update of %zu scalars, the host takes %d", scalars.size(), kHostScalars);
    given.list[count++] = scalar;
  }
  if (count > 0)
    PARTITA_RT_LAUNCH(gather, 1, kWarp, 0, stream, to, given, count);
}

} // namespace partita_rt::cuda
