// Helpers for the kernel tests: reproducible random tensors and comparison with double precision.

#ifndef PARTITA_TEST_RUNTIME_REFERENCE_H
#define PARTITA_TEST_RUNTIME_REFERENCE_H

#include "partita_rt/partita_rt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <list>
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

/// Returns `shape` with documents of 1 to 2 * length positions, different ones in each sequence. Their
/// first keys live as long as the program.
inline AttentionShape withDocuments(AttentionShape shape, int64_t length) {
  static std::list<std::vector<int32_t>> kept;
  std::vector<int32_t> &firsts = kept.emplace_back();
  uint64_t key = randomKey(1, "documents"), number = 0;
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t i = 0, start = 0, end = 0; i < shape.sequence; ++i) {
      if (i == end) {
        start = i;
        end = i + 1 + int64_t(mix64(key + number++) % uint64_t(2 * length));
      }
      firsts.push_back(int32_t(start));
    }
  shape.firstKeys = firsts.data();
  return shape;
}

/// Returns `shape` with dropout, as a rank has it that has the second half of sequences and heads.
/// Its numbers live as long as the program.
inline AttentionShape withDropout(AttentionShape shape, double ratio) {
  static std::list<std::vector<int64_t>> kept;
  int64_t heads = 2 * shape.heads, first = shape.batch * heads + shape.heads;
  const std::vector<int64_t> &numbers =
      kept.emplace_back(std::vector<int64_t>{42, 3, first * shape.sequence * shape.keySequence});
  shape.dropout = {ratio, 7, &numbers[0], &numbers[1], 2 * shape.batch, heads, &numbers[2]};
  return shape;
}
/// The factors of the probabilities [batch, heads, sequence, keySequence]; ones without dropout.
inline Floats dropoutFactors(const AttentionShape &a) {
  Shape shape{a.batch, a.heads, a.sequence, a.keySequence};
  Floats factors(size_t(shape.elements()), 1.0f);
  const AttentionDropout &d = a.dropout;
  if (d.ratio > 0.0) {
    Shape full{d.batch, d.heads, a.sequence, a.keySequence};
    dropout(factors.data(), factors.data(), shape, full, {d.ratio, d.id, *d.key},
            *d.micro * full.elements() + *d.first);
  }
  return factors;
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
