//===- Train.h - parameters, states, accumulation, updates --------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_TRAIN_H
#define PARTITA_DIALECTS_TRAIN_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Train/TrainDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.h.inc"

namespace partita::train {
/// The parameter that a value is read from: itself, a piece of it, a copy, what was gathered; null
/// where it is something else.
mlir::FlatSymbolRefAttr parameterReadBy(mlir::Value value);
/// The one that an optimizer op updates.
mlir::FlatSymbolRefAttr updatedParameter(mlir::Operation *update);
/// The number of the operand of an optimizer op whose new value is result number `result`: the
/// value, or a state.
inline unsigned updatedOperand(unsigned result) { return result == 0 ? 0 : result + 1; }
} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_H
