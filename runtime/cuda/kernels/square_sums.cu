// Sums of squares of entire arrays, for the norm of all gradients, in double.
//
// Blocks of 4096 elements, as on the CPU, each write one partial result to scratch memory; one
// block per array adds these up in order. The result is deterministic and the same on every device.
// One read: sizeof(T) bytes per element. Up to kArrays arrays of one type per launch.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/row.cuh"
#include "partita_rt/cuda/block_sum.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = 256, kArrays = 160; // 3.8 KiB of arguments

/// Arrays with consecutive block numbers: those of array i begin at firstBlock[i].
template <typename T> struct Arrays {
  const T *data[kArrays];
  int64_t elements[kArrays];
  int firstBlock[kArrays], target[kArrays]; // number of the array's sum
  int count = 0;

  __device__ int holding(int64_t block) const {
    int low = 0, high = count - 1; // the last one that does not begin after the block
    while (low < high) {
      int middle = (low + high + 1) / 2;
      if (firstBlock[middle] <= block)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) sumBlocks(double *partials, Arrays<T> arrays) {
  int array = arrays.holding(blockIdx.x);
  int64_t begin = (int64_t(blockIdx.x) - arrays.firstBlock[array]) * kSquareSumBlock;
  int64_t count = least(arrays.elements[array] - begin, kSquareSumBlock);
  double sum = 0.0;
  for (int64_t first = int64_t(threadIdx.x) * kPack; first < count; first += kThreads * kPack) {
    float v[kPack];
    load(v, arrays.data[array] + begin + first, count - first);
#pragma unroll
    for (float each : v)
      sum += double(each) * double(each);
  }
  sum = blockSum<kThreads>(sum);
  if (threadIdx.x == 0)
    partials[blockIdx.x] = sum;
}

/// Block i adds up array i; all arrays have the same number of blocks.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    addBlocks(double *sums, const double *partials, Arrays<T> arrays, int64_t blocks) {
  int array = int(blockIdx.x);
  int64_t end = array + 1 < arrays.count ? arrays.firstBlock[array + 1] : blocks;
  double mine = 0.0;
  for (int64_t i = arrays.firstBlock[array] + threadIdx.x; i < end; i += kThreads)
    mine += partials[i];
  mine = blockSum<kThreads>(mine);
  if (threadIdx.x == 0)
    sums[arrays.target[array]] = mine;
}

/// The sums of some arrays, computed launch by launch.
template <typename T> class ArraySums {
public:
  ArraySums(const Stream &stream, double *sums) : stream(stream), sums(sums) {}
  void add(const T *data, int64_t elements, int target) {
    if (some.count == kArrays)
      launch();
    some.data[some.count] = data;
    some.elements[some.count] = elements;
    some.target[some.count] = target;
    some.firstBlock[some.count++] = int(blocks); // launch()'s gridOf checks the range
    blocks += ceilDiv(elements, kSquareSumBlock);
  }
  void launch() {
    if (some.count == 0)
      return;
    auto *partials = scratchOf<double>(stream, blocks * 8, "sums of squares");
    if (blocks > 0)
      PARTITA_RT_LAUNCH((sumBlocks<T>), gridOf(blocks), kThreads, 0, stream, partials, some);
    PARTITA_RT_LAUNCH((addBlocks<T>), gridOf(some.count), kThreads, 0, stream, sums, partials, some,
                      blocks);
    some.count = 0;
    blocks = 0;
  }

private:
  const Stream &stream;
  double *sums;
  Arrays<T> some;
  int64_t blocks = 0;
};

/// Does this for the arrays stored in T.
template <typename T>
void squareSumOf(const Stream &stream, double *sums, const Elements *arrays, size_t count) {
  ArraySums<T> some(stream, sums);
  for (size_t i = 0; i < count; ++i)
    if (arrays[i].dtype == kDTypeOf<T>)
      some.add(static_cast<const T *>(arrays[i].data), arrays[i].count, int(i));
  some.launch();
}

} // namespace

void squareSum(const Stream &stream, double *sums, const Elements *arrays, size_t count) {
  squareSumOf<float>(stream, sums, arrays, count);
  squareSumOf<Half>(stream, sums, arrays, count);
  squareSumOf<BFloat16>(stream, sums, arrays, count);
}

} // namespace partita_rt::cuda
