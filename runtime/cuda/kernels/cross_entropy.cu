// Cross-entropy of rows of logits: loss = logSumExp - logits[label], and its gradient, dlogits =
// dloss * (softmax(logits) - onehot(label)), in place or not. logits [rows, stride] in T, of which
// `vocabulary` columns count; loss, logSumExp, dloss [rows] float.
//
// One block per row. The max and the sum of exponentials are found in one read ("online": Milakov
// and Gimelshein, arXiv 1805.02867). Loss alone: one read. Gradient: one read, one write. Both at
// once (crossEntropyLossGrad): the row stays in shared memory between the two sweeps, so memory
// sees one read and one write, 2 * sizeof(T) bytes per logit. Two rows of 50,257 16-bit logits fit
// into a multiprocessor of an H100: one is read while the other is written. A row that is not
// aligned, or is larger than a block's shared memory, is read twice; the bits are the same. The
// backward pass begins with the rows that the forward pass, or the matmul, wrote last.
//
// The kernels are memory-bound as long as a logit costs no more than some 20 instructions (in both
// sweeps): exponentials are powers of two (power_of_two.cuh), the loops handle only full packs, and
// a label is found by its pack.
//
// Vocab-parallel: logSumExp of each rank's columns, combined by the program, then tokenLoss and
// crossEntropyBackward of each rank's columns.

#include "partita_rt/cuda/kernels.h"

#include "cuda/kernels/async_copy.cuh"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/power_of_two.cuh"
#include "cuda/kernels/row.cuh"

namespace partita_rt::cuda {

namespace {

/// Loads a full pack. Alignment is checked once per row, so the loops over packs have no branch;
/// the elements are the same either way.
template <bool kAligned, typename T> __device__ void loadPack(float (&v)[kPack], const T *p) {
  Pack<T, kPack> bits;
  if constexpr (kAligned)
    loadAligned(bits, p);
  else
    loadSingly(bits, p, kPack, T(0));
  widen(v, bits);
}

template <bool kAligned, typename T> __device__ void storePack(T *p, const float (&v)[kPack]) {
  Pack<T, kPack> bits;
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    bits.values[i] = v[i];
  if constexpr (kAligned)
    storeAligned(p, bits);
  else
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      p[i] = bits.values[i];
}

/// The max of some numbers, and the sum of their exponentials relative to it. A NaN affects only
/// the sum.
struct Exponentials {
  float largest = Largest::kNone, sum = 0.0f;

  __device__ static float shiftOf(float largest) {
    return largest == Largest::kNone ? 0.0f : largest;
  }
  __device__ void add(const float (&v)[kPack]) {
    float now = largest;
#pragma unroll
    for (float each : v)
      now = fmaxf(now, each);
    float shift = shiftOf(now);
    sum *= powerOfTwo((largest - shift) * kLog2E); // 0 initially
    largest = now;
#pragma unroll
    for (float each : v)
      sum += powerOfTwo((each - shift) * kLog2E);
  }
};

template <bool kAligned, typename T>
__device__ void addFullPacks(Exponentials &found, const T *x, int packs) {
#pragma unroll 2
  for (int i = int(threadIdx.x); i < packs; i += int(blockDim.x)) {
    float v[kPack];
    loadPack<kAligned>(v, x + int64_t(i) * kPack);
    found.add(v);
  }
}

/// Returns log(sum(exp(x[0 .. width)))) in every thread of the block. `found`: the result for this
/// thread's full packs.
template <typename T>
__device__ float joined(Exponentials found, const T *x, int64_t width, float *space) {
  int packs = int(width / kPack), rest = int(width % kPack);
  if (rest > 0 && int(threadIdx.x) == packs % int(blockDim.x)) {
    float v[kPack];
    load(v, x + int64_t(packs) * kPack, rest, Largest::kNone);
    found.add(v);
  }
  float all = overRow<Largest>(found.largest, space), shift = Exponentials::shiftOf(all);
  float mine = found.sum * powerOfTwo((found.largest - shift) * kLog2E);
  return all + logf(overRow<Sum>(mine, space));
}

template <typename T> __device__ float rowLogSumExp(const T *x, int64_t width, float *space) {
  Exponentials found;
  int packs = int(width / kPack);
  if (isAligned<kAccess<T, kPack>>(x))
    addFullPacks<true>(found, x, packs);
  else
    addFullPacks<false>(found, x, packs);
  return joined(found, x, width, space);
}

/// The gradients of a row: dx = seed * (exp(x - logSumExp) - onehot(label)).
struct Gradients {
  float seed, logSumExp;
  int label; ///< -1: not on this rank

  __device__ void of(float (&v)[kPack], int pack) const {
#pragma unroll
    for (float &each : v)
      each = seed * powerOfTwo((each - logSumExp) * kLog2E);
    if (pack == label / kPack)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        if (pack * kPack + i == label)
          v[i] -= seed;
  }
};

template <bool kAligned, typename T>
__device__ void fullPackGradients(T *dx, const T *x, const Gradients &gradients, int packs) {
#pragma unroll 2
  for (int i = int(threadIdx.x); i < packs; i += int(blockDim.x)) {
    float v[kPack];
    loadPack<kAligned>(v, x + int64_t(i) * kPack);
    gradients.of(v, i);
    storePack<kAligned>(dx + int64_t(i) * kPack, v);
  }
}

/// Computes the elements after the full packs: the last of `inside` columns, followed by zeros.
template <typename T>
__device__ void restOfGradient(T *dx, const T *x, const Gradients &gradients, int packs,
                               int64_t inside, int64_t stride) {
  for (int64_t i = packs + int64_t(threadIdx.x); i * kPack < stride; i += blockDim.x) {
    int64_t first = i * kPack, here = least(most(inside - first, 0), kPack);
    float v[kPack] = {};
    if (here > 0) {
      load(v, x + first, here);
      gradients.of(v, int(i));
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      v[j] = j < here ? v[j] : 0.0f;
    store(dx + first, v, least(stride - first, kPack));
  }
}

/// dx = seed * (exp(x - logSumExp) - onehot(label)) for columns [0, inside), then 0. label is -1 if
/// it is not on this rank. Ignored rows, with seed 0 and no label, are written without reading.
template <typename T>
__device__ void rowGradient(T *dx, const T *x, float seed, float logSumExp, int64_t label,
                            bool ignored, int64_t inside, int64_t stride) {
  constexpr int kBytes = kAccess<T, kPack>;
  Gradients gradients{seed, logSumExp, int(label)};
  int packs = ignored ? 0 : int(inside / kPack);
  if (isAligned<kBytes>(x) && isAligned<kBytes>(dx))
    fullPackGradients<true>(dx, x, gradients, packs);
  else
    fullPackGradients<false>(dx, x, gradients, packs);
  restOfGradient(dx, x, gradients, packs, ignored ? 0 : inside, stride);
}

/// Does this row have no loss? An invalid label is reported, and its row has none.
__device__ bool ignores(int64_t label, int64_t row, int64_t full, int64_t ignoreIndex,
                        Fault *fault) {
  if (label == ignoreIndex)
    return true;
  bool wrong = label < 0 || label >= full;
  if (wrong && threadIdx.x == 0)
    report(fault, Fault::Label, label, row, 0, full);
  return wrong;
}

//===-- A row in shared memory ----------------------------------------------------------------===//

/// The full packs of a row in shared memory. Each thread reads only what it has copied itself, so
/// no barrier is needed. All copies start at once, in kRuns groups; a thread has the packs of
/// addFullPacks, in its order.
template <typename T> class HeldRow {
public:
  static constexpr int kRuns = 4;

  __device__ HeldRow(T *held, const T *x, int packs)
      : held(held), packs(packs),
        run(int(ceilDiv(packs, int64_t(kRuns) * blockDim.x) * blockDim.x)) {
#pragma unroll 1
    for (int each = 0; each < kRuns; ++each) {
#pragma unroll 4
      for (int i = begin(each); i < end(each); i += int(blockDim.x))
        copyPack(held + i * kPack, x + int64_t(i) * kPack);
      commitCopies();
    }
  }
  /// Processes each run as soon as it has arrived.
  __device__ Exponentials exponentials() const {
    Exponentials found;
    addRun<0>(found);
    addRun<1>(found);
    addRun<2>(found);
    addRun<3>(found);
    static_assert(kRuns == 4);
    return found;
  }
  __device__ void writeGradients(T *dx, const Gradients &gradients) const {
#pragma unroll 2
    for (int i = int(threadIdx.x); i < packs; i += int(blockDim.x)) {
      float v[kPack];
      loadPack<true>(v, held + i * kPack);
      gradients.of(v, i);
      storePack<true>(dx + int64_t(i) * kPack, v);
    }
  }

private:
  T *held;
  int packs, run; ///< per row; per run, a multiple of the block's threads

  __device__ int begin(int number) const { return number * run + int(threadIdx.x); }
  __device__ int end(int number) const { return int(least(packs, (number + 1) * run)); }
  __device__ static void copyPack(T *to, const T *from) {
    constexpr int kElements = 16 / int(sizeof(T));
#pragma unroll
    for (int i = 0; i < kPack; i += kElements)
      copyAsync(to + i, from + i, 16);
  }
  template <int kNumber> __device__ void addRun(Exponentials &found) const {
    waitForCopies<kRuns - 1 - kNumber>();
#pragma unroll 2
    for (int i = begin(kNumber); i < end(kNumber); i += int(blockDim.x)) {
      float v[kPack];
      loadPack<true>(v, held + i * kPack);
      found.add(v);
    }
  }
};

/// Bytes of the kernel's dynamic shared memory.
template <typename T> int64_t heldRowBytes(int64_t vocabulary) {
  return vocabulary / kPack * kPack * int64_t(sizeof(T));
}

/// Is the row aligned, and does it fit into this GPU's shared memory?
template <typename T> bool isHeld(const T *logits, int64_t vocabulary, int64_t stride) {
  constexpr int64_t kOther = 1024; // static shared memory, and room for more of that
  int device = 0, most = 0;
  return reinterpret_cast<uintptr_t>(logits) % 16 == 0 && stride * int64_t(sizeof(T)) % 16 == 0 &&
         cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) ==
             cudaSuccess &&
         heldRowBytes<T>(vocabulary) + kOther <= most;
}

/// Computes crossEntropyRows with a gradient, bit for bit, for rows that are held.
template <typename T>
__global__ void __launch_bounds__(kMostRowThreads, 2)
    crossEntropyOfHeldRows(float *loss, T *logits, const float *dloss, int64_t dlossStride,
                           const int64_t *labels, int64_t vocabulary, int64_t stride,
                           int64_t ignoreIndex, Fault *fault, int64_t firstRow) {
  PARTITA_RT_DYNAMIC_SHARED(dynamic);
  __shared__ float space[kWarp];
  int64_t row = blockIdx.x, label = labels[row];
  T *x = logits + row * stride;
  float seed = dloss[row * dlossStride];
  if (ignores(label, firstRow + row, vocabulary, ignoreIndex, fault)) { // for all of the block
    if (threadIdx.x == 0)
      loss[row] = 0.0f;
    return restOfGradient(x, x, {}, 0, 0, stride);
  }
  int packs = int(vocabulary / kPack);
  HeldRow<T> held(reinterpret_cast<T *>(dynamic), x, packs);
  float mine = x[label], all = joined(held.exponentials(), x, vocabulary, space);
  if (threadIdx.x == 0)
    loss[row] = all - mine;
  __syncthreads(); // all threads have read the label's logit
  Gradients gradients{seed, all, int(label)};
  held.writeGradients(x, gradients);
  restOfGradient(x, x, gradients, packs, vocabulary, stride);
}

//===-- Rows in memory ------------------------------------------------------------------------===//

/// Computes logSumExp and loss; unless dloss is null, also replaces logits by their gradient.
template <typename T, bool kGradient>
__global__ void __launch_bounds__(kMostRowThreads)
    crossEntropyRows(float *loss, float *logSumExp,
                     std::conditional_t<kGradient, T, const T> *logits, const float *dloss,
                     int64_t dlossStride, const int64_t *labels, int64_t vocabulary, int64_t stride,
                     int64_t ignoreIndex, Fault *fault, int64_t firstRow) {
  __shared__ float space[kWarp];
  int64_t row = blockIdx.x, label = labels[row];
  auto *x = logits + row * stride;
  bool ignored = ignores(label, firstRow + row, vocabulary, ignoreIndex, fault);
  float all = 0.0f, mine = 0.0f;
  if (!ignored) { // for all of the block
    all = rowLogSumExp(x, vocabulary, space);
    mine = x[label];
  }
  if (threadIdx.x == 0) {
    loss[row] = all - mine;
    if (logSumExp)
      logSumExp[row] = all;
  }
  if constexpr (kGradient) {
    __syncthreads(); // all threads have read the label's logit
    rowGradient(x, x, dloss[row * dlossStride], all, ignored ? -1 : label, ignored, vocabulary,
                stride);
  }
}

template <typename T>
__global__ void __launch_bounds__(kMostRowThreads)
    logSumExpRows(float *y, const T *x, TokenRowsAt columns) {
  __shared__ float space[kWarp];
  float all = rowLogSumExp(x + int64_t(blockIdx.x) * columns.count, columns.read().inside(), space);
  if (threadIdx.x == 0)
    y[blockIdx.x] = all;
}

template <typename T>
__global__ void crossEntropyGradients(T *dlogits, const float *dloss, int64_t dlossStride,
                                      const T *logits, const float *logSumExp,
                                      const int64_t *labels, TokenRowsAt columns, int64_t stride,
                                      int64_t ignoreIndex, Fault *fault) {
  TokenRows vocabulary = columns.read();
  int64_t row = int64_t(gridDim.x) - 1 - blockIdx.x, label = labels[row];
  bool ignored = ignores(label, row, vocabulary.full, ignoreIndex, fault);
  int64_t column = label - vocabulary.first;
  rowGradient(dlogits + row * stride, logits + row * stride, dloss[row * dlossStride],
              logSumExp[row], column >= 0 && column < vocabulary.count ? column : -1, ignored,
              vocabulary.inside(), stride);
}

template <typename T>
__global__ void tokenLosses(float *loss, const T *logits, const float *logSumExp,
                            const int64_t *labels, int64_t rows, TokenRowsAt columns,
                            int64_t ignoreIndex, Fault *fault) {
  TokenRows vocabulary = columns.read();
  int64_t row = globalThread();
  if (row >= rows)
    return;
  int64_t label = labels[row], column = label - vocabulary.first;
  float value = 0.0f;
  if (label != ignoreIndex && (label < 0 || label >= vocabulary.full))
    report(fault, Fault::Label, label, row, 0, vocabulary.full);
  else if (label != ignoreIndex && column >= 0 && column < vocabulary.count)
    value = logSumExp[row] - float(logits[row * vocabulary.count + column]);
  loss[row] = value;
}

} // namespace

template <typename T>
void crossEntropyForward(const Stream &stream, float *loss, float *logSumExp, const T *logits,
                         const int64_t *labels, int64_t rows, int64_t vocabulary, int64_t stride,
                         int64_t ignoreIndex, int64_t firstRow) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH((crossEntropyRows<T, false>), gridOf(rows), rowThreads(vocabulary), 0, stream,
                    loss, logSumExp, logits, nullptr, 0, labels, vocabulary, stride, ignoreIndex,
                    stream.fault, firstRow);
}

template <typename T>
void crossEntropyLossGrad(const Stream &stream, float *loss, T *logits, const float *dloss,
                          int64_t dlossStride, const int64_t *labels, int64_t rows,
                          int64_t vocabulary, int64_t stride, int64_t ignoreIndex,
                          int64_t firstRow) {
  if (rows == 0)
    return;
  if (isHeld(logits, vocabulary, stride)) {
    PARTITA_RT_LAUNCH(crossEntropyOfHeldRows<T>, gridOf(rows), rowThreads(vocabulary),
                      heldRowBytes<T>(vocabulary), stream, loss, logits, dloss, dlossStride, labels,
                      vocabulary, stride, ignoreIndex, stream.fault, firstRow);
    return;
  }
  PARTITA_RT_LAUNCH((crossEntropyRows<T, true>), gridOf(rows), rowThreads(vocabulary), 0, stream,
                    loss, nullptr, logits, dloss, dlossStride, labels, vocabulary, stride,
                    ignoreIndex, stream.fault, firstRow);
}

template <typename T>
void logSumExp(const Stream &stream, float *y, const T *x, int64_t rows, TokenRowsAt columns) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH(logSumExpRows<T>, gridOf(rows), rowThreads(columns.count), 0, stream, y, x,
                    columns);
}

template <typename T>
void tokenLoss(const Stream &stream, float *loss, const T *logits, const float *logSumExp,
               const int64_t *labels, int64_t rows, TokenRowsAt vocabulary, int64_t ignoreIndex) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH(tokenLosses<T>, gridOf(ceilDiv(rows, 128)), 128, 0, stream, loss, logits,
                    logSumExp, labels, rows, vocabulary, ignoreIndex, stream.fault);
}

template <typename T>
void crossEntropyBackward(const Stream &stream, T *dlogits, const float *dloss, int64_t dlossStride,
                          const T *logits, const float *logSumExp, const int64_t *labels,
                          int64_t rows, TokenRowsAt vocabulary, int64_t stride,
                          int64_t ignoreIndex) {
  if (rows == 0)
    return;
  PARTITA_RT_LAUNCH(crossEntropyGradients<T>, gridOf(rows), rowThreads(stride), 0, stream, dlogits,
                    dloss, dlossStride, logits, logSumExp, labels, vocabulary, stride, ignoreIndex,
                    stream.fault);
}

#define LOSS(T)                                                                                    \
  template void crossEntropyForward(const Stream &, float *, float *, const T *, const int64_t *,  \
                                    int64_t, int64_t, int64_t, int64_t, int64_t);                  \
  template void crossEntropyLossGrad(const Stream &, float *, T *, const float *, int64_t,         \
                                     const int64_t *, int64_t, int64_t, int64_t, int64_t,          \
                                     int64_t);                                                     \
  template void logSumExp(const Stream &, float *, const T *, int64_t, TokenRowsAt);               \
  template void tokenLoss(const Stream &, float *, const T *, const float *, const int64_t *,      \
                          int64_t, TokenRowsAt, int64_t);                                          \
  template void crossEntropyBackward(const Stream &, T *, const float *, int64_t, const T *,       \
                                     const float *, const int64_t *, int64_t, TokenRowsAt,         \
                                     int64_t, int64_t);
FOR_STORAGE(LOSS)
#undef LOSS

} // namespace partita_rt::cuda
