//===- StoredTypes.h - what an op's results are stored in ---------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_AMP_STOREDTYPES_H
#define PARTITA_LIB_AMP_STOREDTYPES_H

#include "mlir/IR/Operation.h"

namespace partita::amp {

/// Is it a tensor of floats of 32 bits, or of less?
bool isWide(mlir::Type type);
bool isNarrow(mlir::Type type);

/// Is it one number, repeated? Kernels have it as a literal.
bool isSplat(mlir::Value value);

/// The types of the op's results, placed as they are, on operands that differ from its own in their
/// element types alone; nothing where it cannot have them.
std::optional<llvm::SmallVector<mlir::Type>> storedTypes(mlir::Operation *op,
                                                         mlir::ValueRange operands);

} // namespace partita::amp

#endif // PARTITA_LIB_AMP_STOREDTYPES_H
