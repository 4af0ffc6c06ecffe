//===- Operand.h - which dimensions of q, k and v are batch, sequence, heads, features *- C++ -*-===//

#ifndef PARTITA_LIB_RAISE_OPERAND_H
#define PARTITA_LIB_RAISE_OPERAND_H

#include "lib/Raise/Layout.h"

namespace partita::raise {

/// An operand of attention: its source and which of the source's dimensions plays which role, -1
/// for one of size one that the source lacks or has anywhere.
struct Operand {
  mlir::Value source;
  enum Role { Batch, Sequence, Head, Feature };
  int dims[4] = {-1, -1, -1, -1};
  int64_t repeats = 1; // of each head, one after the other
  double scale = 1;
  int64_t size(Role role) const {
    return dims[role] < 0
               ? 1
               : llvm::cast<mlir::RankedTensorType>(source.getType()).getDimSize(dims[role]);
  }
};

/// Sorts the dimensions of a traced matrix operand into roles: the last two are given, those before
/// are batch and head. Where one dimension merges these, it has one sample's heads (`oneSample`), or its
/// outer factor is the batch: sizes alone do not tell 1 x 4 from 4 x 1. False if a role would be played by
/// two dimensions, or repeated other than head by head.
bool assignRoles(const View &view, Operand::Role last, Operand::Role beforeLast, bool oneSample,
                 Operand &operand);

/// `source`, whose dimensions are those of `operand`, as [b, s, h, d].
mlir::Value inLayout(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                     const Operand &operand);

} // namespace partita::raise

#endif // PARTITA_LIB_RAISE_OPERAND_H
