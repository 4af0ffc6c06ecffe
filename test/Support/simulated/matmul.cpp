// Matmuls of the simulated cuBLASLt (matmul.h).

#include "simulated/matmul.h"

#include "partita_rt/fp8.h"
#include "simulated/cublaslt_types.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace simulated {

namespace {

using partita_rt::BFloat16;
using partita_rt::Half;

float elementOf(const void *data, cudaDataType type, int64_t index) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(data)[index];
  if (type == CUDA_R_16F)
    return float(static_cast<const Half *>(data)[index]);
  if (type == CUDA_R_8F_E4M3)
    return float(static_cast<const partita_rt::Float8E4M3 *>(data)[index]);
  if (type == CUDA_R_8F_E5M2)
    return float(static_cast<const partita_rt::Float8E5M2 *>(data)[index]);
  return float(static_cast<const BFloat16 *>(data)[index]);
}

void setElement(void *data, cudaDataType type, int64_t index, float value) {
  if (type == CUDA_R_32F)
    static_cast<float *>(data)[index] = value;
  else if (type == CUDA_R_16F)
    static_cast<Half *>(data)[index] = Half(value);
  else
    static_cast<BFloat16 *>(data)[index] = BFloat16(value);
}

/// Returns op(X) as a dense [depth, other] matrix, contiguous along `other`.
std::vector<float> widened(const void *data, const Layout &layout, int64_t first,
                           bool depthIsColumn, int64_t depth, int64_t other) {
  std::vector<float> values(size_t(depth * other));
  for (int64_t l = 0; l < depth; ++l)
    for (int64_t i = 0; i < other; ++i)
      values[size_t(l * other + i)] = elementOf(
          data, layout.type, first + (depthIsColumn ? l * layout.ld + i : i * layout.ld + l));
  return values;
}

float geluTanh(float x) { return std::tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)); }

/// Applies the epilogue to one element, x = alpha * sum + beta * c, at row i of column j.
float finish(const Matmul &p, float x, int64_t i, int64_t j) {
  const Operation &operation = p.operation;
  uint32_t epilogue = operation.epilogue;
  bool hasGelu =
      epilogue == CUBLASLT_EPILOGUE_GELU_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  if (epilogue == CUBLASLT_EPILOGUE_BIAS || hasGelu)
    x += elementOf(operation.bias, p.d.type, i);
  int64_t at = j * operation.auxLd + i;
  if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
    setElement(operation.aux, p.d.type, at, x);
  if (hasGelu)
    return 0.5f * x * (1.0f + geluTanh(x));
  if (epilogue == CUBLASLT_EPILOGUE_DGELU || epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
    float v = elementOf(operation.aux, p.d.type, at), t = geluTanh(v);
    float slope = 0.5f * (1.0f + t) +
                  0.5f * v * (1.0f - t * t) * 0.7978845608028654f * (1.0f + 0.134145f * v * v);
    return x * slope;
  }
  return x;
}

void sumOperand(const Matmul &p, const std::vector<float> &values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0.0f;
    for (int64_t l = 0; l < p.k(); ++l)
      sum += values[size_t(l * count + i)];
    setElement(p.operation.bias, p.d.type, i, sum);
  }
}

/// Multiplies one matrix of the batch.
void multiplyOne(const Matmul &p, int64_t which, int parts) {
  int64_t m = p.m(), n = p.n(), k = p.k(), first = which * p.d.stride;
  std::vector<float> a =
      widened(p.aData, p.a, which * p.a.stride, p.operation.transA == CUBLAS_OP_N, k, m);
  std::vector<float> b =
      widened(p.bData, p.b, which * p.b.stride, p.operation.transB != CUBLAS_OP_N, k, n);
  int64_t half = parts > 1 ? (k + 1) / 2 : k;
  std::vector<float> sums[2] = {std::vector<float>(size_t(m)), std::vector<float>(size_t(m))};
  std::vector<float> rowSums(static_cast<size_t>(m));
  float alpha = p.alpha;
  if (isScaled(p.a.type))
    alpha *=
        elementOf(p.operation.scaleA, CUDA_R_32F, 0) * elementOf(p.operation.scaleB, CUDA_R_32F, 0);
  for (int64_t j = 0; j < n; ++j) {
    for (auto &each : sums)
      std::fill(each.begin(), each.end(), 0.0f);
    for (int64_t l = 0; l < k; ++l) {
      float factor = b[size_t(l * n + j)];
      const float *column = a.data() + l * m;
      float *sum = sums[l < half ? 0 : 1].data();
      for (int64_t i = 0; i < m; ++i)
        sum[i] += column[i] * factor;
    }
    for (int64_t i = 0; i < m; ++i) {
      int64_t at = first + j * p.d.ld + i;
      float x = alpha * (sums[0][size_t(i)] + sums[1][size_t(i)]);
      if (p.beta != 0.0f)
        x += p.beta * elementOf(p.cData, p.c.type, which * p.c.stride + j * p.c.ld + i);
      x = finish(p, x, i, j);
      setElement(p.dData, p.d.type, at, x);
      rowSums[size_t(i)] += x; // before it is rounded; NVIDIA's documentation does not specify this
    }
  }
  if (p.operation.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)
    for (int64_t i = 0; i < m; ++i)
      setElement(p.operation.bias, p.d.type, i, rowSums[size_t(i)]);
  if (p.operation.epilogue == CUBLASLT_EPILOGUE_BGRADA)
    sumOperand(p, a, m);
  if (p.operation.epilogue == CUBLASLT_EPILOGUE_BGRADB)
    sumOperand(p, b, n);
}

} // namespace

void multiply(const Matmul &p, int parts) {
  for (int64_t i = 0; i < p.d.batch; ++i)
    multiplyOne(p, i, parts);
}

} // namespace simulated
