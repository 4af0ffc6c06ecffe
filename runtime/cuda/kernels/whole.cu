// What is found out about whole arrays: the sum of squares for the norm of all gradients, the sum
// of all elements, which elements are infinite or not a number. Sums in double.
//
// Blocks of 4096 elements, as on the CPU, each to one partial result in scratch memory; one block
// per array adds these up in order. Nothing depends on the device or on chance. One read: sizeof(T)
// bytes per element. squareSum takes up to kArrays arrays of one type per launch.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/block_sum.cuh"
#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = 256, kArrays = 128;

/// Arrays whose blocks are numbered through: those of array i begin at firstBlock[i].
template <typename T> struct Arrays {
  const T *data[kArrays];
  int64_t elements[kArrays], firstBlock[kArrays];
  int target[kArrays]; // the number of its sum
  int count = 0;

  __device__ int holding(int64_t block) const {
    int low = 0, high = count - 1; // the last one that does not begin behind
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

template <typename T, bool kSquares>
__global__ void __launch_bounds__(kThreads) sumBlocks(double *partials, Arrays<T> arrays) {
  int array = arrays.holding(blockIdx.x);
  int64_t begin = (int64_t(blockIdx.x) - arrays.firstBlock[array]) * kWholeBlock;
  int64_t count = least(arrays.elements[array] - begin, kWholeBlock);
  double sum = 0.0;
  for (int64_t first = int64_t(threadIdx.x) * kPack; first < count; first += kThreads * kPack) {
    float v[kPack];
    load(v, arrays.data[array] + begin + first, count - first);
#pragma unroll
    for (float each : v)
      sum += kSquares ? double(each) * double(each) : double(each);
  }
  sum = blockSum<kThreads>(sum);
  if (threadIdx.x == 0)
    partials[blockIdx.x] = sum;
}

/// Block i: the sum of array i, of which all have so many blocks.
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

/// The sums of some arrays, launch by launch.
template <typename T, bool kSquares> class ArraySums {
public:
  ArraySums(const Stream &stream, double *sums) : stream(stream), sums(sums) {}
  void add(const T *data, int64_t elements, int target) {
    if (some.count == kArrays)
      launch();
    some.data[some.count] = data;
    some.elements[some.count] = elements;
    some.target[some.count] = target;
    some.firstBlock[some.count++] = blocks;
    blocks += ceilDiv(elements, kWholeBlock);
  }
  void launch() {
    if (some.count == 0)
      return;
    auto *partials = scratchOf<double>(stream, blocks * 8, "sum of whole arrays");
    if (blocks > 0)
      PARTITA_RT_LAUNCH((sumBlocks<T, kSquares>), gridOf(blocks), kThreads, 0, stream, partials,
                        some);
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

template <bool kSquares, typename T>
void sumOne(const Stream &stream, double *sum, const T *x, int64_t n) {
  ArraySums<T, kSquares> sums(stream, sum);
  sums.add(x, n, 0);
  sums.launch();
}

/// Of the arrays that are stored in T.
template <typename T>
void squareSumOf(const Stream &stream, double *sums, std::initializer_list<Elements> arrays) {
  ArraySums<T, true> some(stream, sums);
  int number = 0;
  for (const Elements &array : arrays) {
    if (array.dtype == kDTypeOf<T>)
      some.add(static_cast<const T *>(array.data), array.count, number);
    ++number;
  }
  some.launch();
}

/// count: how many of the block's elements are not finite; first: the number of the first, or n.
template <typename T>
__global__ void __launch_bounds__(kThreads) findBlocks(NonFinite *partials, const T *x, int64_t n) {
  __shared__ int counts[kThreads];
  __shared__ int firsts[kThreads];
  int64_t begin = int64_t(blockIdx.x) * kWholeBlock, count = least(n - begin, kWholeBlock);
  int found = 0, at = int(kWholeBlock);
  for (int64_t first = int64_t(threadIdx.x) * kPack; first < count; first += kThreads * kPack) {
    float v[kPack];
    load(v, x + begin + first, count - first);
#pragma unroll
    for (int i = kPack - 1; i >= 0; --i)
      if (!(fabsf(v[i]) < __builtin_inff())) {
        ++found;
        at = int(least(at, first + i));
      }
  }
  counts[threadIdx.x] = found;
  firsts[threadIdx.x] = at;
  __syncthreads();
  if (threadIdx.x > 0)
    return;
  for (int i = 1; i < kThreads; ++i) {
    found += counts[i];
    at = firsts[i] < at ? firsts[i] : at;
  }
  partials[blockIdx.x] = {found, begin + at};
}

__global__ void addFound(NonFinite *result, const NonFinite *partials, int64_t blocks) {
  __shared__ NonFinite space[kThreads];
  NonFinite mine{0, -1};
  for (int64_t i = threadIdx.x; i < blocks; i += kThreads)
    if (partials[i].count > 0) {
      mine.first = mine.count > 0 ? mine.first : partials[i].first;
      mine.count += partials[i].count;
    }
  space[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x > 0)
    return;
  for (int i = 1; i < kThreads; ++i)
    if (space[i].count > 0) {
      bool earlier = mine.count == 0 || space[i].first < mine.first;
      mine.first = earlier ? space[i].first : mine.first;
      mine.count += space[i].count;
    }
  *result = mine;
}

} // namespace

template <typename T> void sumOfSquares(const Stream &stream, double *sum, const T *x, int64_t n) {
  sumOne<true>(stream, sum, x, n);
}

template <typename T> void sumAll(const Stream &stream, double *sum, const T *x, int64_t n) {
  sumOne<false>(stream, sum, x, n);
}

void squareSum(const Stream &stream, double *sums, std::initializer_list<Elements> arrays) {
  squareSumOf<float>(stream, sums, arrays);
  squareSumOf<Half>(stream, sums, arrays);
  squareSumOf<BFloat16>(stream, sums, arrays);
}

template <typename T>
void nonFinite(const Stream &stream, NonFinite *found, const T *x, int64_t n) {
  int64_t blocks = ceilDiv(n, kWholeBlock);
  auto *partials = scratchOf<NonFinite>(stream, wholeScratch(n), "nonFinite");
  if (blocks > 0)
    PARTITA_RT_LAUNCH(findBlocks<T>, gridOf(blocks), kThreads, 0, stream, partials, x, n);
  PARTITA_RT_LAUNCH(addFound, 1, kThreads, 0, stream, found, partials, blocks);
}

#define WHOLE(T)                                                                                   \
  template void sumOfSquares(const Stream &, double *, const T *, int64_t);                        \
  template void sumAll(const Stream &, double *, const T *, int64_t);                              \
  template void nonFinite(const Stream &, NonFinite *, const T *, int64_t);
FOR_STORAGE(WHOLE)
#undef WHOLE

} // namespace partita_rt::cuda
