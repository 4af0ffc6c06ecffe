//===- Tx.h - Transformer mathematics -----------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TX_TX_H
#define PARTITA_DIALECTS_TX_TX_H

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Tx/Blocks.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Tx/TxDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tx/TxBlocks.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxElementwise.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxRounding.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxActivation.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxStructure.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxTransformer.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxFused.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tx/TxFp8.h.inc"

namespace partita::tx {
/// Returns true if one element of the result depends on one element of each operand.
inline bool isElementwise(mlir::Operation *op) { return llvm::isa<ScalarInterface, CastOp>(op); }

/// Is this one kernel of the ops in its region?
inline bool isFusedKernel(mlir::Operation *op) {
  return llvm::isa<FusionOp, FusedMatmulOp, FusedLookupOp>(op);
}

/// Returns the number of elements of each row of the scales of 8-bit operands.
inline int64_t scaleWidth(mlir::TypedValue<mlir::RankedTensorType> scales) {
  return scales.getType().getNumElements() / std::max<int64_t>(scales.getType().getDimSize(0), 1);
}
/// Creates a constant whose elements all are `value`; `type` may carry a placement.
mlir::Value createSplat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                        double value);
/// Returns the element type of an elementwise result: the operands' 16-bit float if one has it (a
/// constant operand may have 32 bits), else the first operand's type.
mlir::Type storedElement(mlir::ValueRange operands);
/// Gives the op the index at which this rank's shard of dimension `dim` of a value begins, if that
/// is split.
void addFirstIndex(mlir::Operation *op, mlir::MutableOperandRange first, mlir::Type type,
                   unsigned dim);
/// Returns the element type of row statistics (means, logarithms of sums): at least 32 bits.
mlir::Type statisticElement(mlir::Value operand);
} // namespace partita::tx

#endif // PARTITA_DIALECTS_TX_TX_H
