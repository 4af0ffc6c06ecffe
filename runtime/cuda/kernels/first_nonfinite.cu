// Finds the parameter whose gradient has overflowed: the least number among those whose sum of
// squares is not finite, a few hundred sums per launch, in one block.

#include "partita_rt/cuda/kernels.h"

#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kSums = 224; // 3.6 KiB of arguments

struct Sums {
  const double *sums[kSums];
  int32_t parameters[kSums];
  int count = 0;
};

__global__ void __launch_bounds__(kSums) findNonfinite(int32_t *report, Sums all, bool first) {
  __shared__ int32_t found[kSums];
  int i = int(threadIdx.x);
  bool wrong = i < all.count && !(fabs(*all.sums[i]) < double(__builtin_inff()));
  found[i] = wrong ? all.parameters[i] : -1;
  __syncthreads();
  if (i > 0)
    return;
  int32_t least = first ? -1 : *report;
  for (int32_t each : found)
    if (each >= 0 && (least < 0 || each < least))
      least = each;
  *report = least;
}

} // namespace

void firstNonfinite(const Stream &stream, int32_t *report, const Squares *squares, size_t count,
                    const int *parameters) {
  Sums some;
  bool first = true;
  auto launch = [&] {
    PARTITA_RT_LAUNCH(findNonfinite, 1, kSums, 0, stream, report, some, first);
    some.count = 0;
    first = false;
  };
  for (const Squares *each = squares; each != squares + count; ++each)
    for (int64_t i = 0; i < each->count; ++i, ++parameters) {
      if (some.count == kSums)
        launch();
      some.sums[some.count] = each->sums + i;
      some.parameters[some.count++] = *parameters;
    }
  if (some.count > 0 || first)
    launch();
}

} // namespace partita_rt::cuda
