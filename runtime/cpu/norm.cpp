// Layer norm, root-mean-square norm and softmax.

#include "partita_rt/kernels.h"

#include "cpu/rows.h"

#include <cmath>

namespace partita_rt {

//===-- Layer norm --------------------------------------------------------------------------===//

void layerNormForward(float *y, float *mean, float *rstd, const float *x, const float *weight,
                      const float *bias, int64_t rows, int64_t width, float epsilon) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *in = x + row * width;
    float *out = y + row * width;
    float m = rowSum(in, width) / float(width);
    Lanes squares{};
    forLanes(width, [&](int64_t i, int64_t n) { // missing lanes hold m: difference 0
      Lanes d = loadUpTo(in + i, n, m) - splat(m);
      squares += d * d;
    });
    float s = 1.0f / std::sqrt(sumLanes(squares) / float(width) + epsilon);
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes value = (loadUpTo(in + i, n) - splat(m)) * splat(s);
      if (weight)
        value *= loadUpTo(weight + i, n);
      if (bias)
        value += loadUpTo(bias + i, n);
      storeUpTo(out + i, value, n);
    });
    if (mean)
      mean[row] = m;
    if (rstd)
      rstd[row] = s;
  }
}

namespace {

/// Rows that are handled together: their dy and x stay in the cache for all three passes.
constexpr int64_t kNormRows = 16;

/// Null `mean`: the norm subtracts none (RMSNorm).
struct NormRows {
  const float *dy, *x, *mean, *rstd;
  int64_t rows, width;
  float meanOf(int64_t row) const { return mean ? mean[row] : 0.0f; }
};

/// dweight += sum of dy * xhat, dbias += sum of dy over the rows, column by column.
void addWeightGradients(float *dweight, float *dbias, const NormRows &block) {
  forLanes(block.width, [&](int64_t i, int64_t n) {
    Lanes w{}, b{};
    for (int64_t r = 0; r < block.rows; ++r) {
      Lanes dy = loadUpTo(block.dy + r * block.width + i, n);
      Lanes x = loadUpTo(block.x + r * block.width + i, n);
      w += dy * ((x - splat(block.meanOf(r))) * splat(block.rstd[r]));
      b += dy;
    }
    if (dweight)
      storeUpTo(dweight + i, loadUpTo(dweight + i, n) + w, n);
    if (dbias)
      storeUpTo(dbias + i, loadUpTo(dbias + i, n) + b, n);
  });
}

/// dx = rstd * (dy w - mean(dy w) - xhat * mean(dy w xhat)), without the middle term where no mean
/// was subtracted.
void inputGradient(float *dx, const NormRows &block, const float *weight, Write write) {
  int64_t width = block.width;
  for (int64_t r = 0; r < block.rows; ++r) {
    const float *dy = block.dy + r * width, *x = block.x + r * width;
    float m = block.meanOf(r), s = block.rstd[r];
    Lanes sum{}, dot{};
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes g = loadUpTo(dy + i, n);
      if (weight)
        g *= loadUpTo(weight + i, n);
      sum += g;
      dot += g * ((loadUpTo(x + i, n, m) - splat(m)) * splat(s));
    });
    Lanes meanG = splat(block.mean ? sumLanes(sum) / float(width) : 0.0f);
    Lanes meanDot = splat(sumLanes(dot) / float(width));
    float *out = dx + r * width;
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes g = loadUpTo(dy + i, n);
      if (weight)
        g *= loadUpTo(weight + i, n);
      Lanes xhat = (loadUpTo(x + i, n) - splat(m)) * splat(s);
      Lanes value = (g - meanG - xhat * meanDot) * splat(s);
      if (write == Write::Add)
        value += loadUpTo(out + i, n);
      storeUpTo(out + i, value, n);
    });
  }
}

void normBackward(float *dx, float *dweight, float *dbias, const NormRows &all, const float *weight,
                  Write write, Write dxWrite) {
  int64_t width = all.width;
  if (write == Write::Set) {
    if (dweight)
      fill(dweight, 0.0f, width);
    if (dbias)
      fill(dbias, 0.0f, width);
  }
  for (int64_t row = 0; row < all.rows; row += kNormRows) {
    NormRows block{all.dy + row * width,
                   all.x + row * width,
                   all.mean ? all.mean + row : nullptr,
                   all.rstd + row,
                   std::min(kNormRows, all.rows - row),
                   width};
    if (dweight || dbias) // before dx, which may overwrite dy
      addWeightGradients(dweight, dbias, block);
    if (dx)
      inputGradient(dx + row * width, block, weight, dxWrite);
  }
}

} // namespace

void layerNormBackward(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                       const float *weight, const float *mean, const float *rstd, int64_t rows,
                       int64_t width, Write write, Write dxWrite) {
  normBackward(dx, dweight, dbias, {dy, x, mean, rstd, rows, width}, weight, write, dxWrite);
}

//===-- Root-mean-square norm ---------------------------------------------------------------===//

void rmsNormForward(float *y, float *rstd, const float *x, const float *weight, int64_t rows,
                    int64_t width, float epsilon) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *in = x + row * width;
    float *out = y + row * width;
    Lanes squares{};
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes value = loadUpTo(in + i, n);
      squares += value * value;
    });
    float s = 1.0f / std::sqrt(sumLanes(squares) / float(width) + epsilon);
    forLanes(width, [&](int64_t i, int64_t n) {
      Lanes value = loadUpTo(in + i, n) * splat(s);
      if (weight)
        value *= loadUpTo(weight + i, n);
      storeUpTo(out + i, value, n);
    });
    if (rstd)
      rstd[row] = s;
  }
}

void rmsNormBackward(float *dx, float *dweight, const float *dy, const float *x,
                     const float *weight, const float *rstd, int64_t rows, int64_t width,
                     Write write, Write dxWrite) {
  normBackward(dx, dweight, nullptr, {dy, x, nullptr, rstd, rows, width}, weight, write, dxWrite);
}

//===-- Softmax -----------------------------------------------------------------------------===//

void softmaxForward(float *y, const float *x, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    float largest = rowMax(x + row * width, width);
    if (largest == -std::numeric_limits<float>::infinity())
      largest = 0.0f; // all masked: exp(-inf) = 0 everywhere
    float sum = rowExp(y + row * width, x + row * width, 1.0f, largest, width);
    rowScale(y + row * width, sum == 0.0f ? 0.0f : 1.0f / sum, width);
  }
}

void softmaxBackward(float *dx, const float *dy, const float *y, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *g = dy + row * width, *p = y + row * width;
    Lanes sum{};
    forLanes(width, [&](int64_t i, int64_t n) { sum += loadUpTo(g + i, n) * loadUpTo(p + i, n); });
    float dot = sumLanes(sum);
    for (int64_t i = 0; i < width; ++i)
      dx[row * width + i] = p[i] * (g[i] - dot);
  }
}

} // namespace partita_rt
