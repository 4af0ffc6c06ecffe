//===- Races.h - accesses that nothing orders --------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OVERLAP_RACES_H
#define PARTITA_LIB_OVERLAP_RACES_H

#include "dialects/Rt/Rt.h"

namespace partita::overlap {

/// Bytes of one memory space: equal runs, a dimension at a time, as the place's strides say.
struct Access {
  rt::Space space = rt::Space::None;
  int64_t begin = 0, end = 0; ///< around all of it
  rt::View view;
  int64_t width = 1; ///< bytes of an element
};

struct Accesses {
  llvm::SmallVector<Access, 4> reads, writes;
};

/// What is under way beside the computation.
struct Flight {
  mlir::Operation *start;
  mlir::Attribute stream;
  Accesses accesses;
};

/// Reports a byte that the op writes while the flight reads or writes it, or reads while that writes it.
mlir::LogicalResult checkPair(mlir::Operation *op, const Accesses &accesses, const Flight &flight);

} // namespace partita::overlap

#endif // PARTITA_LIB_OVERLAP_RACES_H
