// Dropout with counter-based random numbers (random.h: Drops), the CPU's: masks are equal bit by bit
// however the tensor is split. x, y of `shape` in T. Moves 2 * sizeof(T) bytes per element; no
// mask is stored, the backward pass recomputes it.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/divisor.cuh"
#include "partita_rt/cuda/elementwise.cuh"
#include "partita_rt/random.h"

namespace partita_rt::cuda {

namespace {

/// The numbers of a shard's elements: runs of consecutive ones, at strides of the full tensor.
struct Numbers {
  ElementAt first;
  Divisor run;
  int outer; ///< dimensions before a run
  int64_t sizes[kMaxDims], strides[kMaxDims];

  __device__ int64_t ofRun(int64_t index) const {
    int64_t number = first.read();
    for (int d = outer - 1; d >= 0; --d) {
      number += index % sizes[d] * strides[d];
      index /= sizes[d];
    }
    return number;
  }
};

Numbers numbersOf(const Shape &shape, const Shape &full, ElementAt first) {
  Numbers numbers{first, 1, shape.rank, {}, {}};
  // Numbers are consecutive from the outermost of the trailing dimensions that may be cut.
  for (bool same = true; same && numbers.outer > 0;) {
    --numbers.outer;
    numbers.run = numbers.run * shape[numbers.outer];
    same = shape[numbers.outer] == full[numbers.outer];
  }
  int64_t stride = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    numbers.sizes[d] = shape[d];
    numbers.strides[d] = stride;
    stride *= full[d];
  }
  return numbers;
}

template <typename T> struct Drop {
  T *y;
  const T *x;
  Numbers numbers;
  Integer stepKey;
  int64_t id;
  double ratio;
  float scale;
  __device__ void operator()(int64_t first, int count) const {
    float v[kPack];
    load(v, x + first, count);
    Drops drops(ratio, uint64_t(stepKey.read()), id);
    int64_t index = numbers.run.quotient(first), within = first - index * numbers.run;
    int64_t number = numbers.ofRun(index) + within;
    if (within + kPack <= numbers.run && (number & 3) == 0) {
#pragma unroll
      for (int i = 0; i < kPack; i += 4) {
        uint64_t word = drops.word((number + i) >> 2);
#pragma unroll
        for (int j = i; j < i + 4; ++j, word >>= 16)
          v[j] = drops.below(uint32_t(word) & 0xFFFF) ? 0.0f : v[j] * scale;
      }
      return store(y + first, v, count);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      v[i] = drops(number) ? 0.0f : v[i] * scale;
      ++number;
      if (++within == numbers.run) {
        within = 0;
        number = numbers.ofRun(++index);
      }
    }
    store(y + first, v, count);
  }
};

} // namespace

template <typename T>
void dropout(const Stream &stream, T *y, const T *x, const Shape &shape, const Shape &full,
             const DropoutAt &dropout, ElementAt first) {
  launchElementwise<kPack>(stream, shape.elements(),
                           Drop<T>{y, x, numbersOf(shape, full, first), dropout.key, dropout.id,
                                   dropout.ratio, float(1.0 / (1.0 - dropout.ratio))});
}

#define DROPOUT(T)                                                                                 \
  template void dropout(const Stream &, T *, const T *, const Shape &, const Shape &,              \
                        const DropoutAt &, ElementAt);
FOR_STORAGE(DROPOUT)
#undef DROPOUT

} // namespace partita_rt::cuda
