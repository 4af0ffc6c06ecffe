//===- Races.h - unordered accesses to the same bytes ------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OVERLAP_RACES_H
#define PARTITA_LIB_OVERLAP_RACES_H

#include "partita/Analysis/Bytes.h"

namespace partita::overlap {

using Access = analysis::Bytes;

struct Accesses {
  llvm::SmallVector<Access, 4> reads, writes;
};

/// An op in flight concurrently with the computation.
struct Flight {
  mlir::Operation *start;
  mlir::Attribute stream;
  Accesses accesses;
};

/// Reports a byte that the op writes while the flight reads or writes it, or that the op reads
/// while the flight writes it.
mlir::LogicalResult checkPair(mlir::Operation *op, const Accesses &accesses, const Flight &flight);

} // namespace partita::overlap

#endif // PARTITA_LIB_OVERLAP_RACES_H
