//===- StoredTypes.h - the types in which an op's results are stored ----------------*- C++ -*-===//

#ifndef PARTITA_LIB_AMP_STOREDTYPES_H
#define PARTITA_LIB_AMP_STOREDTYPES_H

#include "mlir/IR/Operation.h"

namespace partita::amp {

/// Returns true for tensors of floats with 32 bits, or with fewer.
bool isWide(mlir::Type type);
bool isNarrow(mlir::Type type);

/// Returns true for a number that is repeated, which kernels have as a literal.
bool isSplat(mlir::Value value);

/// Returns the types of the op's results, with unchanged placement, if its operands were these,
/// which may only differ in their element types; nothing if the op does not allow that.
std::optional<llvm::SmallVector<mlir::Type>> storedTypes(mlir::Operation *op,
                                                         mlir::ValueRange operands);

/// 8-bit matrix instructions take sizes that are multiples of this.
constexpr int64_t kFp8Multiple = 16;
/// Returns true if the operand of a matmul, as a matrix of its last dimension, has such sizes.
bool suitsFp8(mlir::Value operand);

} // namespace partita::amp

#endif // PARTITA_LIB_AMP_STOREDTYPES_H
