// Scalars of a step, one thread each, from device memory to device memory: the norm of all
// gradients (whose sums a block reads), the clip scale, LAMB's trust ratio, the loss scale. In
// double where the CPU uses double, with operations that IEEE rounds: the same bits.

#include "partita_rt/cuda/device.h"

#include "cuda/kernels/device.cuh"

namespace partita_rt::cuda {

namespace {

constexpr int kPointers = 128, kAddThreads = 256;
/// Sums with consecutive numbers: those of pointer i begin at number first[i].
struct Pointers {
  const double *sums[kPointers];
  int64_t first[kPointers + 1] = {};
  int count = 0;

  void add(const Squares &squares) {
    sums[count] = squares.sums;
    first[count + 1] = first[count] + squares.count;
    ++count;
  }
  __device__ double read(int64_t number) const {
    int pointer = 0;
    while (number >= first[pointer + 1])
      ++pointer;
    return sums[pointer][number - first[pointer]];
  }
};

/// *total += all sums, in order; the last launch takes the root. A block reads them, 256 at a time,
/// and one thread adds.
__global__ void __launch_bounds__(kAddThreads)
    addScalars(double *total, Pointers pointers, bool first, float *root) {
  __shared__ double space[kAddThreads];
  double sum = first ? 0.0 : *total;
  int64_t all = pointers.first[pointers.count];
  for (int64_t begin = 0; begin < all; begin += kAddThreads) {
    if (begin + threadIdx.x < all)
      space[threadIdx.x] = pointers.read(begin + threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < least(all - begin, kAddThreads); ++i)
        sum += space[i];
    __syncthreads();
  }
  if (threadIdx.x > 0)
    return;
  *total = sum;
  if (root)
    *root = float(sqrt(sum));
}

__global__ void computeClipScale(float *scale, const float *norm, Scalar most) {
  double length = double(*norm), maxNorm = most.read();
  if (!(length < double(__builtin_inff())))
    *scale = __builtin_nanf("");
  else
    *scale = maxNorm > 0 ? float(1.0 / fmax(1.0, (length + 1e-6) / maxNorm)) : 1.0f;
}

__global__ void computeTrustRatio(float *ratio, const double *squares, double least, double most) {
  double value = sqrt(squares[0]), direction = sqrt(squares[1]);
  bool both = value > 0 && direction > 0;
  *ratio = both ? float(fmin(fmax(value / direction, least), most)) : 1.0f;
}

__global__ void computeFrozenRatio(float *ratio, float *coefficient, float *factor,
                                   const double *squares, const double *largest, const float *t,
                                   const float *apply, FrozenRatioOptions options) {
  FrozenRatio next =
      frozenRatioOf(squares, *largest, double(*t), double(*coefficient), double(*factor), options);
  *ratio = float(next.ratio);
  if (apply && *apply == 0)
    return;
  *coefficient = float(next.coefficient);
  *factor = float(next.factor);
}

__global__ void writeNumber(int64_t *number, int64_t value) { *number = value; }

__global__ void writeStepNumber(float *number, const Control *control) {
  *number = float(control->update);
}

__global__ void writeStepKey(int64_t *key, const Control *control) {
  *key = int64_t(keyOfStep(control->seed, control->step));
}

template <typename Field>
__global__ void writeField(Field *field, const float *value, const float *divisor) {
  *field = Field(divisor ? *value / *divisor : *value);
}

__global__ void divide(float *to, const float *value, const float *scale) { *to = *value / *scale; }

__global__ void testFinite(float *finite, const float *norm) {
  *finite = fabsf(*norm) < __builtin_inff() ? 1.0f : 0.0f;
}

__global__ void computeScale(LossScaleReport *report, float *scale, int64_t *steps,
                             int64_t *lastOverflow, int64_t *hysteresis, int64_t *skipped,
                             const float *finite, LossScalerOptions options) {
  bool overflow = *finite == 0;
  LossScalerResult next =
      updateLossScale({double(*scale), *steps, *lastOverflow, *hysteresis}, options, overflow);
  report->lossScale = *scale;
  report->scaleExhausted = next.stop;
  *scale = float(fmin(next.state.scale, 0x1p127)); // twice as much overflows float
  *steps = next.state.step;
  *lastOverflow = next.state.lastOverflow;
  *hysteresis = next.state.hysteresis;
  *skipped += overflow ? 1 : 0;
  report->skippedSteps = *skipped;
}

} // namespace

void rootOfSum(const Stream &stream, float *norm, std::initializer_list<Squares> squares) {
  auto *total = scratchOf<double>(stream, 8, "rootOfSum");
  const Squares *next = squares.begin();
  bool first = true;
  do {
    Pointers pointers;
    while (next != squares.end() && pointers.count < kPointers)
      pointers.add(*next++);
    PARTITA_RT_LAUNCH(addScalars, 1, kAddThreads, 0, stream, total, pointers, first,
                      next == squares.end() ? norm : nullptr);
    first = false;
  } while (next != squares.end());
}

void clipScale(const Stream &stream, float *scale, const float *norm, Scalar maxNorm) {
  PARTITA_RT_LAUNCH(computeClipScale, 1, 1, 0, stream, scale, norm, maxNorm);
}

void setScalar(const Stream &stream, int64_t *number, int64_t value) {
  PARTITA_RT_LAUNCH(writeNumber, 1, 1, 0, stream, number, value);
}

void stepNumber(const Stream &stream, float *number, const Control *control) {
  PARTITA_RT_LAUNCH(writeStepNumber, 1, 1, 0, stream, number, control);
}

void stepKey(const Stream &stream, int64_t *key, const Control *control) {
  PARTITA_RT_LAUNCH(writeStepKey, 1, 1, 0, stream, key, control);
}

void report(const Stream &stream, float *field, const float *value, const float *divisor) {
  PARTITA_RT_LAUNCH(writeField<float>, 1, 1, 0, stream, field, value, divisor);
}

void report(const Stream &stream, int64_t *field, const float *value) {
  PARTITA_RT_LAUNCH(writeField<int64_t>, 1, 1, 0, stream, field, value, nullptr);
}

void trustRatio(const Stream &stream, float *ratio, const double *squares, double least,
                double most) {
  PARTITA_RT_LAUNCH(computeTrustRatio, 1, 1, 0, stream, ratio, squares, least, most);
}

void frozenRatio(const Stream &stream, float *ratio, float *coefficient, float *factor,
                 const double *squares, const double *largest, const float *t, const float *apply,
                 const FrozenRatioOptions &options) {
  PARTITA_RT_LAUNCH(computeFrozenRatio, 1, 1, 0, stream, ratio, coefficient, factor, squares,
                    largest, t, apply, options);
}

void unscale(const Stream &stream, float *to, const float *value, const float *scale) {
  PARTITA_RT_LAUNCH(divide, 1, 1, 0, stream, to, value, scale);
}

void allFinite(const Stream &stream, float *finite, const float *norm) {
  PARTITA_RT_LAUNCH(testFinite, 1, 1, 0, stream, finite, norm);
}

void updateScale(const Stream &stream, LossScaleReport *report, float *scale, int64_t *steps,
                 int64_t *lastOverflow, int64_t *hysteresis, int64_t *skipped, const float *finite,
                 const LossScalerOptions &options) {
  PARTITA_RT_LAUNCH(computeScale, 1, 1, 0, stream, report, scale, steps, lastOverflow, hysteresis,
                    skipped, finite, options);
}

} // namespace partita_rt::cuda
