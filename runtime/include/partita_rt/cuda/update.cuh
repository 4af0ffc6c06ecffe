// Launches emitted updates: an optimizer's arithmetic, which the compiler prints, over all elements of a
// parameter, its states and its gradient.
//
//     struct adamw_step {
//       Scalar rate_at, t_at, ...;                  // where its scalars are
//       struct Element {                            // an element's arithmetic
//         float rate_f, keep1_f, ...;
//         __device__ void operator()(int64_t i, float &p, float &m, float &v, float g) const;
//       };
//       __device__ Element prepare() const;         // in double, as on the CPU
//     };
//     updateElements(stream, n, adamw_step{rate, t, ...}, updated(p), updated(m), updated(v),
//     each(g));
//
// Values computed in double are the same for all elements: one thread of a block computes them, and
// the block has kUpdatePacks packs per thread to amortize this; its pow(x, t) is power(x, t). A
// pack has four elements, a 16-byte access of floats. Memory moved: each operand read and written
// once.

#ifndef PARTITA_RT_CUDA_UPDATE_CUH
#define PARTITA_RT_CUDA_UPDATE_CUH

#include "partita_rt/cuda/block_sum.cuh"
#include "partita_rt/cuda/device.h"
#include "partita_rt/cuda/map.cuh"
#include "partita_rt/cuda/table.cuh"

#include <initializer_list>
#include <new>
#include <utility>

namespace partita_rt::cuda {

constexpr int kUpdatePack = 4, kUpdatePacks = 4;
constexpr int64_t kUpdateBlock = int64_t(kElementwiseThreads) * kUpdatePack * kUpdatePacks;
static_assert(kUpdateBlock == kSquareSumBlock, "a block of an update is one of a sum");
static_assert(kUpdateBlock == kTensorBlock, "and one of a table's tensor");

/// Raises base to the power of a step's number by squaring: a dozen multiplications with IEEE
/// rounding. A block's threads would wait microseconds for pow of doubles. Other exponents use pow.
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

/// Updates elements [begin, begin + kUpdateBlock) of a tensor of n.
template <typename Element, typename... Operands>
__device__ void updateBlock(const Element &element, int64_t n, int64_t begin,
                            Operands... operands) {
  int left = int(least(n - begin, kUpdateBlock));
  for (int i = 0; i < kUpdatePacks; ++i) {
    int first = (i * kElementwiseThreads + int(threadIdx.x)) * kUpdatePack;
    if (first >= left)
      return;
    PackRange<1> range(begin + first, int(least(left - first, kUpdatePack)));
    updatePack(element, range.first, range.count, Held<kUpdatePack, Operands>(operands, range)...);
  }
}

template <typename Step, typename... Operands>
__global__ void __launch_bounds__(kElementwiseThreads)
    updateBlocks(int64_t n, Step step, Operands... operands) {
  __shared__ typename Step::Element element;
  if (threadIdx.x == 0)
    element = step.prepare();
  __syncthreads();
  updateBlock(element, n, int64_t(blockIdx.x) * kUpdateBlock, operands...);
}

inline LoopNest<1> updateNest(int64_t n) { return {{n}, ceilDiv(n, kUpdatePack)}; }

/// Calls element(i, value, states..., gradient) for all n elements.
template <typename Step, typename... Operands>
void updateElements(const Stream &stream, int64_t n, const Step &step,
                    const Operands &...operands) {
  if (n > 0)
    PARTITA_RT_LAUNCH((updateBlocks<Step, Operands...>), gridOf(ceilDiv(n, kUpdateBlock)),
                      kElementwiseThreads, 0, stream, n, step, operands...);
}

//===-- All tensors of a table --------------------------------------------------------------===//
//
//     updateAll(stream, tensorRows(kUpdates, kUpdatesOnDevice), {adamw_step{rate, ...}},
//               updated(p), updated(m), updated(v), each(g));
//
// One launch, with as many blocks as the GPU runs at a time: each prepares all steps once and
// handles every gridDim.x-th block of the rows. It searches for a block's tensor from that of its
// previous block on. An element is computed as by updateElements. Memory moved: as there.

/// Blocks that a multiprocessor runs at a time: 48 registers per thread.
constexpr int kUpdateBlocks = 5;

/// The steps that rows choose from, as an argument of the kernel.
template <typename Step> class UpdateSteps {
public:
  static constexpr int kMost = 3072 / int(sizeof(Step));
  static_assert(kMost > 0 && kMost <= kElementwiseThreads, "a thread prepares a step");
  static_assert(sizeof(Scalar) == 32, "gather-updates gives a call 96 of them");

  UpdateSteps(std::initializer_list<Step> steps) {
    if (steps.size() > size_t(kMost))
      fail("an update with %zu lists of scalars; a kernel takes %d", steps.size(), kMost);
    for (const Step &step : steps)
      new (bytes + sizeof(Step) * count++) Step(step);
  }
  __device__ const Step &operator[](unsigned i) const {
    return reinterpret_cast<const Step *>(bytes)[i];
  }

  unsigned count = 0;

private:
  alignas(Step) unsigned char bytes[kMost * sizeof(Step)];
};

template <typename Operand> __device__ Operand movedBy(Operand operand, int64_t bytes) {
  operand.data = moved(operand.data, bytes);
  return operand;
}

template <typename Element, int kColumns, size_t... kColumn, typename... Operands>
__device__ void updateRow(const Element &element, const TensorRow<kColumns> &row, int64_t begin,
                          std::index_sequence<kColumn...>, const Operands &...bases) {
  updateBlock(element, row.elements, begin, movedBy(bases, row.offsets[kColumn])...);
}

template <typename Step, int kColumns, typename... Operands>
__global__ void __launch_bounds__(kElementwiseThreads, kUpdateBlocks)
    updateTensors(const TensorRow<kColumns> *rows, const int64_t *firstBlocks, int64_t blocks,
                  const UpdateSteps<Step> steps, Operands... bases) {
  __shared__ typename Step::Element elements[UpdateSteps<Step>::kMost];
  if (threadIdx.x < steps.count)
    elements[threadIdx.x] = steps[threadIdx.x].prepare();
  __syncthreads();
  int64_t end = firstBlocks[0] + blocks;
  int row = 0;
  for (int64_t block = firstBlocks[0] + blockIdx.x; block < end; block += gridDim.x) {
    while (block >= firstBlocks[row + 1])
      ++row;
    updateRow(elements[rows[row].step], rows[row], (block - firstBlocks[row]) * kUpdateBlock,
              std::make_index_sequence<kColumns>(), bases...);
  }
}

/// Calls element(i, value, states..., gradient) for all elements of all rows.
template <typename Step, int kColumns, typename... Operands>
void updateAll(const Stream &stream, const DeviceRows<kColumns> &rows,
               std::initializer_list<Step> steps, const Operands &...bases) {
  static_assert(sizeof...(Operands) == kColumns, "an operand for each of the table's columns");
  if (rows.blocks > 0)
    PARTITA_RT_LAUNCH((updateTensors<Step, kColumns, Operands...>),
                      gridOf(least(rows.blocks, kMultiprocessors * kUpdateBlocks)),
                      kElementwiseThreads, 0, stream, rows.rows, rows.firstBlocks, rows.blocks,
                      UpdateSteps<Step>(steps), bases...);
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

/// partials[blocks, kSums + kMost], blocks of kSquareSumBlock elements: sums, then maxima of numbers that are not negative.
template <int kSums, int kMost, typename Step, typename... Operands>
__global__ void __launch_bounds__(kElementwiseThreads)
    squareBlocks(double *partials, LoopNest<1> nest, Step step, Operands... operands) {
  __shared__ typename Step::Element element;
  if (threadIdx.x == 0)
    element = step.prepare();
  __syncthreads();
  double sums[kSums + kMost] = {};
  for (int i = 0; i < kUpdatePacks; ++i) {
    int64_t pack = (int64_t(blockIdx.x) * kUpdatePacks + i) * kElementwiseThreads + threadIdx.x;
    if (pack < nest.packs) {
      PackRange<1> range(nest, pack, kUpdatePack);
      addSquares(element, sums, range.first, range.count,
                 Held<kUpdatePack, Operands>(operands, range)...);
    }
  }
  for (int sum = 0; sum < kSums + kMost; ++sum) {
    double all = sum < kSums ? blockSum<kElementwiseThreads>(sums[sum])
                             : blockLargest<kElementwiseThreads>(sums[sum]);
    if (threadIdx.x == 0)
      partials[int64_t(blockIdx.x) * (kSums + kMost) + sum] = all;
    __syncthreads(); // before the next one reuses the space
  }
}

/// Adds each sum with one block, in a fixed order; takes each max.
template <int kSums, int kMost>
__global__ void __launch_bounds__(kElementwiseThreads)
    addSquareBlocks(double *sums, double *largest, const double *partials, int64_t blocks) {
  bool adds = int(blockIdx.x) < kSums;
  double mine = 0.0;
  for (int64_t i = threadIdx.x; i < blocks; i += kElementwiseThreads) {
    double next = partials[i * (kSums + kMost) + blockIdx.x];
    mine = adds ? mine + next : maximum(mine, next);
  }
  mine = adds ? blockSum<kElementwiseThreads>(mine) : blockLargest<kElementwiseThreads>(mine);
  if (threadIdx.x == 0)
    *(adds ? sums + blockIdx.x : largest + (blockIdx.x - kSums)) = mine;
}

/// sums[kSums]: the totals over all n elements of what element(i, sums, values...) adds; largest[kMost]: the maxima of what it keeps
/// behind them. Scratch: updateSquaresScratch(n, kSums + kMost).
template <int kSums, int kMost, typename Step, typename... Operands>
void sumSquares(const Stream &stream, double *sums, double *largest, int64_t n, const Step &step,
                const Operands &...operands) {
  int64_t blocks = ceilDiv(n, kSquareSumBlock);
  auto *partials =
      scratchOf<double>(stream, updateSquaresScratch(n, kSums + kMost), "sums of squares");
  if (n > 0)
    PARTITA_RT_LAUNCH((squareBlocks<kSums, kMost, Step, Operands...>), gridOf(blocks),
                      kElementwiseThreads, 0, stream, partials, updateNest(n), step, operands...);
  PARTITA_RT_LAUNCH((addSquareBlocks<kSums, kMost>), gridOf(kSums + kMost), kElementwiseThreads, 0,
                    stream, sums, largest, partials, blocks);
}

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_UPDATE_CUH
