//===- Roundings.h - casts to 16 bits inside a model of 32 --------------------------*- C++ -*-===//
//
// torch.autocast and x.half() are a cast, from which on PyTorch rounds every result. Programs here have
// one type, which --precision selects, so nothing is rounded at the cast, unless the result is only moved
// and then widened again: single-precision keeps that. Import warns of the others. A model whose
// parameters have 16 bits also casts to them, after a norm in float32: it is computed in float32 as a
// whole, which needs no warning.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_ROUNDINGS_H
#define PARTITA_LIB_IMPORT_ROUNDINGS_H

#include "dialects/Tx/Tx.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::importer {

/// The casts to 16 bits of a module as it was imported, by what single-precision does with them.
struct Roundings {
  explicit Roundings(mlir::ModuleOp module);

  llvm::SmallVector<tx::CastOp> kept, dropped;
};

/// On a cast that a node of the file is, until the model is imported: the node's name. Handlers also cast
/// operands, such as a norm's weights to the type of what it normalizes: these casts have no such name.
/// (Its prefix is no dialect's, so the verifier refuses a module that still has one.)
constexpr llvm::StringLiteral kCastNode = "import.cast_node";

/// Removes kCastNode. Returns what to warn of; empty if PyTorch rounds nowhere else.
std::string roundingWarning(mlir::ModuleOp module);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_ROUNDINGS_H
