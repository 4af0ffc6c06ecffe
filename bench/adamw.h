// The AdamW kernel of emitted programs (partita compile --optimizer adamw), for measurements
// without a program.

#ifndef PARTITA_BENCH_ADAMW_H
#define PARTITA_BENCH_ADAMW_H

#include "partita_rt/math.h"

#include <cmath>
#include <cstdint>

namespace partita_rt {

inline void adamw(float *p, float *m, float *v, const float *g, int64_t n, double rate, double t,
                  double beta1, double beta2, double epsilon, double decay,
                  double bias_correction) {
  const double keep1 = 1.0 - beta1;
  const double keep2 = 1.0 - beta2;
  const double correction1 = select(bias_correction != 0.0, 1.0 / (1.0 - pow(beta1, t)), 1.0);
  const double correction2 = select(bias_correction != 0.0, 1.0 / (1.0 - pow(beta2, t)), 1.0);
  const float keep1_f = float(keep1);
  const float keep2_f = float(keep2);
  const float rate_f = float(rate);
  const float correction1_f = float(correction1);
  const float correction2_f = float(correction2);
  const float epsilon_f = float(epsilon);
  const float decay_f = float(decay);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    float p_i = p[i];
    float m_i = m[i];
    float v_i = v[i];
    float g_i = g[i];
    m_i = m_i + keep1_f * (g_i - m_i);
    v_i = v_i + keep2_f * (g_i * g_i - v_i);
    p_i = p_i - rate_f * ((m_i * correction1_f) / (sqrtf(v_i * correction2_f) + epsilon_f) +
                          decay_f * p_i);
    p[i] = p_i;
    m[i] = m_i;
    v[i] = v_i;
  }
}

} // namespace partita_rt

#endif // PARTITA_BENCH_ADAMW_H
