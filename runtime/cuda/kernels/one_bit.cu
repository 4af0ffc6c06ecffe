// Sums with one bit per element (partita_rt/one_bit.h), bit for bit as the CPU's: signs are packed by votes of a warp, whose 32 lanes read
// neighbours. A launch takes up to 54 tensors.
//
// Scales: sixteen lanes sum the squares of a block of 4096 elements, as sixteen lanes of the CPU do; a block of threads then adds the blocks'
// sums, the same tree on both (one_bit_shapes.h). What ranks send is aligned to bytes, so scales and words of bits are read and written as such.
//
// A rank moves about 45 bytes per element, and 12 for its own chunk: 20 to add errors, 4 to pack, 12 for new errors, 4 for the sum, of n elements.

#include "cuda/kernels/one_bit.h"

#include "cuda/kernels/device.cuh"
#include "partita_rt/cuda/elementwise.cuh"
#include "partita_rt/cuda/kernels.h"
#include "partita_rt/one_bit_momentum.h"

namespace partita_rt::cuda {

namespace {

constexpr int kThreads = 256, kTensors = 54;
constexpr int kBlockLanes = 16,
              kHeld = 16; ///< lanes of a block's sum, and the elements that each holds
static_assert(kThreads == kSignScaleLanes, "a thread has a lane of a scale");

/// A tensor, and what of it the launch works on, without padding: all, or this rank's chunk.
struct Tensor {
  float *values, *worker, *server;
  int64_t count, valid, first, size;
  int64_t bits;  ///< offset in a block
  int number;    ///< of the scale in a block
  int firstUnit; ///< of the launch's units of work, which are numbered consecutively
};

struct Tensors {
  Tensor rows[kTensors];
  int count = 0;

  __device__ const Tensor &having(int64_t unit) const {
    int low = 0, high = count - 1; // the last one that does not begin after the unit
    while (low < high) {
      int middle = (low + high + 1) / 2;
      if (rows[middle].firstUnit <= unit)
        low = middle;
      else
        high = middle - 1;
    }
    return rows[low];
  }
  /// Numbers units(row) units of each row. Returns how many there are.
  template <typename Units> int64_t numberUnits(Units units) {
    int64_t all = 0;
    for (int i = 0; i < count; ++i) {
      rows[i].firstUnit = int(all); // gridOf checks the range
      all += units(rows[i]);
    }
    return all;
  }
};
static_assert(sizeof(Tensors) < 4000, "arguments of a kernel have at most 4 KiB");

//===-- What is sent ------------------------------------------------------------------------===//

constexpr unsigned kNoNumber = 0xffffffffu, kExponent = 0x7f800000u;

__device__ inline unsigned loadScaleBits(const uint8_t *at) {
  return unsigned(at[0]) | unsigned(at[1]) << 8 | unsigned(at[2]) << 16 | unsigned(at[3]) << 24;
}
__device__ inline float loadScale(const uint8_t *at) {
  return __builtin_bit_cast(float, loadScaleBits(at));
}
__device__ inline bool isFiniteScale(unsigned bits) { return (bits & kExponent) != kExponent; }
__device__ inline bool isSet(const uint8_t *bits, int64_t i) { return bits[i / 8] >> (i % 8) & 1; }
__device__ inline float signedScale(bool positive, float scale) {
  return positive ? scale : -scale;
}

/// A chunk of a tensor, in parts of a block's size.
struct Chunk {
  int64_t length, first, size; ///< the length is that of all chunks but the last ones
  int64_t sizeInMemory;        ///< with padding
  __device__ Chunk(const Tensor &tensor, int64_t rank, int64_t ranks)
      : length(oneBitChunk(tensor.count, ranks)), first(least(tensor.count, rank * length)),
        size(least(tensor.valid, first + length) - least(tensor.valid, first)),
        sizeInMemory(least(tensor.count, first + length) - first) {}
};

//===-- Scales ------------------------------------------------------------------------------===//

/// The sum of x over the lanes of a block of elements, in their order; all threads of the warp call it.
__device__ inline double sumOverLanes(double x) {
  double sum = 0.0;
  int first = int(threadIdx.x) % kWarp / kBlockLanes * kBlockLanes;
  for (int lane = 0; lane < kBlockLanes; ++lane)
    sum += __shfl_sync(kAllLanes, x, first + lane);
  return sum;
}

/// partials[unit] = the sum of the squares of the unit's elements x[j] = make(tensor, i, x), where i + j * kBlockLanes is below the size.
template <typename Make>
__device__ void sumSquares(double *partials, const Tensors &tensors, int64_t units, Make make) {
  int64_t unit = globalThread() / kBlockLanes;
  int lane = int(threadIdx.x) % kBlockLanes;
  double sum = 0.0;
  if (unit < units) {
    const Tensor &tensor = tensors.having(unit);
    int64_t begin = (unit - tensor.firstUnit) * kSignScaleBlock,
            end = least(begin + kSignScaleBlock, tensor.size);
    for (int64_t i = begin + lane; i < end; i += kBlockLanes * kHeld) {
      float x[kHeld] = {};
      make(tensor, i, end, x);
#pragma unroll
      for (int j = 0; j < kHeld; ++j)
        sum += double(x[j]) * double(x[j]);
    }
  }
  sum = sumOverLanes(sum);
  if (unit < units && lane == 0)
    partials[unit] = sum;
}

/// values += worker.
__global__ void __launch_bounds__(kThreads)
    addErrors(double *partials, Tensors tensors, int64_t units) {
  sumSquares(partials, tensors, units,
             [](const Tensor &tensor, int64_t i, int64_t end, float (&x)[kHeld]) {
#pragma unroll
               for (int j = 0; j < kHeld; ++j)
                 if (int64_t at = i + j * kBlockLanes; at < end)
                   x[j] = tensor.values[at] + tensor.worker[at];
#pragma unroll
               for (int j = 0; j < kHeld; ++j)
                 if (int64_t at = i + j * kBlockLanes; at < end)
                   tensor.values[at] = x[j];
             });
}

/// values of this rank's chunk = server + the sum of what ranks have sent, in their order.
__global__ void __launch_bounds__(kThreads)
    addSigns(double *partials, Tensors tensors, int64_t units, const uint8_t *received,
             int64_t bytes, int ranks, const int *finite) {
  if (!*finite)
    return;
  sumSquares(partials, tensors, units,
             [=](const Tensor &tensor, int64_t i, int64_t end, float (&y)[kHeld]) {
#pragma unroll
               for (int j = 0; j < kHeld; ++j)
                 if (int64_t at = i + j * kBlockLanes; at < end)
                   y[j] = tensor.server[at];
               for (int rank = 0; rank < ranks; ++rank) {
                 const uint8_t *block = received + rank * bytes;
                 float scale = loadScale(block + 4 * tensor.number);
#pragma unroll
                 for (int j = 0; j < kHeld; ++j)
                   if (int64_t at = i + j * kBlockLanes; at < end)
                     y[j] += signedScale(isSet(block + tensor.bits, at), scale);
               }
#pragma unroll
               for (int j = 0; j < kHeld; ++j)
                 if (int64_t at = i + j * kBlockLanes; at < end)
                   tensor.values[tensor.first + at] = y[j];
             });
}

/// Writes the scale of a tensor, whose number in the launch is the block's, to `copies` blocks; unless all are finite, no number.
__global__ void __launch_bounds__(kThreads)
    writeScales(uint8_t *blocks, int64_t bytes, int copies, const double *partials, Tensors tensors,
                const int *finite) {
  __shared__ double space[kThreads];
  const Tensor &tensor = tensors.rows[blockIdx.x];
  int64_t parts = ceilDiv(tensor.size, kSignScaleBlock);
  bool isNumber = !finite || *finite;
  double sum = 0.0;
  for (int64_t i = threadIdx.x; isNumber && i < parts; i += kThreads)
    sum += partials[tensor.firstUnit + i];
  space[threadIdx.x] = sum;
  for (int with = kThreads / 2; with > 0; with /= 2) {
    __syncthreads();
    if (int(threadIdx.x) < with)
      space[threadIdx.x] += space[threadIdx.x + with];
  }
  __syncthreads();
  float scale = tensor.size == 0 ? 0.0f : float(sqrt(space[0] / double(tensor.size)));
  unsigned bits = isNumber ? __builtin_bit_cast(unsigned, scale) : kNoNumber;
  for (int copy = int(threadIdx.x); copy < copies; copy += kThreads)
    for (int byte = 0; byte < 4; ++byte)
      blocks[copy * bytes + 4 * tensor.number + byte] = uint8_t(bits >> (8 * byte));
}

__global__ void __launch_bounds__(kThreads)
    checkScales(int *finite, const uint8_t *received, int64_t bytes, int64_t ranks,
                int64_t tensors) {
  __shared__ int wrong;
  if (threadIdx.x == 0)
    wrong = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < ranks * tensors; i += kThreads)
    if (!isFiniteScale(loadScaleBits(received + i / tensors * bytes + 4 * (i % tensors))))
      atomicMax(&wrong, 1);
  __syncthreads();
  if (threadIdx.x == 0)
    *finite = !wrong;
}

//===-- Bits --------------------------------------------------------------------------------===//

constexpr int kWords = int(kSignScaleBlock / kThreads);
static_assert(kWords <= kWarp, "each lane keeps a word");

/// Writes the signs of what read(i, x) sets, of a part of a chunk, as bits behind `to`: a lane keeps the word of a vote, and
/// lanes write neighbouring bytes. All bits are 1 if `none`.
template <typename Read>
__device__ void packPart(uint8_t *to, const Chunk &chunk, int64_t part, bool none, Read read) {
  int lane = int(threadIdx.x) % kWarp;
  int64_t begin = part * kSignScaleBlock + int(threadIdx.x) / kWarp * (kWords * kWarp);
  unsigned kept = 0;
#pragma unroll
  for (int word = 0; word < kWords; ++word) {
    int64_t i = begin + word * kWarp + lane;
    unsigned signs = __ballot_sync(kAllLanes, i < chunk.size && !none && read(i) >= 0.0f);
    if (lane == word)
      kept = none ? ~0u : signs;
  }
  int64_t bytes = ceilDiv(chunk.length, 8);
  for (int i = 0; i < kWords * 4; i += kWarp) {
    int byte = i + lane;
    unsigned word = __shfl_sync(kAllLanes, kept, byte / 4);
    if (int64_t at = begin / 8 + byte; at < bytes)
      to[at] = uint8_t(word >> (8 * (byte % 4)));
  }
}

/// The bits of all chunks. A unit is a part of a rank's chunk.
__global__ void __launch_bounds__(kThreads)
    packChunks(uint8_t *blocks, int64_t bytes, int ranks, Tensors tensors) {
  const Tensor &tensor = tensors.having(blockIdx.x);
  int64_t parts = ceilDiv(oneBitChunk(tensor.count, ranks), kSignScaleBlock),
          unit = int64_t(blockIdx.x) - tensor.firstUnit, rank = unit / parts;
  Chunk chunk(tensor, rank, ranks);
  const float *x = tensor.values + chunk.first;
  packPart(blocks + rank * bytes + tensor.bits, chunk, unit % parts, false,
           [=](int64_t i) { return x[i]; });
}

/// worker = what the bits of all chunks leave out. A unit is a block of a tensor.
__global__ void __launch_bounds__(kThreads)
    keepErrors(Tensors tensors, const uint8_t *sent, const int *finite) {
  if (!*finite)
    return;
  const Tensor &tensor = tensors.having(blockIdx.x);
  float scale = loadScale(sent + 4 * tensor.number);
  int64_t begin = (int64_t(blockIdx.x) - tensor.firstUnit) * kSignScaleBlock,
          end = least(begin + kSignScaleBlock, tensor.valid);
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    tensor.worker[i] = tensor.values[i] - signedScale(tensor.values[i] >= 0.0f, scale);
}

/// The bits of this rank's sums, and what they leave out. A unit is a part of its chunk.
__global__ void __launch_bounds__(kThreads)
    packServed(uint8_t *served, int self, int ranks, Tensors tensors, const int *finite) {
  const Tensor &tensor = tensors.having(blockIdx.x);
  unsigned bits = loadScaleBits(served + 4 * tensor.number);
  float scale = __builtin_bit_cast(float, bits);
  bool keeps = isFiniteScale(bits);
  packPart(served + tensor.bits, Chunk(tensor, self, ranks), int64_t(blockIdx.x) - tensor.firstUnit,
           !*finite, [=, &tensor](int64_t i) {
             float y = tensor.values[tensor.first + i];
             if (keeps)
               tensor.server[i] = y - signedScale(y >= 0.0f, scale);
             return y;
           });
}

/// The sums of all chunks, and zeros for padding. A unit is a part of a rank's chunk.
__global__ void __launch_bounds__(kThreads)
    unpackChunks(const uint8_t *received, int64_t bytes, int ranks, Tensors tensors) {
  const Tensor &tensor = tensors.having(blockIdx.x);
  int64_t parts = ceilDiv(oneBitChunk(tensor.count, ranks), kSignScaleBlock),
          unit = int64_t(blockIdx.x) - tensor.firstUnit, rank = unit / parts;
  Chunk chunk(tensor, rank, ranks);
  const uint8_t *block = received + rank * bytes;
  float scale = loadScale(block + 4 * tensor.number);
  bool isNumber = scale == scale;
  int64_t begin = unit % parts * kSignScaleBlock,
          end = least(begin + kSignScaleBlock, chunk.sizeInMemory);
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    // Added to 0, as on the CPU, so that no zero is negative.
    float sum =
        isNumber ? 0.0f + signedScale(isSet(block + tensor.bits, i), scale) : __builtin_nanf("");
    tensor.values[chunk.first + i] = i < chunk.size ? sum : 0.0f;
  }
}

//===-- Their order -------------------------------------------------------------------------===//

/// Calls work(tensors) for all tensors, as many at once as a launch takes. What a launch works on is the chunk of rank `self`, or, if that is
/// -1, all.
template <typename Work> void forTables(const OneBitBlocks &blocks, int self, Work work) {
  Tensors some;
  blocks.forTensors([&](const OneBitTensor &each, size_t number, int64_t bits) {
    if (some.count == kTensors) {
      work(some);
      some.count = 0;
    }
    some.rows[some.count++] = {each.values,
                               each.worker,
                               each.server,
                               each.count,
                               each.valid,
                               self < 0 ? 0 : blocks.first(each, self),
                               self < 0 ? each.valid : blocks.size(each, self),
                               bits,
                               int(number),
                               0};
  });
  if (some.count > 0)
    work(some);
}

int64_t blocksOf(const Tensor &tensor) { return signScaleBlocks(tensor.size); }

/// Memory that a call's kernels pass on.
struct OneBitScratch {
  int *finite;
  double *partials;
  OneBitScratch(const Stream &stream, const OneBitBlocks &blocks) {
    int64_t all = 0;
    for (const OneBitTensor &each : blocks.tensors)
      all += signScaleBlocks(each.count);
    auto *base = scratchOf<char>(stream, oneBitSumScratch(all), "a sum with one bit per element");
    finite = reinterpret_cast<int *>(base);
    partials = reinterpret_cast<double *>(base + kOneBitFlagBytes);
  }
};

dim3 gridOfLanes(int64_t units) { return gridOf(ceilDiv(units * kBlockLanes, kThreads)); }

struct RoundedTimes {
  __device__ float operator()(float a, float b) const { return roundedProduct(a, b); }
};

/// A term of a running mean.
struct MeanTerm {
  float *x;
  const float *g, *m;
  float ranks;
  Scalar beta, scale;
  bool exact;
  __device__ void operator()(int64_t first, int count) const {
    float gradient[kPack];
    load(gradient, g + first, count);
    if (!exact) {
      float mean[kPack], change = float(1 - beta.read()), factor = float(scale.read());
      load(mean, m + first, count);
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        gradient[j] = termOfMean(mean[j], ranks, gradient[j], change, factor, RoundedTimes());
    }
    store(x + first, gradient, count);
  }
};

/// The mean after the sum of its terms, or of gradients.
struct MeanOfSum {
  float *m;
  const float *sum;
  Scalar beta, scale;
  bool exact;
  __device__ void operator()(int64_t first, int count) const {
    float total[kPack];
    load(total, sum + first, count);
    if (exact) {
      float mean[kPack], change = float(1 - beta.read()), factor = float(scale.read());
      load(mean, m + first, count);
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        total[j] = nextMean(mean[j], total[j], change, factor, RoundedTimes());
    }
    store(m + first, total, count);
  }
};

__global__ void setFactors(float *ofSums, float *ofGradients, float *typical, const float *factor,
                           const float *t, Scalar beta, ExactSteps exact) {
  writeClipFactors(ofSums, ofGradients, typical, *factor, *t, beta.read(), exact);
}

} // namespace

void packForServers(const Stream &stream, const OneBitBlocks &blocks, uint8_t *sent) {
  OneBitScratch scratch(stream, blocks);
  forTables(blocks, -1, [&](Tensors &tensors) {
    if (int64_t units = tensors.numberUnits(blocksOf))
      PARTITA_RT_LAUNCH(addErrors, gridOfLanes(units), kThreads, 0, stream, scratch.partials,
                        tensors, units);
    PARTITA_RT_LAUNCH(writeScales, gridOf(tensors.count), kThreads, 0, stream, sent, blocks.bytes,
                      blocks.ranks, scratch.partials, tensors, nullptr);
    if (int64_t units = tensors.numberUnits([&](const Tensor &each) {
          return blocks.ranks * signScaleBlocks(oneBitChunk(each.count, blocks.ranks));
        }))
      PARTITA_RT_LAUNCH(packChunks, gridOf(units), kThreads, 0, stream, sent, blocks.bytes,
                        blocks.ranks, tensors);
  });
}

void serveSums(const Stream &stream, const OneBitBlocks &blocks, int self, const uint8_t *sent,
               const uint8_t *received, uint8_t *served) {
  OneBitScratch scratch(stream, blocks);
  PARTITA_RT_LAUNCH(checkScales, 1, kThreads, 0, stream, scratch.finite, received, blocks.bytes,
                    blocks.ranks, int64_t(blocks.tensors.size()));
  forTables(blocks, self, [&](Tensors &tensors) {
    if (int64_t units =
            tensors.numberUnits([](const Tensor &each) { return signScaleBlocks(each.valid); }))
      PARTITA_RT_LAUNCH(keepErrors, gridOf(units), kThreads, 0, stream, tensors, sent,
                        scratch.finite);
    if (int64_t units = tensors.numberUnits(blocksOf))
      PARTITA_RT_LAUNCH(addSigns, gridOfLanes(units), kThreads, 0, stream, scratch.partials,
                        tensors, units, received, blocks.bytes, blocks.ranks, scratch.finite);
    PARTITA_RT_LAUNCH(writeScales, gridOf(tensors.count), kThreads, 0, stream, served, blocks.bytes,
                      1, scratch.partials, tensors, scratch.finite);
    if (int64_t units = tensors.numberUnits([&](const Tensor &each) {
          return signScaleBlocks(oneBitChunk(each.count, blocks.ranks));
        }))
      PARTITA_RT_LAUNCH(packServed, gridOf(units), kThreads, 0, stream, served, self, blocks.ranks,
                        tensors, scratch.finite);
  });
}

void unpackSums(const Stream &stream, const OneBitBlocks &blocks, const uint8_t *received) {
  forTables(blocks, -1, [&](Tensors &tensors) {
    if (int64_t units = tensors.numberUnits([&](const Tensor &each) {
          return blocks.ranks * signScaleBlocks(oneBitChunk(each.count, blocks.ranks));
        }))
      PARTITA_RT_LAUNCH(unpackChunks, gridOf(units), kThreads, 0, stream, received, blocks.bytes,
                        blocks.ranks, tensors);
  });
}

void oneBitTerm(const Stream &stream, float *x, const float *g, const float *m, int64_t n,
                int ranks, Scalar beta, Scalar scale, bool exact) {
  if (!exact || x != g)
    launchElementwise<kPack>(stream, n, MeanTerm{x, g, m, float(ranks), beta, scale, exact});
}

void oneBitMean(const Stream &stream, float *m, const float *sum, int64_t n, Scalar beta,
                Scalar scale, bool exact) {
  launchElementwise<kPack>(stream, n, MeanOfSum{m, sum, beta, scale, exact});
}

void oneBitClip(const Stream &stream, float *ofSums, float *ofGradients, float *typical,
                const float *factor, const float *t, Scalar beta, ExactSteps exact) {
  PARTITA_RT_LAUNCH(setFactors, 1, 1, 0, stream, ofSums, ofGradients, typical, factor, t, beta,
                    exact);
}

} // namespace partita_rt::cuda
