// Exponentials in a single GPU instruction, powerOfTwo: expf adds a reduction of its argument, for
// arguments whose product with log2(e) has too large a rounding error. Here they are differences to
// the max of some numbers, or to the logarithm of their sum, and terms that small add nothing.

#ifndef PARTITA_RT_CUDA_KERNELS_POWER_OF_TWO_CUH
#define PARTITA_RT_CUDA_KERNELS_POWER_OF_TWO_CUH

#include "partita_rt/math.h"

namespace partita_rt::cuda {

constexpr float kLog2E = 1.44269504088896340736f;

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_KERNELS_POWER_OF_TWO_CUH
