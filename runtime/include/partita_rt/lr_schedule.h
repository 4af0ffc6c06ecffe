// Learning-rate schedules: the next update's rate as a function of the number of updates done.
//
// A schedule depends only on `done`: skipped steps (loss scaling) do not advance it, and a run that
// resumes from a checkpoint continues it. All arithmetic is in double and needs nothing from the
// host, so device code may evaluate it (PARTITA_RT_HOST_DEVICE).
//
// Ours, with the step t = done + 1, the base rate r (--lr) and a linear warm-up r t / W up to W:
//     constant   r
//     cosine     r (e + (1 - e) (1 + cos(pi (t - W) / (N - W))) / 2); r e from N on
//
// DeepSpeed's five, with its formulas; its iteration is it = done - 1, so the first update has the
// rate that the schedule sets before it begins, at it = -1. n = max(2, warmup_num_steps), g =
// ln(it + 1) / ln n (log) or it / n (linear) while it < n:
//     WarmupLR         min + (max - min) g, then max; min at it = -1 (and, for log, at it = 0)
//     WarmupDecayLR    then min + (max - min) max(0, (total - it) / max(1, total - n))
//     WarmupCosineLR   r (r0 + (1 - r0) g), then with q = min(1, (it - n + 1) / max(1, total - n))
//                      r max(0, e + (1 - e) (1 + cos(pi q)) / 2); 0 at it = -1
//     OneCycle         min to max and back, in stairs or not, beta1 the other way; then
//                      min / (1 + decay u) with u the intervals of decay since
//     LRRangeTest      min (1 + step_rate f), f = (it + 1) / step_size, integers in stairs
//
// lr_schedule_text.h reads "WarmupLR,warmup_num_steps=100", as options and tables have it.

#ifndef PARTITA_RT_LR_SCHEDULE_H
#define PARTITA_RT_LR_SCHEDULE_H

#include "host_device.h"

#include <cmath>
#include <cstdint>

namespace partita_rt {

enum class LrScheduleKind : int32_t {
  Constant,
  Cosine,
  WarmupLR,
  WarmupDecayLR,
  WarmupCosineLR,
  OneCycle,
  LRRangeTest
};
constexpr int kLrScheduleKinds = 7;

/// Each kind reads the members that its keys set (lr_schedule_text.h); rates are absolute, ratios are
/// of the base rate, sizes and counts are updates.
struct LrSchedule {
  LrScheduleKind kind = LrScheduleKind::Constant;
  int64_t warmupSteps = 0; ///< of a warm-up; DeepSpeed's at least 2
  bool logarithmic = true; ///< DeepSpeed's warm-ups: log, or linear
  int64_t totalSteps = 0;  ///< Cosine: 0 means the run's steps
  double minRate = 0;
  double maxRate = -1;    ///< WarmupLR: below 0 is the base rate
  double startRatio = 0;  ///< WarmupCosineLR: the ratio at the start of the warm-up
  double endRatio = 1e-4; ///< the ratio at the end of a cosine

  int64_t firstSize = 2000, secondSize = 0;   ///< OneCycle: up, and down; 0: as many
  int64_t firstStairs = 0, secondStairs = -1; ///< 0: none; below 0: as many
  int64_t decaySize = 0;                      ///< updates of an interval; 0: no decay
  double decayRate = 0;
  bool cycleMomentum = true;
  double minMomentum = 0.8, maxMomentum = 0.9, momentumDecayRate = 0;

  int64_t stepSize = 2000; ///< LRRangeTest
  double stepRate = 1;
  bool staircase = false;
};

/// The rates that an update uses.
struct ScheduledRates {
  double rate = 0;
  bool setsBetas = false; ///< if false, beta1 and beta2 are ignored
  double beta1 = 0, beta2 = 0;
};

namespace lr_schedules {

/// The share of the warm-up that is done at iteration `it` below n.
PARTITA_RT_HOST_DEVICE inline double warmupShare(const LrSchedule &s, int64_t it, int64_t n) {
  return s.logarithmic ? (1.0 / std::log(double(n))) * std::log(double(it + 1))
                       : double(it) / double(n);
}

PARTITA_RT_HOST_DEVICE inline double cosineRatio(double end, double done) {
  constexpr double kPi = 3.14159265358979323846;
  return end + (1.0 - end) * ((1.0 + std::cos(kPi * done)) / 2);
}

PARTITA_RT_HOST_DEVICE inline double ours(const LrSchedule &s, int64_t done, double base) {
  int64_t step = done + 1, decay = s.totalSteps - s.warmupSteps;
  if (step <= s.warmupSteps)
    return base * double(step) / double(s.warmupSteps);
  if (s.kind == LrScheduleKind::Constant)
    return base;
  double share = decay > 0 ? double(step - s.warmupSteps) / double(decay) : 1.0;
  return base * cosineRatio(s.endRatio, share < 1.0 ? share : 1.0);
}

PARTITA_RT_HOST_DEVICE inline double warmup(const LrSchedule &s, int64_t it, double base) {
  int64_t n = s.warmupSteps < 2 ? 2 : s.warmupSteps;
  double span = double(s.totalSteps > n ? s.totalSteps - n : 1);
  if (s.kind == LrScheduleKind::WarmupCosineLR) {
    if (it < 0)
      return 0;
    if (it < n)
      return base * (s.startRatio + warmupShare(s, it, n) * (1.0 - s.startRatio));
    double share = double(it - n + 1) / span;
    double ratio = cosineRatio(s.endRatio, share < 1.0 ? share : 1.0);
    return base * (ratio > 0 ? ratio : 0);
  }
  if (it < 0)
    return s.minRate;
  double share = 1;
  if (it < n)
    share = warmupShare(s, it, n);
  else if (s.kind == LrScheduleKind::WarmupDecayLR)
    share = it < s.totalSteps ? double(s.totalSteps - it) / span : 0.0;
  return s.minRate + ((s.maxRate < 0 ? base : s.maxRate) - s.minRate) * share;
}

/// How far up the cycle is, from 0 to 1. Stairs are counted in whole updates: a share that is a
/// hair below one must not fall a whole stair.
PARTITA_RT_HOST_DEVICE inline double cycleShare(const LrSchedule &s, int64_t it, int64_t second) {
  double first = double(s.firstSize), size = first + double(second), ratio = first / size;
  double cycles = double(it + 1) / size, x = 1.0 + cycles - std::floor(1.0 + cycles);
  bool rises = x <= ratio;
  double share = rises ? x / ratio : (x - 1.0) / (ratio - 1.0);
  int64_t stairs = rises || s.secondStairs < 0 ? s.firstStairs : s.secondStairs;
  if (stairs == 0)
    return share;
  int64_t within = (it + 1) % (s.firstSize + second);
  double stair = within <= s.firstSize ? double(within) * double(stairs) / first
                                       : (size - double(within)) * double(stairs) / double(second);
  return std::floor(stair) / double(stairs);
}

PARTITA_RT_HOST_DEVICE inline ScheduledRates oneCycle(const LrSchedule &s, int64_t it) {
  int64_t second = s.secondSize > 0 ? s.secondSize : s.firstSize, size = s.firstSize + second;
  ScheduledRates r;
  r.setsBetas = s.cycleMomentum;
  r.beta2 = 0.99; // regardless of the optimizer's own
  if (it < 0) {
    r.rate = s.minRate;
    r.beta1 = s.minMomentum; // the cycle itself begins at maxMomentum
  } else if (it < size) {
    double share = cycleShare(s, it, second);
    r.rate = s.minRate + (s.maxRate - s.minRate) * share;
    r.beta1 = s.maxMomentum - (s.maxMomentum - s.minMomentum) * share;
  } else {
    double intervals = s.decaySize > 0 ? double(it - size + 1) / double(s.decaySize) : 0.0;
    r.rate = s.minRate / (1.0 + s.decayRate * intervals);
    r.beta1 = s.maxMomentum * (1.0 + s.momentumDecayRate * intervals);
  }
  return r;
}

PARTITA_RT_HOST_DEVICE inline double rangeTest(const LrSchedule &s, int64_t it) {
  double intervals = double(it + 1) / double(s.stepSize);
  return s.minRate * (1.0 + s.stepRate * (s.staircase ? std::floor(intervals) : intervals));
}

} // namespace lr_schedules

/// The rates of the update after `done` others, with the optimizer's base rate.
PARTITA_RT_HOST_DEVICE inline ScheduledRates scheduledRates(const LrSchedule &s, int64_t done,
                                                            double base) {
  ScheduledRates r;
  switch (s.kind) {
  case LrScheduleKind::Constant:
  case LrScheduleKind::Cosine:
    r.rate = lr_schedules::ours(s, done, base);
    break;
  case LrScheduleKind::WarmupLR:
  case LrScheduleKind::WarmupDecayLR:
  case LrScheduleKind::WarmupCosineLR:
    r.rate = lr_schedules::warmup(s, done - 1, base);
    break;
  case LrScheduleKind::OneCycle:
    r = lr_schedules::oneCycle(s, done - 1);
    break;
  case LrScheduleKind::LRRangeTest:
    r.rate = lr_schedules::rangeTest(s, done - 1);
    break;
  }
  return r;
}

} // namespace partita_rt

#endif // PARTITA_RT_LR_SCHEDULE_H
