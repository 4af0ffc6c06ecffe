// Helpers for the kernel tests: reproducible random tensors and comparison with double precision.

#ifndef PARTITA_TEST_RUNTIME_REFERENCE_H
#define PARTITA_TEST_RUNTIME_REFERENCE_H

#include "partita_rt/partita_rt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace partita_rt {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline Floats randomFloats(int64_t n, const char *name, double std = 1.0) {
  Floats values(static_cast<size_t>(n));
  uint64_t key = randomKey(1, name);
  for (int64_t i = 0; i < n; ++i)
    values[size_t(i)] = float(standardNormal(key, uint64_t(i)) * std);
  return values;
}

inline Doubles widen(const Floats &x) { return Doubles(x.begin(), x.end()); }

/// Returns max |a - b| / max |b|.
inline double relativeError(const Floats &a, const Doubles &b) {
  double difference = 0, largest = 1e-30;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!(std::fabs(double(a[i]) - b[i]) <= difference)) // propagates NaN
      difference = std::fabs(double(a[i]) - b[i]);
    largest = std::max(largest, std::fabs(b[i]));
  }
  return difference / largest;
}

#define EXPECT_CLOSE(actual, expected, tolerance)                                                  \
  do {                                                                                             \
    ASSERT_EQ((actual).size(), (expected).size());                                                 \
    EXPECT_LE(relativeError(actual, expected), tolerance);                                         \
  } while (false)

/// Returns the message of the Error that `body` throws; "" if it throws none.
template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_REFERENCE_H
