//===- FusedLookup.h - the ops of a tx.fused_lookup ---------------------------------*- C++ -*-===//
//
// TxFused.td lists the forms of its region; the op's verifier rejects all others.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_TX_FUSEDLOOKUP_H
#define PARTITA_DIALECTS_TX_FUSEDLOOKUP_H

#include "dialects/Tx/Tx.h"

namespace partita::tx {

/// Ops and values of the region.
struct FusedLookup {
  mlir::Operation *lookup = nullptr; ///< tx.embedding or tx.embedding_grad
  mlir::Value addend;                ///< the argument that it is added to

  static FusedLookup of(FusedLookupOp op);
  /// Reads the region. Returns what is wrong with it, or "".
  std::string read(FusedLookupOp op);

  bool isGradient() const { return mlir::isa<EmbeddingGradOp>(lookup); }
  /// Returns the op's operand for an argument of the region.
  mlir::Value input(mlir::Value argument) const;
  /// The op's operand of ids.
  mlir::Value ids() const;
  /// The op's operand to which a gradient is added; null for a lookup.
  mlir::Value gradientSoFar() const { return isGradient() ? input(addend) : mlir::Value(); }
  /// The op's operand that says where a rank's rows begin, or null.
  mlir::Value first() const;
};

} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_FUSEDLOOKUP_H
