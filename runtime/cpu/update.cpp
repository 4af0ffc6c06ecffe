// Optimizer updates (kernels.h states the formulas).

#include "partita_rt/kernels.h"

#include <algorithm>
#include <cmath>

namespace partita_rt {

void adamwUpdate(float *__restrict parameter, float *__restrict m, float *__restrict v,
                 const float *__restrict gradient, int64_t n, const AdamW &options,
                 float gradientScale) {
  const float beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon;
  const float rate = options.learningRate, decay = options.weightDecay;
  const float correction1 = float(1.0 / (1.0 - std::pow(double(beta1), double(options.step))));
  const float correction2 = float(1.0 / (1.0 - std::pow(double(beta2), double(options.step))));
  const float keep1 = 1.0f - beta1, keep2 = 1.0f - beta2;
  for (int64_t i = 0; i < n; ++i) {
    float g = gradientScale * gradient[i];
    float newM = beta1 * m[i] + keep1 * g;
    float newV = beta2 * v[i] + keep2 * (g * g);
    float update = (newM * correction1) / (std::sqrt(newV * correction2) + epsilon);
    m[i] = newM;
    v[i] = newV;
    parameter[i] -= rate * (update + decay * parameter[i]);
  }
}

void sgdUpdate(float *__restrict parameter, float *__restrict momentumBuffer,
               const float *__restrict gradient, int64_t n, const Sgd &options,
               float gradientScale) {
  const float rate = options.learningRate, decay = options.weightDecay;
  if (!momentumBuffer) {
    for (int64_t i = 0; i < n; ++i)
      parameter[i] -= rate * (gradientScale * gradient[i] + decay * parameter[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    float g = gradientScale * gradient[i] + decay * parameter[i];
    momentumBuffer[i] = options.momentum * momentumBuffer[i] + g;
    parameter[i] -= rate * momentumBuffer[i];
  }
}

float clipCoefficient(double norm, float maxNorm) {
  if (maxNorm <= 0.0f)
    return 1.0f;
  return float(std::min(1.0, double(maxNorm) / (norm + 1e-6)));
}

} // namespace partita_rt
