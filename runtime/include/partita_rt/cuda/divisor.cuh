// Divides by a number known at the launch, with a multiplication: a 64-bit division takes a hundred
// instructions (Granlund and Montgomery, Division by Invariant Integers using Multiplication,
// 1994).

#ifndef PARTITA_RT_CUDA_DIVISOR_CUH
#define PARTITA_RT_CUDA_DIVISOR_CUH

#include "partita_rt/cuda/launch.cuh"

namespace partita_rt::cuda {

/// A divisor above 0, made on the host. If both numbers are below 2^31, n / by = (n * factor / 2^32
/// + n) / 2^shift, where 2^shift is the least power of two that is not below `by`; else it divides.
class Divisor {
public:
  Divisor(int64_t by = 1) : by(by) {
    if (by < 1 || by > INT32_MAX)
      return;
    while (int64_t(1) << shift < by)
      ++shift;
    uint64_t above = (uint64_t(1) << shift) - uint64_t(by);
    factor = uint32_t((above << 32) / uint64_t(by) + 1);
  }
  PARTITA_RT_HOST_DEVICE operator int64_t() const { return by; }

  /// Returns n / by for n >= 0.
  PARTITA_RT_HOST_DEVICE int64_t quotient(int64_t n) const {
    if (factor == 0 || n > INT32_MAX)
      return n / by;
    auto small = uint32_t(n);
    return (uint32_t(uint64_t(small) * factor >> 32) + small) >> shift;
  }

private:
  int64_t by;
  uint32_t factor = 0, shift = 0; ///< factor 0: too large
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_DIVISOR_CUH
