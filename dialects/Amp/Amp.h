//===- Amp.h - loss scaling ---------------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_AMP_AMP_H
#define PARTITA_DIALECTS_AMP_AMP_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Amp/AmpDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/Amp/AmpOps.h.inc"

#endif // PARTITA_DIALECTS_AMP_AMP_H
