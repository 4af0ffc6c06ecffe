// Layer norm, root-mean-square norm and softmax.

#include "partita_rt/kernels.h"

#include "cpu/kernels/rows.h"
#include "cpu/kernels/storage.h"

#include <cmath>

namespace partita_rt {

//===-- Layer norm --------------------------------------------------------------------------===//

namespace {

/// Calls `body` with the presence of a weight as a constant, which makes kernels on 16-bit rows
/// twice as fast.
template <typename T, typename Body> void withPresence(FloatOr<const T> weight, Body body) {
  if constexpr (kIsFloat<T>)
    body(weight, bool(weight));
  else if (!weight)
    body(static_cast<const float *>(nullptr), std::false_type());
  else
    withType(weight, [&](auto *pointer) { body(pointer, std::true_type()); });
}

template <typename T, typename W, typename B, typename HasW, typename HasB>
void layerNormRows(T *y, float *mean, float *rstd, const T *x, const W *weight, HasW hasWeight,
                   const B *bias, HasB hasBias, int64_t rows, int64_t width, float epsilon) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *in = x + row * width;
    T *out = y + row * width;
    float m = rowSum(in, width) / float(width);
    Lanes squares{};
    forLanes(width, [&](int64_t i, int64_t n) { // missing lanes hold m, so their difference is 0
      Lanes d = loadUpTo(in + i, n, m) - splat(m);
      squares += d * d;
    });
    float s = 1.0f / std::sqrt(sumLanes(squares) / float(width) + epsilon);
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes value = (loadUpTo(in + i, n) - splat(m)) * splat(s);
      if (hasWeight)
        value *= loadUpTo(weight + i, n);
      if (hasBias)
        value += loadUpTo(bias + i, n);
      storeUpTo(out + i, value, n);
    });
    if (mean)
      mean[row] = m;
    if (rstd)
      rstd[row] = s;
  }
}

/// A block of rows. Null `mean`: the norm subtracts none (RMSNorm).
template <typename T> struct NormRows {
  const T *dy, *x;
  const float *mean, *rstd;
  int64_t rows, width;
  float meanOf(int64_t row) const { return mean ? mean[row] : 0.0f; }
  NormRows from(int64_t row, int64_t count) const {
    return {dy + row * width, x + row * width, mean ? mean + row : nullptr,
            rstd + row,       count,           width};
  }
};

/// dweight += sum of dy * xhat, dbias += sum of dy over the rows, for columns [first, first +
/// count) with dweight and dbias pointing at the first.
template <typename T>
void addWeightGradients(float *dweight, float *dbias, const NormRows<T> &block, int64_t first,
                        int64_t count) {
  forLanes(count, [&](int64_t i, int64_t n) {
    Lanes w{}, b{};
    for (int64_t r = 0; r < block.rows; ++r) {
      Lanes dy = loadUpTo(block.dy + r * block.width + first + i, n);
      Lanes x = loadUpTo(block.x + r * block.width + first + i, n);
      w += dy * ((x - splat(block.meanOf(r))) * splat(block.rstd[r]));
      b += dy;
    }
    if (dweight)
      storeUpTo(dweight + i, loadUpTo(dweight + i, n) + w, n);
    if (dbias)
      storeUpTo(dbias + i, loadUpTo(dbias + i, n) + b, n);
  });
}

/// sums += the columns of some rows of dx, for columns [first, first + count) with sums pointing at
/// the first.
template <typename T>
void addColumns(float *sums, const T *dx, int64_t rows, int64_t width, int64_t first,
                int64_t count) {
  forLanes(count, [&](int64_t i, int64_t n) {
    Lanes sum{};
    for (int64_t r = 0; r < rows; ++r)
      sum += loadUpTo(dx + r * width + first + i, n);
    storeUpTo(sums + i, loadUpTo(sums + i, n) + sum, n);
  });
}

/// dx = rstd * (dy w - mean(dy w) - xhat * mean(dy w xhat)), without the middle term if no mean was
/// subtracted.
template <typename T, typename W, typename HasW>
void inputGradient(T *dx, const NormRows<T> &block, const W *weight, HasW hasWeight, Write write) {
  int64_t width = block.width;
  for (int64_t r = 0; r < block.rows; ++r) {
    const T *dy = block.dy + r * width, *x = block.x + r * width;
    float m = block.meanOf(r), s = block.rstd[r];
    Lanes sum{}, dot{};
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes g = loadUpTo(dy + i, n);
      if (hasWeight)
        g *= loadUpTo(weight + i, n);
      sum += g;
      dot += g * ((loadUpTo(x + i, n, m) - splat(m)) * splat(s));
    });
    Lanes meanG = splat(block.mean ? sumLanes(sum) / float(width) : 0.0f);
    Lanes meanDot = splat(sumLanes(dot) / float(width));
    T *out = dx + r * width;
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes g = loadUpTo(dy + i, n);
      if (hasWeight)
        g *= loadUpTo(weight + i, n);
      Lanes xhat = (loadUpTo(x + i, n) - splat(m)) * splat(s);
      Lanes value = (g - meanG - xhat * meanDot) * splat(s);
      if (write == Write::Add)
        value = rounded(value) + loadUpTo(out + i, n);
      storeUpTo(out + i, value, n);
    });
  }
}

/// Calls body(block) for blocks of rows small enough that their dy and x stay in the cache for all
/// three passes.
template <typename T, typename Body> void forBlocks(const NormRows<T> &all, Body body) {
  for (int64_t row = 0; row < all.rows; row += kSumRows)
    body(all.from(row, std::min(kSumRows, all.rows - row)), row);
}

/// Computes the sums of one parameter's gradient over all rows, in float: `add(sums, block, first,
/// n)`.
template <typename G, typename T, typename Add>
void parameterGradient(G *gradient, const NormRows<T> &all, Write write, Add add) {
  throughFloat(
      gradient, all.width, write == Write::Add, [&](float *sums, int64_t first, int64_t n) {
        if (write == Write::Set)
          fill(sums, 0.0f, n);
        forBlocks(all, [&](const NormRows<T> &block, int64_t) { add(sums, block, first, n); });
      });
}

template <typename T>
void normBackward(T *dx, FloatOr<T> dweight, FloatOr<T> dbias, FloatOr<T> dxSums,
                  const NormRows<T> &all, FloatOr<const T> weight, Write write, Write dxWrite) {
  withPresence<T>(weight, [&](auto *w, auto hasWeight) {
    if constexpr (kIsFloat<T>) {
      if (write == Write::Set) {
        if (dweight)
          fill(dweight, 0.0f, all.width);
        if (dbias)
          fill(dbias, 0.0f, all.width);
        if (dxSums)
          fill(dxSums, 0.0f, all.width);
      }
      forBlocks(all, [&](const NormRows<T> &block, int64_t row) {
        if (dweight || dbias) // before dx, which may overwrite dy
          addWeightGradients(dweight, dbias, block, 0, block.width);
        if (dx)
          inputGradient(dx + row * all.width, block, w, hasWeight, dxWrite);
        if (dxSums)
          addColumns(dxSums, dx + row * all.width, block.rows, block.width, 0, block.width);
      });
    } else {
      if (dweight)
        withType(dweight, [&](auto *gradient) {
          parameterGradient(gradient, all, write, [](float *sums, auto &block, auto... range) {
            addWeightGradients(sums, nullptr, block, range...);
          });
        });
      if (dbias)
        withType(dbias, [&](auto *gradient) {
          parameterGradient(gradient, all, write, [](float *sums, auto &block, auto... range) {
            addWeightGradients(nullptr, sums, block, range...);
          });
        });
      forBlocks(all, [&](const NormRows<T> &block, int64_t row) {
        if (dx)
          inputGradient(dx + row * all.width, block, w, hasWeight, dxWrite);
      });
      if (dxSums)
        withType(dxSums, [&](auto *to) {
          parameterGradient(to, all, write, [&](float *sums, auto &block, auto... range) {
            addColumns(sums, dx + (block.dy - all.dy), block.rows, block.width, range...);
          });
        });
    }
  });
}

} // namespace

template <typename T>
void layerNormForward(T *y, float *mean, float *rstd, const T *x, FloatOr<const T> weight,
                      FloatOr<const T> bias, int64_t rows, int64_t width, float epsilon) {
  withPresence<T>(weight, [&](auto *w, auto hasWeight) {
    withPresence<T>(bias, [&](auto *b, auto hasBias) {
      layerNormRows(y, mean, rstd, x, w, hasWeight, b, hasBias, rows, width, epsilon);
    });
  });
}

template <typename T>
void layerNormBackward(T *dx, FloatOr<T> dweight, FloatOr<T> dbias, FloatOr<T> sums, const T *dy,
                       const T *x, FloatOr<const T> weight, const float *mean, const float *rstd,
                       int64_t rows, int64_t width, Write write, Write dxWrite) {
  NormRows<T> all{dy, x, mean, rstd, rows, width};
  normBackward<T>(dx, dweight, dbias, sums, all, weight, write, dxWrite);
}

//===-- Root-mean-square norm ---------------------------------------------------------------===//

template <typename T>
void rmsNormForward(T *y, float *rstd, const T *x, FloatOr<const T> weight, int64_t rows,
                    int64_t width, float epsilon) {
  withPresence<T>(weight, [&](auto *w, auto hasWeight) {
    for (int64_t row = 0; row < rows; ++row) {
      const T *in = x + row * width;
      T *out = y + row * width;
      Lanes squares{};
      forLanes(width, [&](int64_t i, int64_t n) {
        Lanes value = loadUpTo(in + i, n);
        squares += value * value;
      });
      float s = 1.0f / std::sqrt(sumLanes(squares) / float(width) + epsilon);
      forLanes(width, [&](int64_t i, int64_t n) {
        Lanes value = loadUpTo(in + i, n) * splat(s);
        if (hasWeight)
          value *= loadUpTo(w + i, n);
        storeUpTo(out + i, value, n);
      });
      if (rstd)
        rstd[row] = s;
    }
  });
}

template <typename T>
void rmsNormBackward(T *dx, FloatOr<T> dweight, const T *dy, const T *x, FloatOr<const T> weight,
                     const float *rstd, int64_t rows, int64_t width, Write write, Write dxWrite) {
  NormRows<T> all{dy, x, nullptr, rstd, rows, width};
  normBackward<T>(dx, dweight, nullptr, nullptr, all, weight, write, dxWrite);
}

//===-- Softmax -----------------------------------------------------------------------------===//

template <typename T> void softmaxForward(T *y, const T *x, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *in = x + row * width;
    T *out = y + row * width;
    float largest = rowMax(in, width);
    if (largest == -std::numeric_limits<float>::infinity())
      largest = 0.0f; // all masked: exp(-inf) = 0 everywhere
    if constexpr (kIsFloat<T>) {
      float sum = rowExp(out, in, 1.0f, largest, width);
      rowScale(out, sum == 0.0f ? 0.0f : 1.0f / sum, width);
    } else { // exponentials could only be stored rounded between the sweeps: compute them twice
      float sum = rowExpSum(in, largest, width);
      Lanes factor = splat(sum == 0.0f ? 0.0f : 1.0f / sum);
      forLanes(width, [&](int64_t i, int64_t n) {
        storeUpTo(out + i, expLanes(loadUpTo(in + i, n) - splat(largest)) * factor, n);
      });
    }
  }
}

template <typename T>
void softmaxBackward(T *dx, const T *dy, const T *y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *g = dy + row * width, *p = y + row * width;
    Lanes sum{};
    forLanes(width, [&](int64_t i, int64_t n) { sum += loadUpTo(g + i, n) * loadUpTo(p + i, n); });
    float dot = sumLanes(sum);
    for (int64_t i = 0; i < width; ++i)
      dx[row * width + i] = p[i] * (g[i] - dot);
  }
}

#define ROWS(T)                                                                                    \
  template void layerNormForward(T *, float *, float *, const T *, FloatOr<const T>,               \
                                 FloatOr<const T>, int64_t, int64_t, float);                       \
  template void layerNormBackward(T *, FloatOr<T>, FloatOr<T>, FloatOr<T>, const T *, const T *,   \
                                  FloatOr<const T>, const float *, const float *, int64_t,         \
                                  int64_t, Write, Write);                                          \
  template void rmsNormForward(T *, float *, const T *, FloatOr<const T>, int64_t, int64_t,        \
                               float);                                                             \
  template void rmsNormBackward(T *, FloatOr<T>, const T *, const T *, FloatOr<const T>,           \
                                const float *, int64_t, int64_t, Write, Write);                    \
  template void softmaxForward(T *, const T *, int64_t, int64_t);                                  \
  template void softmaxBackward(T *, const T *, const T *, int64_t, int64_t);
FOR_STORAGE(ROWS)
#undef ROWS

} // namespace partita_rt
