//===- Rounding.h - casts that are the model's own ----------------------------------*- C++ -*-===//
#ifndef PARTITA_TX_ROUNDING_H
#define PARTITA_TX_ROUNDING_H

#include "llvm/ADT/StringRef.h"

namespace partita::tx {

/// On a cast to 16 bits that the model itself makes and widens again, x.half().float(): single-precision
/// sets it. Ranks complete a sum before such a cast; in a program of 16 bits they may add up rounded shares.
constexpr llvm::StringLiteral kRounds = "tx.rounds";

} // namespace partita::tx

#endif // PARTITA_TX_ROUNDING_H
