//===- Passes.h - the passes of lib/Emit ------------------------------------------*- C++ -*-===//

#ifndef PARTITA_EMIT_PASSES_H
#define PARTITA_EMIT_PASSES_H

#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "partita/Support/PassStatistic.h"

namespace partita {
#define GEN_PASS_DECL
#include "partita/Emit/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "partita/Emit/Passes.h.inc"
} // namespace partita

#endif // PARTITA_EMIT_PASSES_H
