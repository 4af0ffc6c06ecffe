//===- Par.h - meshes, placements, conjugates, collectives -----------------------------*- C++
//-*-===//

#ifndef PARTITA_DIALECTS_PAR_H
#define PARTITA_DIALECTS_PAR_H

#include "dialects/Interfaces/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Par/ParDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Par/ParAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Par/ParOps.h.inc"

#endif // PARTITA_DIALECTS_PAR_H
