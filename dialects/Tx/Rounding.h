//===- Rounding.h - casts that are the model's own ----------------------------------*- C++ -*-===//
#ifndef PARTITA_DIALECTS_TX_ROUNDING_H
#define PARTITA_DIALECTS_TX_ROUNDING_H

#include "mlir/IR/Operation.h"

namespace partita::tx {

/// On a cast to 16 bits that the model itself makes, and on the one that widens its result again,
/// x.half().float(): single-precision sets it. Ranks complete a sum before such a cast; in a program of 16
/// bits they may add up rounded shares.
constexpr llvm::StringLiteral kRounds = "tx.rounds";

/// On the cast that rounds a gradient where its value was rounded. Ranks may add up rounded shares.
constexpr llvm::StringLiteral kRoundsGradient = "tx.rounds_gradient";

/// Does the model round there, so that a kernel does even if it stores nothing there?
inline bool isOwnRounding(mlir::Operation *op) {
  return op->hasAttr(kRounds) || op->hasAttr(kRoundsGradient);
}

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_ROUNDING_H
