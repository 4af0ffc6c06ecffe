// The steps of training whose sums are exact where all others send less (one_bit.h), for the compiler too.

#ifndef PARTITA_RT_EXACT_STEPS_H
#define PARTITA_RT_EXACT_STEPS_H

#include "host_device.h"

#include <cstdint>
#include <string>

namespace partita_rt {

/// Steps are numbered from 1. None is exact after step `until`. Up to it all are, or with `doubling` k > 0 the first k of each interval: k steps, then
/// the next k of the multiples of 2, of 4, and so on. These are the steps T_v in which 0/1 Adam (Lu et al., arXiv 2202.06009) updates the variance, in
/// DeepSpeed's form.
struct ExactSteps {
  int64_t until = 0, doubling = 0;

  PARTITA_RT_HOST_DEVICE constexpr bool contains(int64_t step) const {
    if (step > until || doubling == 0)
      return step <= until;
    int64_t interval = 1, last = doubling; // of the interval's steps
    while (step > last) {
      interval *= 2;
      last = (last / interval + doubling) * interval;
    }
    return step % interval == 0;
  }
  /// Of a whole number, as an update's number is in memory.
  PARTITA_RT_HOST_DEVICE constexpr bool contains(float step) const {
    return contains(int64_t(step));
  }

  PARTITA_RT_HOST_DEVICE constexpr int64_t count() const { return countUntil(until); }

  /// The exact ones of the first `end` steps.
  PARTITA_RT_HOST_DEVICE constexpr int64_t countUntil(int64_t end) const {
    end = end < until ? end : until;
    if (doubling == 0)
      return end;
    int64_t interval = 1, last = 0, counted = 0;
    while (end / interval - last / interval > doubling) {
      counted += doubling;
      last = (last / interval + doubling) * interval;
      interval *= 2;
    }
    return counted + end / interval - last / interval;
  }

  constexpr bool operator==(const ExactSteps &other) const {
    return until == other.until && doubling == other.doubling;
  }
};

/// Steps in which a program communicates alike.
struct Steps {
  enum Part : int64_t { All, Exact, Others };
  Part part = All;
  ExactSteps exact = {};

  constexpr bool contains(int64_t step) const {
    return part == All || exact.contains(step) == (part == Exact);
  }
  /// Are all steps of `other`, which has the same exact ones, among these?
  constexpr bool contains(const Steps &other) const { return part == All || part == other.part; }
  constexpr bool operator==(const Steps &other) const {
    return part == other.part && exact == other.exact;
  }
  /// Returns " in steps 1 to 10", " from step 11 on", " in 40 of the first 100 steps", " in all other steps", or "" for all steps.
  std::string text() const {
    std::string until = std::to_string(exact.until);
    if (part == All)
      return "";
    if (part == Others)
      return exact.doubling ? " in all other steps"
                            : " from step " + std::to_string(exact.until + 1) + " on";
    if (exact.doubling)
      return " in " + std::to_string(exact.count()) + " of the first " + until + " steps";
    return exact.until == 1 ? " in step 1" : " in steps 1 to " + until;
  }
};

} // namespace partita_rt

#endif // PARTITA_RT_EXACT_STEPS_H
