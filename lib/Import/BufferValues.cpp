//===- BufferValues.cpp ---------------------------------------------------------------------===//

#include "BufferValues.h"
#include <cmath>

namespace partita::importer {

/// What masks write for minus infinity, at least.
constexpr double least = -1e4;
/// A triangle that is smaller could be an accident.
constexpr int64_t leastTriangle = 3;

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

/// Are the numbers at `first(i)` and `second(i)` a cosine and a sine, of `count` angles?
static bool areTurns(int64_t count, DType type, llvm::function_ref<double(int64_t)> first,
                     llvm::function_ref<double(int64_t)> second) {
  double tolerance = type == DType::bf16 ? 2e-2 : type == DType::f16 ? 3e-3 : 1e-5;
  int64_t others = 0;
  for (int64_t i = 0; i < count; ++i) {
    double a = first(i), b = second(i);
    if (!(std::abs(a * a + b * b - 1) <= tolerance))
      return false;
    others += a != 0 && b != 0;
  }
  return 2 * others >= count;
}

bool areTurns(const HostTensor &first, const HostTensor &second) {
  return first.type() == second.type() && first.shape() == second.shape() && first.size() > 2 &&
         areTurns(
             first.size(), first.type(), [&](int64_t i) { return first.toDouble(i); },
             [&](int64_t i) { return second.toDouble(i); });
}

bool isTurned(const HostTensor &values) {
  int64_t width = values.rank() == 0 ? 0 : values.shape().back(), half = width / 2;
  if (width < 2 || width % 2 != 0 || values.size() <= 4)
    return false;
  auto at = [&](int64_t i, int64_t part) {
    return values.toDouble(i / half * width + part * half + i % half);
  };
  return areTurns(
      values.size() / 2, values.type(), [&](int64_t i) { return at(i, 0); },
      [&](int64_t i) { return at(i, 1); });
}

} // namespace partita::importer
