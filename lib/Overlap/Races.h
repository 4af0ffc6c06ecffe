//===- Races.h - accesses that nothing orders --------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_OVERLAP_RACES_H
#define PARTITA_LIB_OVERLAP_RACES_H

#include "partita/Analysis/Bytes.h"

namespace partita::overlap {

using Access = analysis::Bytes;

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
