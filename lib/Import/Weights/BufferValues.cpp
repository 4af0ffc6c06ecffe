//===- BufferValues.cpp ---------------------------------------------------------------------===//

#include "lib/Import/Weights/BufferValues.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace partita::importer {

/// What masks write for minus infinity, at least.
constexpr double least = -1e4;
/// A triangle that is smaller could be an accident.
constexpr int64_t leastTriangle = 3;
/// So could a row of positions, or of biases that rise evenly.
constexpr int64_t leastRow = 4;

static bool isAdditiveMask(const HostTensor &values) {
  double masked = 0;
  bool hasZero = false;
  for (int64_t i = 0; i < values.size(); ++i) {
    double value = values.toDouble(i);
    if (value == 0) {
      hasZero = true;
      continue;
    }
    if (!(value <= least) || (masked != 0 && value != masked))
      return false;
    masked = value;
  }
  return hasZero && masked != 0;
}

static bool isTriangle(const HostTensor &values) {
  int64_t rank = values.rank();
  if (rank < 2)
    return false;
  int64_t rows = values.shape()[rank - 2], columns = values.shape()[rank - 1];
  if (rows != columns || rows < leastTriangle)
    return false;
  for (int64_t i = 0; i < values.size(); ++i)
    if (values.toDouble(i) != (i % columns <= i / columns % rows ? 1 : 0))
      return false;
  return true;
}

bool isMask(const HostTensor &values) { return isAdditiveMask(values) || isTriangle(values); }

/// How far a number of this type may be from what it stands for, for each of its size.
static double roundingOf(DType type) {
  return type == DType::bf16 ? 1e-2 : type == DType::f16 ? 1.5e-3 : 5e-6;
}

/// Are the numbers at `first(i)` and `second(i)` a cosine and a sine, of `count` angles?
static bool areTurns(int64_t count, DType type, llvm::function_ref<double(int64_t)> first,
                     llvm::function_ref<double(int64_t)> second) {
  if (count < 2)
    return false;
  double square = first(0) * first(0) + second(0) * second(0);
  double tolerance = 2 * roundingOf(type) * square;
  int64_t others = 0;
  bool vary = false;
  for (int64_t i = 0; i < count; ++i) {
    double a = first(i), b = second(i);
    if (!(std::abs(a * a + b * b - square) <= tolerance))
      return false;
    others += a != 0 && b != 0;
    vary |= std::abs(a * first(0) + b * second(0) - square) > tolerance;
  }
  return vary && 2 * others >= count;
}

static llvm::SmallVector<int64_t> withoutOnes(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> others(shape.begin(), shape.end());
  llvm::erase(others, 1);
  return others;
}

bool areTurns(const HostTensor &first, const HostTensor &second) {
  return first.type() == second.type() &&
         withoutOnes(first.shape()) == withoutOnes(second.shape()) &&
         areTurns(
             first.size(), first.type(), [&](int64_t i) { return first.toDouble(i); },
             [&](int64_t i) { return second.toDouble(i); });
}

bool isTurned(const HostTensor &values) {
  int64_t stride = 1; // of the dimension that is looked at, from the last on
  for (int64_t extent : llvm::reverse(values.shape())) {
    // Elements that lie `step` apart in this dimension, in blocks of two times that.
    for (int64_t step : {extent / 2, int64_t(1)}) {
      if (extent % 2 != 0 || step == 0 || values.size() <= 4)
        continue;
      int64_t block = step * stride;
      auto at = [&](int64_t i, int64_t part) {
        return values.toDouble(i / block * 2 * block + part * block + i % block);
      };
      if (areTurns(
              values.size() / 2, values.type(), [&](int64_t i) { return at(i, 0); },
              [&](int64_t i) { return at(i, 1); }))
        return true;
    }
    stride *= extent;
  }
  return false;
}

/// Are all numbers of row `row` zeros?
static bool isZeroRow(const HostTensor &values, int64_t row, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i)
    if (values.toDouble(row * columns + i) != 0)
      return false;
  return true;
}

bool isSinusoidal(const HostTensor &values) {
  int64_t columns = values.rank() < 2 ? 0 : values.shape().back();
  if (columns < leastRow || columns % 2 != 0)
    return false;
  int64_t rows = values.size() / columns, half = columns / 2;
  llvm::SmallVector<int64_t> known;
  for (int64_t row = 0; row < rows; ++row)
    if (!isZeroRow(values, row, columns))
      known.push_back(row);
  int64_t count = static_cast<int64_t>(known.size());
  if (count < leastRow || rows - count > 1)
    return false;
  // Angle `i` of a row has its parts `apart` columns from one another.
  auto arePairs = [&](int64_t apart) {
    auto at = [&](int64_t i, int64_t part) {
      int64_t angle = i % half, first = angle / apart * 2 * apart + angle % apart;
      return values.toDouble(known[i / half] * columns + first + part * apart);
    };
    return areTurns(
               count * half, values.type(), [&](int64_t i) { return at(i, 0); },
               [&](int64_t i) { return at(i, 1); }) &&
           std::abs(at(0, 0) * at(0, 0) + at(0, 1) * at(0, 1) - 1) <= 2 * roundingOf(values.type());
  };
  return arePairs(half) || arePairs(1);
}

/// A row of a table, masked elements left out: where it is and what stands there.
using Row = llvm::SmallVector<std::pair<int64_t, double>>;

/// Lies it on a line that rises or falls by more than numbers of this type are rounded by?
static bool isSloped(llvm::ArrayRef<std::pair<int64_t, double>> row, double tolerance) {
  if (row.size() < 2)
    return true; // of a turn's shorter side
  std::pair<int64_t, double> first = row.front(), last = row.back();
  if (!(std::abs(last.second - first.second) > 8 * tolerance))
    return false;
  double slope = (last.second - first.second) / static_cast<double>(last.first - first.first);
  return llvm::all_of(row, [&](auto each) {
    double here = first.second + slope * static_cast<double>(each.first - first.first);
    return std::abs(each.second - here) <= tolerance;
  });
}

static bool isSloped(const Row &row, DType type) {
  double largest = 0;
  const auto *highest = row.begin(), *lowest = row.begin();
  for (const auto &each : row) {
    largest = std::max(largest, std::abs(each.second));
    highest = each.second > highest->second ? &each : highest;
    lowest = each.second < lowest->second ? &each : lowest;
  }
  double tolerance = roundingOf(type) * largest;
  if (isSloped(llvm::ArrayRef(row), tolerance))
    return true;
  return llvm::any_of(llvm::ArrayRef({highest, lowest}), [&](const auto *turn) {
    return turn != row.begin() && turn != &row.back() &&
           isSloped(llvm::ArrayRef(row.begin(), turn + 1), tolerance) &&
           isSloped(llvm::ArrayRef(turn, row.end()), tolerance);
  });
}

/// What masks write into a sum of biases: nothing that a slope reaches.
static bool isMasked(double value, DType type) {
  return value == -std::numeric_limits<double>::infinity() ||
         value <= (type == DType::f16 ? -65504 : -1e30);
}

bool isAlibi(const HostTensor &values) {
  int64_t columns = values.rank() < 2 ? 0 : values.shape().back(), known = 0;
  if (columns < leastRow || values.size() == 0)
    return false;
  for (int64_t from = 0; from < values.size(); from += columns) {
    Row row;
    for (int64_t i = 0; i < columns; ++i)
      if (double value = values.toDouble(from + i); !isMasked(value, values.type()))
        row.push_back({i, value});
    if (row.size() < 3)
      continue;
    if (!isSloped(row, values.type()))
      return false;
    ++known;
  }
  return 2 * known * columns >= values.size();
}

bool areFrequencies(const HostTensor &values) {
  if (withoutOnes(values.shape()).size() > 1)
    return true;
  bool rises = true, falls = true;
  for (int64_t i = 0; i < values.size(); ++i) {
    double here = values.toDouble(i), before = values.toDouble(i > 0 ? i - 1 : 0);
    if (!(here >= 0))
      return false;
    rises &= here >= before;
    falls &= here <= before;
  }
  return rises || falls;
}

bool areSlopes(const HostTensor &values) {
  int64_t heads = values.size();
  if (heads == 1)
    return true;
  llvm::SmallVector<double> exponents;
  for (int64_t i = 0; i < heads; ++i) {
    double slope = values.toDouble(i);
    if (!(std::abs(slope) > 0 && std::abs(slope) < 1) || (slope < 0) != (values.toDouble(0) < 0))
      return false;
    exponents.push_back(-std::log2(std::abs(slope)));
  }
  double largest = *llvm::max_element(exponents);
  double tolerance = 3 * roundingOf(values.type()); // of an exponent: d log2(x) = 1.44 dx / x
  // Where heads are no power of two, every second multiple is left out above some head.
  for (int64_t most = heads; most <= 2 * heads; ++most) {
    double unit = largest / static_cast<double>(most);
    llvm::SmallVector<bool> taken(most + 1, false);
    if (llvm::all_of(exponents, [&](double exponent) {
          auto multiple = std::llround(exponent / unit);
          bool isFree = multiple > 0 && !taken[multiple];
          taken[multiple] = true;
          return isFree && std::abs(exponent - unit * static_cast<double>(multiple)) <= tolerance;
        }))
      return true;
  }
  return false;
}

bool isCounted(const HostTensor &values) {
  int64_t columns = values.rank() == 0 ? 0 : values.shape().back();
  if (columns < leastRow || values.size() == 0)
    return false;
  double step = values.toDouble(1) - values.toDouble(0);
  if (std::abs(step) != 1)
    return false;
  for (int64_t i = 0; i < values.size(); ++i)
    if (i % columns != 0 && values.toDouble(i) != values.toDouble(i - 1) + step)
      return false;
  return true;
}

} // namespace partita::importer
