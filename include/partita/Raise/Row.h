//===- Row.h - the elements along one dimension, in runs ----------------------------*- C++ -*-===//
//
// A row of a causal mask of a million keys is two numbers, each many times; one of positions counts up by one. A
// Row stores such runs, so that arithmetic on rows costs what they have of runs, not of elements.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_RAISE_ROW_H
#define PARTITA_RAISE_ROW_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cmath>
#include <vector>

namespace partita::raise {

class Row {
public:
  /// Elements [begin, end): element j is first + step * (j - begin). A step other than 0 has integers below 2^52
  /// as elements, which double precision holds exactly.
  struct Run {
    int64_t begin, end;
    double first, step;

    double at(int64_t j) const {
      return step == 0 ? first : first + step * static_cast<double>(j - begin); // also -0.0
    }
    int64_t size() const { return end - begin; }
  };

  /// Is it an integer below 2^52? Double precision holds these exactly, their differences too.
  static bool isExact(double element) {
    return std::trunc(element) == element && std::abs(element) < 0x1p52;
  }

  Row() = default;
  /// `size` times the same element.
  Row(int64_t size, double element) { append(size, element); }

  /// Appends `count` elements: first, first + step, ... One by one where these are not integers below 2^52.
  void append(int64_t count, double first, double step = 0);
  /// Returns the elements at offset, offset + stride, ...; `stride` > 0, and all of them exist.
  Row slice(int64_t offset, int64_t stride, int64_t size) const;

  int64_t size() const { return all.empty() ? 0 : all.back().end; }
  /// In order, without gaps; none is empty.
  llvm::ArrayRef<Run> runs() const { return all; }
  double front() const { return all.front().first; }
  std::vector<double> elements() const;

private:
  llvm::SmallVector<Run, 4> all;
};

/// Calls `visit` for each stretch of elements [begin, end) within which every row has one run, in order, with the
/// part of each row's run; stops if it returns false. The rows have one size.
void forEachStretch(llvm::ArrayRef<const Row *> rows,
                    llvm::function_ref<bool(llvm::ArrayRef<Row::Run>)> visit);

} // namespace partita::raise

#endif // PARTITA_RAISE_ROW_H
