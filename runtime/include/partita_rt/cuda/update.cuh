// What emitted updates are launched by: an optimizer's arithmetic, which the compiler prints, over
// all elements of a parameter, its states and its gradient.
//
//     struct adamw_step {
//       Scalar rate_at, t_at, ...;                  // where its scalars stand
//       struct Element {                            // an element's arithmetic
//         float rate_f, keep1_f, ...;
//         __device__ void operator()(int64_t i, float &p, float &m, float &v, float g) const;
//       };
//       __device__ Element prepare() const;         // in double, as on the CPU
//     };
//     updateElements(stream, n, adamw_step{rate, t, ...}, updated(p), updated(m), updated(v),
//     each(g));
//
// What is computed in double is the same for all elements: one thread of a block does, and the
// block has kUpdatePacks packs per thread so that this is little; its pow(x, t) is power(x, t). A
// pack has four elements, a 16-byte access of floats. Memory moved: each operand read and written
// once.

#ifndef PARTITA_RT_CUDA_UPDATE_CUH
#define PARTITA_RT_CUDA_UPDATE_CUH

#include "partita_rt/cuda/block_sum.cuh"
#include "partita_rt/cuda/device.h"
#include "partita_rt/cuda/map.cuh"

namespace partita_rt::cuda {

constexpr int kUpdatePack = 4, kUpdatePacks = 4;
constexpr int64_t kUpdateBlock = int64_t(kElementwiseThreads) * kUpdatePack * kUpdatePacks;
static_assert(kUpdateBlock == kWholeBlock, "a block of an update is one of a sum");

/// base to the power of a step's number, by squares: a dozen multiplications, which IEEE rounds,
/// where all threads of a block would wait microseconds for pow of doubles. Of other exponents pow.
PARTITA_RT_HOST_DEVICE inline double power(double base, double exponent) {
  if (!(exponent >= 0 && exponent <= 0x1p31 && exponent == floor(exponent)))
    return pow(base, exponent);
  double result = 1.0;
  for (auto rest = uint32_t(exponent); rest > 0; rest /= 2) {
    result *= rest % 2 ? base : 1.0;
    base *= base;
  }
  return result;
}

template <typename Element, typename... Packs>
__device__ void updatePack(const Element &element, int64_t first, int count, Packs... packs) {
  (packs.widen(), ...);
#pragma unroll
  for (int i = 0; i < kUpdatePack; ++i)
    if (i < count)
      element(first + i, packs[i]...);
  (packs.storeResult(count), ...);
}

template <typename Step, typename... Operands>
__global__ void __launch_bounds__(kElementwiseThreads)
    updateBlocks(LoopNest<1> nest, Step step, Operands... operands) {
  __shared__ typename Step::Element element;
  if (threadIdx.x == 0)
    element = step.prepare();
  __syncthreads();
  for (int i = 0; i < kUpdatePacks; ++i) {
    int64_t pack = (int64_t(blockIdx.x) * kUpdatePacks + i) * kElementwiseThreads + threadIdx.x;
    if (pack >= nest.packs)
      return;
    PackPlace<1> place(nest, pack, kUpdatePack);
    updatePack(element, place.first, place.count, Held<kUpdatePack, Operands>(operands, place)...);
  }
}

inline LoopNest<1> updateNest(int64_t n) { return {{n}, ceilDiv(n, kUpdatePack)}; }

/// element(i, value, states..., gradient) for all n elements.
template <typename Step, typename... Operands>
void updateElements(const Stream &stream, int64_t n, const Step &step,
                    const Operands &...operands) {
  if (n > 0)
    PARTITA_RT_LAUNCH((updateBlocks<Step, Operands...>), gridOf(ceilDiv(n, kUpdateBlock)),
                      kElementwiseThreads, 0, stream, updateNest(n), step, operands...);
}

//===-- Sums of squares ---------------------------------------------------------------------===//

template <int kSums, typename Element, typename... Packs>
__device__ void addSquares(const Element &element, double (&sums)[kSums], int64_t first, int count,
                           Packs... packs) {
  (packs.widen(), ...);
#pragma unroll
  for (int i = 0; i < kUpdatePack; ++i)
    if (i < count)
      element(first + i, sums, packs[i]...);
}

/// partials[blocks, kSums], blocks of kWholeBlock elements.
template <int kSums, typename Step, typename... Operands>
__global__ void __launch_bounds__(kElementwiseThreads)
    squareBlocks(double *partials, LoopNest<1> nest, Step step, Operands... operands) {
  __shared__ typename Step::Element element;
  if (threadIdx.x == 0)
    element = step.prepare();
  __syncthreads();
  double sums[kSums] = {};
  for (int i = 0; i < kUpdatePacks; ++i) {
    int64_t pack = (int64_t(blockIdx.x) * kUpdatePacks + i) * kElementwiseThreads + threadIdx.x;
    if (pack < nest.packs) {
      PackPlace<1> place(nest, pack, kUpdatePack);
      addSquares(element, sums, place.first, place.count,
                 Held<kUpdatePack, Operands>(operands, place)...);
    }
  }
  for (int sum = 0; sum < kSums; ++sum) {
    double all = blockSum<kElementwiseThreads>(sums[sum]);
    if (threadIdx.x == 0)
      partials[int64_t(blockIdx.x) * kSums + sum] = all;
    __syncthreads(); // the space of the next one
  }
}

/// One block per sum, in one order.
template <int kSums>
__global__ void __launch_bounds__(kElementwiseThreads)
    addSquareBlocks(double *sums, const double *partials, int64_t blocks) {
  double mine = 0.0;
  for (int64_t i = threadIdx.x; i < blocks; i += kElementwiseThreads)
    mine += partials[i * kSums + blockIdx.x];
  mine = blockSum<kElementwiseThreads>(mine);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = mine;
}

/// sums[kSums] over all n elements of what element(i, sums, values...) adds. Scratch:
/// updateSquaresScratch(n, kSums).
template <int kSums, typename Step, typename... Operands>
void sumSquares(const Stream &stream, double *sums, int64_t n, const Step &step,
                const Operands &...operands) {
  int64_t blocks = ceilDiv(n, kWholeBlock);
  auto *partials = scratchOf<double>(stream, updateSquaresScratch(n, kSums), "sums of squares");
  if (n > 0)
    PARTITA_RT_LAUNCH((squareBlocks<kSums, Step, Operands...>), gridOf(blocks), kElementwiseThreads,
                      0, stream, partials, updateNest(n), step, operands...);
  PARTITA_RT_LAUNCH((addSquareBlocks<kSums>), gridOf(kSums), kElementwiseThreads, 0, stream, sums,
                    partials, blocks);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_UPDATE_CUH
