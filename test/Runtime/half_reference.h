// Helpers for the tests of 16-bit tensors. The invariant: a kernel on 16-bit operands is the float
// kernel on the same numbers, its results rounded once, bit for bit.

#ifndef PARTITA_TEST_RUNTIME_HALF_REFERENCE_H
#define PARTITA_TEST_RUNTIME_HALF_REFERENCE_H

#include "reference.h"

namespace partita_rt {

template <typename T> using Narrow = std::vector<T>;

template <typename T> Narrow<T> rounded(const Floats &x) {
  Narrow<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = T(x[i]);
  return y;
}

template <typename T> Floats widened(const Narrow<T> &x) { return Floats(x.begin(), x.end()); }

/// Random numbers that are exact in T.
template <typename T> Floats randomExact(int64_t n, const char *name, double std = 1.0) {
  return widened(rounded<T>(randomFloats(n, name, std)));
}

/// Returns the index of the first difference; -1 if there is none. Floats are compared bit by bit
/// too, all NaNs as equal.
template <typename T> int64_t difference(const Narrow<T> &actual, const Floats &expected) {
  if (actual.size() != expected.size())
    return int64_t(std::min(actual.size(), expected.size()));
  for (size_t i = 0; i < actual.size(); ++i) {
    T wanted = T(expected[i]);
    bool bothNaN = std::isnan(float(actual[i])) && std::isnan(float(wanted));
    if (!bothNaN && std::memcmp(&actual[i], &wanted, sizeof(T)) != 0)
      return int64_t(i);
  }
  return -1;
}

#define EXPECT_ROUNDED(actual, expected) EXPECT_EQ(difference(actual, expected), -1)

using NarrowTypes = testing::Types<Half, BFloat16>;

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_HALF_REFERENCE_H
