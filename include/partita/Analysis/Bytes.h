//===- Bytes.h - the bytes of a tensor at its place ---------------------------------*- C++ -*-===//

#ifndef PARTITA_ANALYSIS_BYTES_H
#define PARTITA_ANALYSIS_BYTES_H

#include "dialects/Rt/Rt.h"

namespace partita::analysis {

/// Bytes of one memory space: equal runs, a dimension at a time, as the place's strides say.
struct Bytes {
  rt::Space space = rt::Space::None;
  int64_t begin = 0, end = 0; ///< around all of it
  rt::View view;
  int64_t width = 1; ///< bytes of an element

  /// `count` bytes one after another.
  static Bytes run(rt::Space space, int64_t begin, int64_t count);
  /// Those of a tensor; none where the place does not fit it: another number of strides, a negative number, more bytes
  /// than any memory has; or the type has no size.
  static std::optional<Bytes> at(rt::AtAttr place, mlir::RankedTensorType type);

  /// Could they have a byte in common?
  bool meets(const Bytes &other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

/// The first byte that both have; none where they have none in common.
std::optional<int64_t> commonByte(const Bytes &a, const Bytes &b);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_BYTES_H
